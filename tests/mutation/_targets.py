"""The files of the physics kernels, and the quick tests that cover each, fastest first."""

from pathlib import Path

from flexjax.formulation import REGISTRY

ROOT = Path(__file__).resolve().parents[2]

# A stage: test files of `make test`, and the words of their tests that are run (all without).
Stage = tuple[tuple[str, ...], str]

LINKS = {REGISTRY[name].split(".")[-2]: name for name in REGISTRY}  # folder -> formulation

SCREW: tuple[str, ...] = ("tests/screw",)
CHAIN = ("tests/chain", "tests/screw_synthesis/test_equations.py")
START = ("tests/start/test_start.py", "tests/start/test_shape.py")
RIGID = ("tests/simulate/test_rigid_arm.py", "tests/simulate/test_quantities.py")
PORTS = ("tests/port_hamiltonian/test_inertia.py", "tests/port_hamiltonian/test_newton.py")
ELEMENTS = ("tests/finite_element/test_frequencies.py", "tests/finite_element/test_rotary.py")
ELEMENTS += ("tests/finite_element/test_stiffening.py", "tests/finite_element/test_lagrange.py")
BEAM = ("tests/moving_beam/test_generator.py", "tests/moving_beam/test_shapes.py")
NEWTON = ("tests/solver", "tests/simulate/test_solvers.py", "tests/simulate/test_motion_rates.py")
PORTS_WIDE = ("tests/port_hamiltonian/test_statics_modes.py", "tests/port_hamiltonian")
HARDWARE = ("tests/mechanism/test_friction.py", "tests/transfer_matrix/test_limits.py")
DESCRIBE = ("tests/mechanism/test_describe.py",)

# Paths from flexjax/, the tests of the first stage, and the formulations whose rows of the
# contract test are the second.
COVERED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "numerics/screw/_components_first": ((*SCREW, *PORTS), ("PortHamiltonian",)),
    "numerics/screw/_trig": ((*SCREW, "tests/transfer_matrix/test_segments.py"), ()),
    "numerics/screw/": ((*SCREW, *START), ("RigidArm", "ScrewSynthesis", "TransferMatrix")),
    "numerics/linalg/_banded": (ELEMENTS, ("FiniteElement",)),
    "numerics/linalg/_element_chain": (BEAM, ("MovingBeam",)),
    "numerics/linalg/_small": (("tests/chain", *ELEMENTS), ("FiniteElement", "ScrewSynthesis")),
    "numerics/linalg/_krylov": (NEWTON, ("PortHamiltonian", "FiniteElement")),
    "numerics/linalg/": ((*PORTS, *PORTS_WIDE), ("PortHamiltonian",)),
    "numerics/solver/_newmark": (NEWTON[1:], ("MovingBeam", "RigidArm")),
    "numerics/solver/_chain_newmark": (("tests/transfer_matrix/test_time.py",), ()),
    "numerics/solver/_implicit_midpoint": ((*PORTS, *NEWTON), ("PortHamiltonian",)),
    "numerics/solver/_discrete_gradient": (NEWTON, ("RigidArm", "FiniteElement")),
    "numerics/solver/_limits": (("tests/test_transformations.py",), ("PortHamiltonian",)),
    "numerics/solver/": (NEWTON, ("FiniteElement", "PortHamiltonian")),
    "mechanism/bodies/_describe": (DESCRIBE, ()),
    "mechanism/bodies/_frequencies": (DESCRIBE, ()),
    "mechanism/joints/_bristles": (("tests/mechanism/test_bristles.py",), ()),
    "mechanism/bodies/_sections": ((*DESCRIBE, *ELEMENTS), ("ScrewSynthesis", "PortHamiltonian")),
    "mechanism/_start": (START, ("MovingBeam", "FiniteElement")),
    "mechanism/_snapshot": (RIGID, ("RigidArm",)),
    "mechanism/joints/_hardware": ((*HARDWARE, *RIGID), ("RigidArm", "PortHamiltonian")),
    "mechanism/joints/_joint_forces": ((*HARDWARE, *RIGID), ("RigidArm", "ScrewSynthesis")),
    "mechanism/chain/geometry/_layout": ((*CHAIN, *RIGID), ("RigidArm", "FiniteElement")),
    "mechanism/chain/": ((*CHAIN, *RIGID, *HARDWARE, *START), ("RigidArm", "FiniteElement")),
    "mechanism/": ((*RIGID, *HARDWARE, *START), ("RigidArm", "ScrewSynthesis", "PortHamiltonian")),
    **{f"formulation/{folder}/": ((f"tests/{folder}",), (name,)) for folder, name in LINKS.items()},
}
# After both, whatever runs whole simulations in every formulation.
LAST = ("tests/simulate/test_simulate.py", "tests/simulate/test_equilibrium.py")
LAST += ("tests/simulate/test_linearise.py", "tests/simulate/test_stations.py")
LAST += ("tests/simulate/test_sensors.py", "tests/simulate/test_motion_rates.py")


def files() -> list[str]:
    """Every file of the physics kernels, from the root of the repository."""
    package = ROOT / "flexjax"
    found = [
        path
        for folder in ("numerics/screw", "numerics/linalg", "numerics/solver", "mechanism")
        for path in (package / folder).rglob("*.py")
    ]
    found += (package / "formulation").glob("*/_link.py")
    names = [p.relative_to(ROOT).as_posix() for p in found if p.name != "__init__.py"]
    return sorted(names)


def stages(file: str) -> list[Stage]:
    """The tests that a fault in the file must fail, in the order in which they are run."""
    inside = file.removeprefix("flexjax/").removesuffix(".py")
    match = max((key for key in COVERED if inside.startswith(key)), key=len)
    first, contracts = COVERED[match]
    found: list[Stage] = [(first, "")]
    if contracts:
        words = " or ".join(f"{name} and quick" for name in contracts)
        found.append((("tests/test_contract.py",), words))
    return [*found, (LAST, "")]
