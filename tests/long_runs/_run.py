"""One long run in equal parts, each from the final state of the one before it."""

import dataclasses
import time
from collections.abc import Callable

import jax
import numpy as np

import flexjax as fx
from flexjax.formulation import REGISTRY
from tests.conftest import resident
from tests.contract_cases import SMALLEST, pendulum
from tests.validation import _beams


@dataclasses.dataclass(frozen=True)
class LongRun:
    """What is run, and the place that a constraint holds: (frames of all links) -> distance."""

    model: Callable[[], object]
    gap: Callable[[np.ndarray], float]
    start: dict = dataclasses.field(default_factory=dict)
    dt: float = 1e-3


def _root(frames: np.ndarray) -> float:
    """Distance of the link's base from the joint."""
    return float(np.linalg.norm(frames[0, 0, :3]))


def _loop(frames: np.ndarray) -> float:
    """Opening of the loop of the four-bar, and of the joints between its links."""
    place = np.array([_beams.REFERENCE["four_bar"]["ground"], 0.0, 0.0])
    gaps = [frames[-1, -1, :3] - place, *(frames[1:, 0, :3] - frames[:-1, -1, :3])]
    return float(max(np.linalg.norm(g) for g in gaps))


RUNS = {name: LongRun(lambda n=name: SMALLEST[n]().bind(pendulum()), _root) for name in REGISTRY}
RUNS["four-bar"] = LongRun(lambda: fx.PortHamiltonian().bind(_beams.four_bar()), _loop)


def long_run(name: str, steps: int, repeated: int, parts: int = 10) -> dict:
    """Drifts of a run and the steps of a second one that are bitwise the same.

    Energies are relative to the largest kinetic energy at the ends of the parts.
    """
    case = RUNS[name]
    model, size = case.model(), steps // parts
    ts = np.array([0.0, size * case.dt])
    began = time.process_time()
    states = [None]
    balances, kinetic, gaps, memory = [], [], [], []
    for k in range(parts):
        run = fx.simulate(model, None, ts, substeps=size, stations=2, start=states[-1])
        states.append(run.final)
        balances += np.asarray(run.energy.balance)[k > 0 :].tolist()
        kinetic.append(float(np.max(np.asarray(run.energy.kinetic))))
        gaps.append(case.gap(np.asarray(run.frames)[-1]))
        memory.append(resident() / 1e6)
        if k == 1:  # the second part is compiled too: it starts from a state
            compiled = time.process_time()
    seconds = (time.process_time() - compiled) / (steps - 2 * size)
    drift = np.abs(np.array(balances) - balances[0]) / max(kinetic)
    same, at = 0, None
    for k in range(repeated // size):
        run = fx.simulate(model, None, ts, substeps=size, stations=2, start=at)
        pairs = zip(jax.tree.leaves(run.final), jax.tree.leaves(states[k + 1]), strict=True)
        if not all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs):
            break
        same, at = same + size, run.final
    return {
        "steps": steps,
        "dt": case.dt,
        "microseconds": 1e6 * seconds,
        "energy_first": float(drift[1]),  # after the first part
        "energy": float(drift.max()),
        "constraint": max(gaps),
        "memory_growth": memory[-1] - memory[1],
        "repeated": same,
        "asked": repeated // size * size,
        "cpu_seconds": time.process_time() - began,
    }
