"""One call from model and drive to trajectory, and what is built on it."""

from flexjax.simulate._simulate import simulate as simulate
from flexjax.simulate._start import displaced_start as displaced_start
from flexjax.simulate._stepper import (
    Stepper as Stepper,
    StepperState as StepperState,
    stepper as stepper,
)
from flexjax.simulate.analysis._compare import Comparison as Comparison, compare as compare
from flexjax.simulate.analysis._equilibrium import (
    Equilibrium as Equilibrium,
    equilibrium as equilibrium,
    find_equilibrium as find_equilibrium,
)
from flexjax.simulate.analysis._gradients import (
    GradientTable as GradientTable,
    check_gradients as check_gradients,
)
from flexjax.simulate.analysis._inverse import (
    inverse_dynamics as inverse_dynamics,
    inverse_kinematics as inverse_kinematics,
)
from flexjax.simulate.analysis._linear import (
    Linear as Linear,
    Modes as Modes,
    linearise as linearise,
    modes as modes,
)
from flexjax.simulate.analysis._rest import Rest as Rest, rest as rest
from flexjax.simulate.loop._range import RANGE_CHECK as RANGE_CHECK
from flexjax.simulate.trajectory import (
    Trajectory as Trajectory,
    peak_deflection as peak_deflection,
    residual_vibration as residual_vibration,
    surface_strain as surface_strain,
)
from flexjax.simulate.trajectory._readings import static_readings as static_readings
