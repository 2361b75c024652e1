"""The files of the physics kernels, and the quick tests that cover each, fastest first."""

from pathlib import Path

from flexjax.formulation import REGISTRY

ROOT = Path(__file__).resolve().parents[2]

# A stage: test files of `make test`, and the words of their tests that are run (all without).
Stage = tuple[tuple[str, ...], str]

# Groups of kernels: the name of each, and how its files begin, the longest of which decides.
GROUPS = {
    "screw": "numerics/screw/",
    "linalg": "numerics/linalg/",
    "solver": "numerics/solver/",
    "mechanism": "mechanism/",
    "mechanism/chain": "mechanism/chain/",
    **{name: f"formulation/{REGISTRY[name].split('.')[-2]}/" for name in REGISTRY},
}

SCREW: tuple[str, ...] = ("tests/screw",)
SCREWS = ("tests/port_hamiltonian/test_inertia.py", "tests/screw/test_components_first.py")
CONDENSE = ("tests/chain/test_condense.py",)
RIGID = ("tests/simulate/test_rigid_arm.py",)
SPRINGS = ("tests/mechanism/test_springs.py", "tests/mechanism/test_friction.py")
PORTS = ("tests/port_hamiltonian/test_elements.py", "tests/port_hamiltonian/test_inertia.py")
PORTS += ("tests/port_hamiltonian/test_newton.py",)
PORTS += ("tests/port_hamiltonian/test_without_shear.py",)
LAWS = ("tests/chain/test_laws.py",)
DENSE = ("tests/linalg/test_structured.py",)
ELEMENTS = ("tests/finite_element/test_rotary.py", "tests/finite_element/test_stiffening.py")
ELEMENTS += ("tests/finite_element/test_kinematics.py",)
MODES = ("tests/screw_synthesis/test_model.py", "tests/screw_synthesis/test_equations.py")
BEAM = ("tests/moving_beam/test_arm.py", "tests/moving_beam/test_shapes.py")
BEAM += ("tests/moving_beam/test_dynamics.py",)
SEGMENTS = ("tests/transfer_matrix/test_bodies.py", "tests/transfer_matrix/test_segments.py")
SEGMENTS += ("tests/transfer_matrix/test_elements.py",)
NEWTON = ("tests/solver", "tests/simulate/test_solvers.py")
STARTS = ("tests/start/test_shape.py", "tests/start/test_start.py")
DESCRIBE = ("tests/mechanism/test_describe.py",)

# Paths from flexjax/, the tests of the first stage, and the formulations whose rows of the
# contract test are the second.
COVERED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "numerics/screw/_components_first": (SCREWS, ("PortHamiltonian",)),
    "numerics/screw/_trig": ((*SCREW, *SEGMENTS), ()),
    "numerics/screw/": (SCREW, ("RigidArm",)),
    "numerics/linalg/_banded": (DENSE, ("FiniteElement",)),
    "numerics/linalg/_element_chain": (DENSE, ("MovingBeam",)),
    "numerics/linalg/_small": ((*DENSE, *CONDENSE), ("FiniteElement",)),
    "numerics/linalg/_krylov": (NEWTON[:1], ("FiniteElement",)),
    "numerics/linalg/": ((*DENSE, *PORTS[2:]), ("PortHamiltonian",)),
    "numerics/solver/_newmark": (NEWTON[1:], ("RigidArm",)),
    "numerics/solver/_chain_newmark": ((), ("TransferMatrix",)),
    "numerics/solver/_implicit_midpoint": (
        ("tests/solver/test_stages.py",),
        ("PortHamiltonian",),
    ),
    "numerics/solver/_discrete_gradient": (
        ("tests/solver/test_discrete_gradient.py",),
        ("RigidArm", "FiniteElement"),
    ),
    "numerics/solver/_limits": (("tests/solver/test_limits.py",), ()),
    "numerics/solver/": (NEWTON, ("RigidArm",)),
    "mechanism/bodies/_describe": (DESCRIBE, ()),
    "mechanism/bodies/_frequencies": (DESCRIBE, ()),
    "mechanism/joints/_bristles": (("tests/mechanism/test_bristles.py",), ()),
    "mechanism/bodies/_sections": ((*DESCRIBE, *ELEMENTS[:1]), ("ScrewSynthesis",)),
    "mechanism/_start": (STARTS, ("FiniteElement",)),
    "mechanism/joints/_hardware": (SPRINGS, ("RigidArm", "FiniteElement")),
    "mechanism/joints/_joint_forces": (SPRINGS, ("RigidArm", "FiniteElement")),
    "mechanism/chain/equations/_condense": (CONDENSE, ("FiniteElement",)),
    "mechanism/chain/": (
        (
            "tests/chain/test_roundoff.py",
            "tests/chain/test_tables.py",
            *RIGID,
            "tests/finite_element/test_lagrange.py",
        ),
        ("RigidArm", "FiniteElement"),
    ),
    "mechanism/joints/_joints": (("tests/mechanism/test_inertia.py", *RIGID), ("RigidArm",)),
    "mechanism/": (RIGID, ("RigidArm", "ScrewSynthesis")),
    "formulation/finite_element/": (
        (*LAWS, *ELEMENTS, "tests/finite_element/test_lagrange.py"),
        ("FiniteElement",),
    ),
    "formulation/screw_synthesis/": ((*LAWS, *MODES[1:], *MODES[:1]), ("ScrewSynthesis",)),
    "formulation/moving_beam/": (BEAM, ("MovingBeam",)),
    "formulation/port_hamiltonian/": (PORTS, ("PortHamiltonian",)),
    "formulation/transfer_matrix/": (SEGMENTS, ("TransferMatrix",)),
}
# After both, whatever else is in the folder of the formulation, and whole simulations in every one.
LAST = ("tests/simulate/test_simulate.py", "tests/simulate/test_equilibrium.py")
LAST += ("tests/simulate/test_linearise.py", "tests/simulate/test_stations.py")
LAST += ("tests/simulate/test_sensors.py", "tests/simulate/test_motion_rates.py")
RULES = "(test_energy_balance or test_order or test_runs)"


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


def group(file: str) -> str:
    """The group of kernels that a file belongs to."""
    inside = file.removeprefix("flexjax/")
    return max((g for g in GROUPS if inside.startswith(GROUPS[g])), key=lambda g: len(GROUPS[g]))


def stages(file: str) -> list[Stage]:
    """The tests that a fault in the file must fail, in the order in which they are run: its own,
    rows of the contract, whole simulations. A stage may be empty."""
    inside = file.removeprefix("flexjax/").removesuffix(".py")
    match = max((key for key in COVERED if inside.startswith(key)), key=len)
    first, contracts = COVERED[match]
    words = " or ".join(f"{name} and quick and {RULES}" for name in contracts)
    second = ("tests/test_contract.py",) if contracts else ()
    folder = (f"tests/{inside.split('/')[1]}",) if inside.startswith("formulation/") else ()
    return [(first, ""), (second, words), ((*folder, *LAST), "")]
