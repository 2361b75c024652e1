"""The registries: formulations (public name -> dotted name of the class), signals, data sets.

A new formulation joins with one line. The tables import nothing, so `import flexjax` stays lazy
and the command line checks names at once.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path

REGISTRY = {
    "RigidArm": "flexjax.formulation.rigid_arm.RigidArm",
    "ScrewSynthesis": "flexjax.formulation.screw_synthesis.ScrewSynthesis",
    "FiniteElement": "flexjax.formulation.finite_element.FiniteElement",
    "MovingBeam": "flexjax.formulation.moving_beam.MovingBeam",
    "TransferMatrix": "flexjax.formulation.transfer_matrix.TransferMatrix",
    "PortHamiltonian": "flexjax.formulation.port_hamiltonian.PortHamiltonian",
}

# Signals that drive files and the command line may name.
SIGNALS = tuple(
    "constant quintic step_acceleration bang_bang piecewise_constant trapezoid cosine cycloid "
    "spin_up spline bspline recorded step ramp sine polynomial chirp".split()
)

# Robots and recordings of the shipped data sets.
DATASETS = Path(__file__).parent / "study" / "identify" / "records" / "data"


def dataset_names() -> list[str]:
    """Names of the shipped data sets."""
    return sorted(path.stem for path in DATASETS.glob("*.toml"))


def check_formulation_name(name: str) -> None:
    """Refuse a name that is not registered."""
    if name not in REGISTRY:
        near = difflib.get_close_matches(name, REGISTRY, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"formulation: {name!r} is unknown; expected one of {', '.join(REGISTRY)}.{hint}"
        )


def check_signal_name(where: str, name: str) -> None:
    """Refuse a signal that files and the command line may not name."""
    if name not in SIGNALS:
        near = difflib.get_close_matches(name, SIGNALS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(SIGNALS)}."
        raise ValueError(f"{where}: {name!r} is no signal; {hint}")


def unsupported(name: str, subject: str, refusals: list[str], others: Iterable[str]) -> ValueError:
    """The error of a formulation that does not support ``subject``; ``others`` do."""
    listed = "\n".join(f"  - {r}" for r in refusals)
    return ValueError(
        f"{name} does not support {subject}:\n{listed}\n"
        f"Supported by: {', '.join(others) or 'no formulation'}."
    )


def refused_by_all(robot: str, refused: dict[str, list[str]]) -> ValueError:
    """The error where no formulation supports a robot with its drive: name -> refusals."""
    listed = "\n".join(f"  - {name}: {'; '.join(why)}" for name, why in refused.items())
    return ValueError(f"robot {robot!r}: no formulation supports it:\n{listed}")
