"""Cases of the fuzzed contract, by number: runs of a structure, and nonsense about it."""

import dataclasses
import functools
import gc
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import flexjax as fx
from flexjax.robot import find_leaves
from tests.fuzz import nonsense
from tests.fuzz.judge import Run, Verdict, disagreement, judge
from tests.fuzz.robots import FORMULATIONS, Case, Dice, structure

BLOCK = 100  # cases of one structure
SANE, WILD, BROKEN = 48, 12, 8  # its runs; the rest is nonsense
TRACED = 3  # of three structures, one is run as users do; the others as one traced function


@dataclasses.dataclass
class Result:
    """How a case ended: "right", "coarse", "refused", "status ..." or a failure."""

    case: int
    group: str  # sane, wild, broken, nonsense
    formulation: str
    kind: str
    detail: str
    seconds: float
    apart: float | None = None  # from another formulation, over what is allowed
    share: float | None = None  # the same, over the motion

    @property
    def failed(self) -> bool:
        return self.kind.startswith("wrong")


class End(NamedTuple):
    """Kind and detail of a result, and the distance from another formulation."""

    kind: str
    detail: str = ""
    apart: float | None = None
    share: float | None = None


class Block:
    """The structure that the cases of a block share, compiled once."""

    def __init__(self, seed: int, number: int):
        self.seed, self.number = seed, number
        self.case = structure(seed, number)
        self.name = type(self.case.formulation).__name__
        self.direct = (number + number // len(FORMULATIONS)) % TRACED == 0
        self._model: Any = None
        self._program: Any = None
        self._beside: Any = None

    @property
    def solver(self) -> str:
        if self.case.solver is not None:
            return type(self.case.solver).__name__
        return type(self.model.default_solver(self.case.drive)).__name__

    @property
    def model(self) -> Any:
        if self._model is None:
            self._model = self.case.formulation.bind(self.case.robot)
        return self._model

    @functools.cached_property
    def other(self) -> Case | None:
        """The same case in another formulation, if one supports it; rigid links stay rigid."""
        case, mine = self.case, self.case.formulation
        if getattr(mine, "mass", 1.0) < 1.0:  # lumped masses: another inertia of a rigid link
            return None
        robot = case.robot if mine.deforms else rigid(case.robot)
        options = (
            fx.TransferMatrix(segments=6),
            fx.RigidArm(),
            fx.PortHamiltonian(elements=6),
            fx.ScrewSynthesis(modes=2),
            fx.FiniteElement(elements=3),
            fx.MovingBeam(elements=3),
        )
        for method in options:
            bends = any(x.elastic for x in robot.links)
            same = type(method) is type(mine) or (bends and not method.deforms)
            refused = method.refusals(robot) or method.drive_refusals(robot, case.drive)
            if not (same or refused):
                return dataclasses.replace(case, formulation=method, solver=None, robot=robot)
        return None

    @property
    def whole(self) -> bool:
        """Whether the formulation of the block leaves no terms out."""
        mine = self.case.formulation
        left = [getattr(mine, "variant", ""), getattr(mine, "rotary", None)]
        return "paper" not in left and False not in [*left, getattr(mine, "stiffening", None)]

    def beside(self, case: Case, halvings: int) -> Run | None:
        """A run in the other formulation; None if it is not compared, or ends with a status."""
        if self.other is None:
            return None
        if self._beside is None:
            self._beside = _program(self.other)
        robot = case.robot if self.case.formulation.deforms else rigid(case.robot)
        given = (robot, case.drive, case.start, jnp.asarray(case.times(halvings)))
        run = Run.of(self._beside(*given))
        return run if run.status == fx.Status.ok else None

    def run(self, case: Case, halvings: int = 0) -> Run:
        if self.direct:
            return Run.of(case.simulate(halvings=halvings))
        if self._program is None:
            self._program = _program(case)
        given = (case.robot, case.drive, case.start, jnp.asarray(case.times(halvings)))
        return Run.of(self._program(*given))


def rigid(robot: fx.Robot) -> fx.Robot:
    """The robot with rigid links, as a rigid arm sees it."""
    links = [dataclasses.replace(x, rigid=True, damping=None) for x in robot.links]
    return dataclasses.replace(robot, links=links)


def _program(case: Case) -> Any:
    """A run and what is judged of it, as one traced function of parameters and times."""

    @fx.jit
    def run(robot: Any, drive: Any, start: Any, ts: Any) -> Any:
        traj = fx.simulate(
            case.formulation.bind(robot),
            drive,
            ts,
            substeps=1,
            solver=case.solver,
            start=start,
            stations=2,
            throw=False,
        )
        return _Judged(traj.status, traj.t_fail, traj.tip, traj.q, traj.deflection, traj.energy)

    return run


class _Judged(eqx.Module):
    status: Any
    t_fail: Any
    tip: Any
    q: Any
    deflection: Any
    energy: Any


# ---- numbers of a run ---------------------------------------------------------------------------


def _wild(case: Case, d: Dice) -> tuple[Case, str]:
    """Absurd steps, or one parameter of robot or drive some powers of ten from where it was."""
    if d.value.random() < 0.3:
        factor = 10 ** d.between(-4, 3)
        return dataclasses.replace(case, dt=case.dt * factor), f"dt x {factor:.1e}"
    field = "robot" if d.value.random() < 0.75 else "drive"
    names = [x for x in _parameters(getattr(case, field)) if not set(x.split(".")) & BOUNDED]
    if not names:
        return case, ""
    name = str(d.value.choice(names))
    factor = 10 ** (d.between(1.0, 6.0) * float(d.value.choice([-1, 1])))
    return _scaled(case, field, name, factor), f"{field}.{name} x {factor:.1e}"


def _broken(case: Case, d: Dice) -> tuple[Case, str]:
    """One parameter of robot, drive or start that is not finite or negative, past every check."""
    fields = [x for x in ("robot", "robot", "drive", "start") if _parameters(getattr(case, x))]
    field = str(d.value.choice(fields))
    name = str(d.value.choice(_parameters(getattr(case, field))))
    bad = float(d.value.choice([np.nan, np.inf, -np.inf]))
    if name.split(".")[-1] in POSITIVE and d.value.random() < 0.4:
        bad = -1.0
    return _scaled(case, field, name, bad, set_to=True), f"{field}.{name} = {bad}"


# Parameters with an upper bound, and some with a lower one.
BOUNDED = {"nu", "s", "fraction", "modal"}
POSITIVE = {"length", "E", "rho", "width", "height", "mass", "stiffness", "v_eps", "rotor", "EIz"}


def _parameters(tree: Any) -> list[str]:
    """Paths of the parameters of a tree; limits and a controller's own may be infinite."""
    free = ("limit", "params")
    return [p for p in fx.paths(tree) if not any(word in p for word in free)]


def _scaled(case: Case, field: str, name: str, by: float, set_to: bool = False) -> Case:
    tree = getattr(case, field)
    found = find_leaves(tree, name)[0]
    value = jnp.full_like(found.value, by) if set_to else found.value * by
    return dataclasses.replace(case, **{field: eqx.tree_at(found.leaf_in, tree, value)})


# ---- one case -----------------------------------------------------------------------------------


def results(seed: int, numbers: list[int]) -> Iterator[Result]:
    """The results of cases, block after block; memory is that of one block."""
    block = None
    for number in numbers:
        which, index = divmod(number, BLOCK)
        if block is None or block.number != which:
            block = None
            jax.clear_caches()
            gc.collect()
            block = Block(seed, which)
        yield result(block, index)


def result(block: Block, index: int) -> Result:
    bounds = ((SANE, "sane"), (SANE + WILD, "wild"), (SANE + WILD + BROKEN, "broken"))
    group = next((name for bound, name in bounds if index < bound), "nonsense")
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            end = _refusal(block, index) if group == "nonsense" else _run(block, index, group)
        except Exception as error:  # every other exception is a failure of the contract
            end = End(f"wrong: {type(error).__name__}", str(error)[:600])
    case, seconds = block.number * BLOCK + index, time.process_time() - begun
    return Result(case, group, block.name, end.kind, end.detail, seconds, end.apart, end.share)


def _run(block: Block, index: int, group: str) -> End:
    case = structure(block.seed, block.number, (block.seed, block.number, index, 7))
    d = Dice((block.seed, block.number, index, 11), (block.seed, block.number, index, 13))
    note = ""
    if group == "wild":
        case, note = _wild(case, d)
    if group == "broken":
        case, note = _broken(case, d)
    length = float(sum(np.asarray(x.length) for x in case.robot.links))
    try:
        verdict = judge(lambda k: block.run(case, k), block.solver, length)
    except ValueError as error:
        lacks = nonsense.fault_of(error, r"\w")
        if lacks:
            return End("wrong: a refusal", f"{note} {lacks}")
        if group == "sane":
            return End("wrong: a sane case is refused", str(error))
        return End("refused", note)
    if verdict.kind in ("right", "coarse") and group == "sane":
        return _compared(block, case, verdict)
    if group == "broken" and not verdict.kind.startswith("status"):
        return End("wrong: a broken parameter passes", f"{note} {verdict}")
    return End(verdict.kind, f"{note} {verdict.detail}")


def _compared(block: Block, case: Case, verdict: Verdict) -> End:
    """The verdict, after the same run in another formulation if there is one."""
    k = verdict.halvings
    if (two := block.beside(case, k)) is None or (fine := block.beside(case, k + 1)) is None:
        return End(verdict.kind, verdict.detail)
    assert verdict.runs is not None
    apart, share = disagreement(verdict.runs, (two, fine), block.whole)
    name = type(block.other.formulation).__name__ if block.other else ""
    note = f"beside {name}: {apart:.2g} of what is allowed, {share:.1g} of the motion"
    kind = verdict.kind if apart < 1 else "wrong: formulations disagree"
    return End(kind, f"{note} {verdict.detail}", apart, share)


def _refusal(block: Block, index: int) -> End:
    names = list(nonsense.NONSENSE)
    first = SANE + WILD + BROKEN
    name = names[(block.number * (BLOCK - first) + index - first) % len(names)]
    field, thunk = nonsense.NONSENSE[name]
    shape = (block.seed, block.number, index, 17)
    model = block.model
    try:
        with nonsense.no_tracing():
            made = thunk(Dice(shape, (*shape, 1)), block.case, model)
    except nonsense.Accepted:
        return End("wrong: nonsense is accepted", name)
    except nonsense.REFUSALS as error:
        lacks = nonsense.fault_of(error, field)
        return End("wrong: a refusal", f"{name}: {lacks}") if lacks else End("refused", name)
    return End("wrong: nonsense is accepted", f"{name}: {type(made).__name__}")
