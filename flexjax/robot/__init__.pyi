"""The names of this package and the modules that they live in; `__init__.py` resolves them."""

from flexjax.robot._compose import Component as Component, Mechanism as Mechanism, Port as Port
from flexjax.robot._examples import examples as examples
from flexjax.robot._paths import (
    find_leaves as find_leaves,
    get_path as get_path,
    paths as paths,
    set_path as set_path,
)
from flexjax.robot._robot import GROUND as GROUND, Robot as Robot
from flexjax.robot._table import columns as columns
from flexjax.robot._units import effort_unit as effort_unit, sensor_unit as sensor_unit
from flexjax.robot.check._check import RobotError as RobotError, robot_faults as robot_faults
from flexjax.robot.check._traced import parameters_hold as parameters_hold
from flexjax.robot.files._file import robot_schema as robot_schema
from flexjax.robot.files._load import (
    load_robot as load_robot,
    robot_from_dict as robot_from_dict,
    robot_to_toml as robot_to_toml,
    save_robot as save_robot,
)
from flexjax.robot.files._mjcf import load_mjcf as load_mjcf
from flexjax.robot.files._urdf import load_urdf as load_urdf
from flexjax.robot.parts._joint import (
    JOINT_DOFS as JOINT_DOFS,
    Crosstalk as Crosstalk,
    Friction as Friction,
    Hub as Hub,
    Joint as Joint,
    Lowpass as Lowpass,
    Motor as Motor,
    Payload as Payload,
    Ripple as Ripple,
    Sensor as Sensor,
    Stops as Stops,
)
from flexjax.robot.parts._link import (
    MATERIALS as MATERIALS,
    BeamConstants as BeamConstants,
    Body as Body,
    Damping as Damping,
    Link as Link,
    Material as Material,
    Piece as Piece,
)
from flexjax.robot.parts._section import (
    AbstractSection as AbstractSection,
    Circle as Circle,
    GivenSection as GivenSection,
    IBeam as IBeam,
    Rectangle as Rectangle,
    SectionProperties as SectionProperties,
    Tube as Tube,
)
