"""flexjax: differentiable simulation of flexible-link robots.

Importing this package imports no other: each public name is fetched from its module at first use
(PEP 562), so that `flexjax --help` answers at once and no global setting of jax is touched.
"""

import sys
from importlib import import_module
from types import ModuleType

from flexjax._registry import REGISTRY as _REGISTRY

__version__ = "0.2.0"

# The public names and the module that each one lives in: the whole public interface.
_EXPORTS: dict[str, str] = {
    name: module
    for module, names in {
        "flexjax.robot": """
            Robot Link Joint Payload Sensor Material Damping Piece Body BeamConstants
            Rectangle Circle Tube IBeam GivenSection Friction Hub Crosstalk Lowpass Motor Ripple
            Stops RobotError load_robot save_robot load_urdf load_mjcf paths examples robot_schema
        """,
        "flexjax.drive.signal": """
            constant quintic step_acceleration bang_bang piecewise_constant trapezoid cosine cycloid
            spin_up spline bspline recorded step ramp sine polynomial chirp shift stack
            shape
        """,
        "flexjax.drive": "Drive Motion Effort Voltage PD Feedback Sampled Load Base",
        "flexjax.formulation": f"""
            {" ".join(_REGISTRY)} cite AbstractFormulation AbstractModel
        """,
        "flexjax.numerics.solver": """
            Newmark GeneralisedAlpha DiscreteGradient ChainNewmark ImplicitMidpoint TRBDF2
        """,
        "flexjax.numerics.term": "State",
        "flexjax.simulate.trajectory": """
            Trajectory measure residual_vibration settling_time peak_deflection surface_strain
        """,
        "flexjax.mechanism": "describe Energy Snapshot Shape Start",
        "flexjax._results": "Status SimulationError EquilibriumError",
        "flexjax._files": "FileError",
        "flexjax.simulate": """
            simulate modes equilibrium find_equilibrium rest linearise compare check_gradients
            inverse_dynamics inverse_kinematics Linear stepper
        """,
        "flexjax._compile": "jit grad value_and_grad",
        "flexjax._configure": "configure",
        "flexjax.study.free": "Free",
        "flexjax.study.identify": """
            Experiment UnknownStart Modal ModalTrack FrequencyResponse identify
            compare_models design sample_posterior datasets load_dataset
        """,
        "flexjax.study.optimise": "optimise optimise_many lqr mpc shoot",
        "flexjax.study.sweep": "sweep grid latin_hypercube sobol saltelli sobol_indices",
        "flexjax.io": """
            load_drive load_start to_dataset save_trajectory load_trajectory to_csv to_mat save_urdf
            to_fmu
        """,
        "flexjax.io.exudyn": "to_exudyn",
        "flexjax.viz": """
            plot plot_style animate show identification_report comparison_report move_report
            save_gltf
        """,
    }.items()
    for name in names.split()
}

__all__ = ["__version__", *_EXPORTS]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(
            f"module 'flexjax' has no attribute {name!r}; dir(flexjax) lists the public names"
        )
    value = getattr(import_module(module), name)
    globals()[name] = value  # found without this function from now on
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Keeps `flexjax.simulate` the function; importing the folder of that name would replace it."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _EXPORTS and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
