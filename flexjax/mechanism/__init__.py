"""What every formulation shares: the tree, joints and their hardware, sections, rigid bodies."""

from flexjax.mechanism._snapshot import (
    SNAPSHOT as SNAPSHOT,
    Energy as Energy,
    Snapshot as Snapshot,
    energy_of as energy_of,
)
from flexjax.mechanism._start import (
    Curve as Curve,
    Shape as Shape,
    Start as Start,
    directions as directions,
    joint_start as joint_start,
    least_rotation as least_rotation,
    untwisted as untwisted,
)
from flexjax.mechanism.bodies._describe import describe as describe
from flexjax.mechanism.bodies._rigid_body import (
    centreline_pose as centreline_pose,
    rigid_inertia as rigid_inertia,
)
from flexjax.mechanism.bodies._sections import (
    BeamProperties as BeamProperties,
    beam_properties as beam_properties,
    half_sizes as half_sizes,
    link_quadrature as link_quadrature,
)
from flexjax.mechanism.joints._bristles import (
    Sides as Sides,
    advanced_bristles as advanced_bristles,
    bristle_energy as bristle_energy,
    friction_torque as friction_torque,
    initial_memory as initial_memory,
)
from flexjax.mechanism.joints._coordinates import (
    BALL_COLUMN as BALL_COLUMN,
    CoordinateLayout as CoordinateLayout,
    ambient_rate as ambient_rate,
    coordinate_layout as coordinate_layout,
    joint_configuration as joint_configuration,
    joint_coordinates as joint_coordinates,
    locked as locked,
    motor_side as motor_side,
    move as move,
    to_v as to_v,
)
from flexjax.mechanism.joints._hardware import (
    JointHardware as JointHardware,
    SpringLaw as SpringLaw,
    joint_hardware as joint_hardware,
)
from flexjax.mechanism.joints._joint_forces import (
    JointForces as JointForces,
    joint_energy as joint_energy,
    joint_forces as joint_forces,
    joint_sides as joint_sides,
)
from flexjax.mechanism.joints._joints import (
    PLANAR as PLANAR,
    hub_inertia as hub_inertia,
    inertia_tensor as inertia_tensor,
    or_zero as or_zero,
    payload_inertia as payload_inertia,
    placement as placement,
    rotation_axis as rotation_axis,
    rotor_and_gear as rotor_and_gear,
    shift_axis as shift_axis,
    unit as unit,
)
from flexjax.robot._serial import (
    chain_order as chain_order,
    flexible_joint_refusals as flexible_joint_refusals,
    serial_refusals as serial_refusals,
    torsion_refusals as torsion_refusals,
)
