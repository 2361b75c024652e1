"""The public names for editors and type checkers; `__init__.py` resolves them lazily."""

from flexjax._compile import grad as grad, jit as jit, value_and_grad as value_and_grad
from flexjax._configure import configure as configure
from flexjax._files import FileError as FileError
from flexjax._results import (
    EquilibriumError as EquilibriumError,
    SimulationError as SimulationError,
    Status as Status,
)
from flexjax.drive import (
    PD as PD,
    Base as Base,
    Drive as Drive,
    Effort as Effort,
    Feedback as Feedback,
    Load as Load,
    Motion as Motion,
    Sampled as Sampled,
    Voltage as Voltage,
)
from flexjax.drive.signal import (
    bang_bang as bang_bang,
    bspline as bspline,
    chirp as chirp,
    constant as constant,
    cosine as cosine,
    cycloid as cycloid,
    piecewise_constant as piecewise_constant,
    polynomial as polynomial,
    quintic as quintic,
    ramp as ramp,
    recorded as recorded,
    shape as shape,
    shift as shift,
    sine as sine,
    spin_up as spin_up,
    spline as spline,
    stack as stack,
    step as step,
    step_acceleration as step_acceleration,
    trapezoid as trapezoid,
)
from flexjax.formulation import (
    AbstractFormulation as AbstractFormulation,
    AbstractModel as AbstractModel,
    cite as cite,
)
from flexjax.formulation.finite_element import FiniteElement as FiniteElement
from flexjax.formulation.moving_beam import MovingBeam as MovingBeam
from flexjax.formulation.port_hamiltonian import PortHamiltonian as PortHamiltonian
from flexjax.formulation.rigid_arm import RigidArm as RigidArm
from flexjax.formulation.screw_synthesis import ScrewSynthesis as ScrewSynthesis
from flexjax.formulation.transfer_matrix import TransferMatrix as TransferMatrix
from flexjax.io import (
    load_drive as load_drive,
    load_start as load_start,
    load_trajectory as load_trajectory,
    save_trajectory as save_trajectory,
    save_urdf as save_urdf,
    to_csv as to_csv,
    to_dataset as to_dataset,
    to_fmu as to_fmu,
    to_mat as to_mat,
)
from flexjax.io.exudyn import to_exudyn as to_exudyn
from flexjax.mechanism import (
    Energy as Energy,
    Shape as Shape,
    Snapshot as Snapshot,
    Start as Start,
    describe as describe,
)
from flexjax.numerics.solver import (
    TRBDF2 as TRBDF2,
    ChainNewmark as ChainNewmark,
    DiscreteGradient as DiscreteGradient,
    GeneralisedAlpha as GeneralisedAlpha,
    ImplicitMidpoint as ImplicitMidpoint,
    Newmark as Newmark,
)
from flexjax.numerics.term import State as State
from flexjax.robot import (
    BeamConstants as BeamConstants,
    Body as Body,
    Circle as Circle,
    Crosstalk as Crosstalk,
    Damping as Damping,
    Friction as Friction,
    GivenSection as GivenSection,
    Hub as Hub,
    IBeam as IBeam,
    Joint as Joint,
    Link as Link,
    Lowpass as Lowpass,
    Material as Material,
    Motor as Motor,
    Payload as Payload,
    Piece as Piece,
    Rectangle as Rectangle,
    Ripple as Ripple,
    Robot as Robot,
    RobotError as RobotError,
    Sensor as Sensor,
    Stops as Stops,
    Tube as Tube,
    examples as examples,
    load_mjcf as load_mjcf,
    load_robot as load_robot,
    load_urdf as load_urdf,
    paths as paths,
    robot_schema as robot_schema,
    save_robot as save_robot,
)
from flexjax.simulate import (
    Linear as Linear,
    check_gradients as check_gradients,
    compare as compare,
    equilibrium as equilibrium,
    find_equilibrium as find_equilibrium,
    inverse_dynamics as inverse_dynamics,
    inverse_kinematics as inverse_kinematics,
    linearise as linearise,
    modes as modes,
    rest as rest,
    simulate as simulate,
    stepper as stepper,
)
from flexjax.simulate.trajectory import (
    Trajectory as Trajectory,
    measure as measure,
    peak_deflection as peak_deflection,
    residual_vibration as residual_vibration,
    settling_time as settling_time,
    surface_strain as surface_strain,
)
from flexjax.study.free import Free as Free
from flexjax.study.identify import (
    Experiment as Experiment,
    FrequencyResponse as FrequencyResponse,
    Modal as Modal,
    ModalTrack as ModalTrack,
    UnknownStart as UnknownStart,
    compare_models as compare_models,
    datasets as datasets,
    design as design,
    identify as identify,
    load_dataset as load_dataset,
    sample_posterior as sample_posterior,
)
from flexjax.study.optimise import (
    lqr as lqr,
    mpc as mpc,
    optimise as optimise,
    optimise_many as optimise_many,
    shoot as shoot,
)
from flexjax.study.sweep import (
    grid as grid,
    latin_hypercube as latin_hypercube,
    saltelli as saltelli,
    sobol as sobol,
    sobol_indices as sobol_indices,
    sweep as sweep,
)
from flexjax.viz import (
    animate as animate,
    comparison_report as comparison_report,
    identification_report as identification_report,
    move_report as move_report,
    plot as plot,
    plot_style as plot_style,
    save_gltf as save_gltf,
    show as show,
)

__version__: str
