"""What moves a robot: prescribed motions, efforts, controllers, loads, a moving base."""

from flexjax.drive._base import Base as Base, Load as Load
from flexjax.drive._controllers import (
    PD as PD,
    AbstractActuation as AbstractActuation,
    ActuationState as ActuationState,
    Effort as Effort,
    Feedback as Feedback,
    Motion as Motion,
    Sampled as Sampled,
    Voltage as Voltage,
)
from flexjax.drive._drive import Drive as Drive
