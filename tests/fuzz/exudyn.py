"""Random serial arms in flexjax and in Exudyn: ``python -m tests.fuzz.exudyn --robots 50``.

Arms of one to three elastic links in the plane and in space, with payloads, elastic joints, weight,
a moving base, motions and controllers, for an eighth of a second. Both codes are refined and
extrapolated: flexjax in its steps, Exudyn in beams and steps at once. The difference is the largest
of the tips over the times, over the length of the arm. ``--page`` writes
docs/validation_exudyn.md.

Robots of one structure share their programs: ``--structures`` of them.
"""

import argparse
import dataclasses
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

END, OUTPUTS = 0.12, 13
PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation_exudyn.md"
WANTED = 1e-4
# Coarse and fine: beams of each link, steps of Exudyn [s].
BEAMS, STEPS = (8, 16), (2.5e-4, 1.25e-4)
DT = 5e-4  # of flexjax, and half of it


@dataclasses.dataclass
class Compared:
    """One robot in one formulation: difference from Exudyn, and what refining changes in either
    code, over the length of the arm; the largest deflection, over its link's length."""

    seed: int
    structure: int
    space: bool
    formulation: str
    apart: float
    own: float
    theirs: float
    bent: float
    note: str = ""


def arm(shape: int, seed: int) -> tuple[Any, Any]:
    """Robot and drive; ``shape`` decides what is compiled, ``seed`` the numbers."""
    import flexjax as fx
    from tests.fuzz.robots import Dice

    d = Dice((shape, 41), (shape, seed, 43))
    space = bool(shape % 2)
    count = (2, 1, 3, 2)[shape % 4]
    links, joints, payloads = [], [], []
    for i in range(count):
        length = d.between(0.25, 0.5)
        side = length * d.log(0.02, 0.035)
        E, rho = d.log(2e10, 2e11), d.log(1500.0, 5000.0)
        # No shear, which four of the formulations leave out.
        A, I = side**2, side**4 / 12
        square = fx.BeamConstants(
            EA=E * A, EIy=E * I, EIz=1.3 * E * I, GJ=0.6 * E * I, rhoA=rho * A,
            rhoIx=2 * rho * I, rhoIy=rho * I, rhoIz=rho * I,
        )  # fmt: skip
        links.append(fx.Link(f"link{i}", length, constants=square))
        given: dict[str, Any] = {}
        if space:
            given = dict(axis=d.direction(), rotation=d.between(-0.6, 0.6, 3))
        else:
            given = dict(rotation=[0.0, 0.0, d.between(-0.8, 0.8)])
        offset = d.between(-0.03, 0.03, 3)
        given["offset"] = offset if space else [*offset[:2], 0.0]
        given["damping"] = d.log(0.01, 0.1)
        given["hub"] = fx.Hub(d.log(0.02, 0.2), d.log(1e-4, 2e-3))
        if i == count - 1 and shape % 3 == 0:
            given["stiffness"] = d.log(100.0, 600.0)
        parent = links[i - 1].name if i else "ground"
        joints.append(fx.Joint(f"joint{i}", "revolute", parent, links[i].name, **given))
    inertia, z = d.log(1e-5, 1e-4), d.between(-0.01, 0.01) if space else 0.0
    tool = dict(inertia=inertia, offset=[*d.between(-0.01, 0.01, 2), z])
    payloads.append(fx.Payload("tool", links[-1].name, d.log(0.02, 0.2), **tool))
    if shape % 2 == 0:
        payloads.append(fx.Payload("inside", links[0].name, d.log(0.02, 0.2), s=0.5))
    robot = fx.Robot(
        "random",
        links,
        joints,
        payloads,
        gravity=[d.between(-3, 3), d.between(-10, -5), d.between(-3, 3) if space else 0.0],
        planar=not space,
    )
    acts: dict[str, Any] = {}
    for i, joint in enumerate(joints):
        goal, gains = d.between(-0.3, 0.3), (d.log(0.5, 10.0), d.log(0.01, 0.2))
        if joint.flexible or (i == 0 and shape % 4 == 2):
            acts[joint.name] = fx.Motion(fx.quintic(0.0, goal, d.between(0.25, 0.5)))
        elif i:
            acts[joint.name] = fx.PD(*gains, fx.quintic(0.0, goal, d.between(0.2, 0.4)))
    base = None
    if shape % 4 in (0, 2):  # TransferMatrix has no moving base in space
        shift = fx.quintic(0.0, d.between(-0.05, 0.05), d.between(0.25, 0.5))
        turn = fx.quintic(0.0, d.between(-0.2, 0.2), d.between(0.25, 0.5))
        zero = fx.constant(0.0)
        base = fx.Base(translation=fx.stack([shift, -0.6 * shift, zero]), angle=turn)
    return robot, fx.Drive(joints=acts, base=base)


def formulations() -> tuple[Any, ...]:
    """Defaults of every formulation of elastic arms."""
    import flexjax as fx

    return (
        fx.ScrewSynthesis(),
        fx.FiniteElement(),
        fx.TransferMatrix(),
        fx.MovingBeam(),
        fx.PortHamiltonian(),
    )


def outside(robot: Any, drive: Any, ts: np.ndarray) -> tuple[np.ndarray, float]:
    """The tip in Exudyn, extrapolated from two refinements, and the change of the last."""
    import flexjax as fx

    coarse, fine = (
        fx.to_exudyn(robot, drive, elements=n, shear=False).run(ts, dt).tip
        for n, dt in zip(BEAMS, STEPS, strict=True)
    )
    change = float(np.max(np.linalg.norm(fine - coarse, axis=1))) / 3
    return fine + (fine - coarse) / 3, change


def compared(shape: int, seeds: list[int]) -> Iterator[Compared]:
    """All formulations that support the arms of a structure."""
    import jax

    import flexjax as fx

    ts = np.linspace(0.0, END, OUTPUTS)
    cases = {}
    for seed in seeds:
        robot, drive = arm(shape, seed)
        cases[seed] = robot, drive, *outside(robot, drive, ts)
    for method in formulations():
        robot, drive, *_ = cases[seeds[0]]
        if method.refusals(robot) or method.drive_refusals(robot, drive):
            continue
        program = _program(method)
        for seed, (robot, drive, tip, theirs) in cases.items():
            # The same program for both steps: half the span at a time.
            full = sum(float(link.length) for link in robot.links)
            coarse, fine = (program(robot, drive, ts, n) for n in (0, 1))
            if any(int(x[0]) for x in (coarse, fine)):
                names = [fx.Status(int(x[0])).name for x in (coarse, fine)]
                yield Compared(
                    seed, shape, bool(shape % 2), type(method).__name__, np.nan, np.nan,
                    theirs / full, np.nan, " ".join(names),
                )  # fmt: skip
                continue
            a, b = np.asarray(coarse[1]), np.asarray(fine[1])
            own = float(np.max(np.linalg.norm(b - a, axis=1))) / 3
            apart = float(np.max(np.linalg.norm(b + (b - a) / 3 - tip, axis=1)))
            bent = np.max(np.linalg.norm(np.asarray(fine[2]), axis=-1), axis=(0, 2))
            bent = float(np.max(bent / np.array([float(x.length) for x in robot.links])))
            yield Compared(
                seed, shape, bool(shape % 2), type(method).__name__,
                apart / full, own / full, theirs / full, bent,
            )  # fmt: skip
        jax.clear_caches()


def _program(method: Any) -> Any:
    import functools

    import flexjax as fx

    @functools.partial(fx.jit, static_argnums=3)
    def run(robot: Any, drive: Any, ts: Any, halvings: int) -> Any:
        steps = round(float(END / (OUTPUTS - 1)) / DT) * 2**halvings
        traj = fx.simulate(method.bind(robot), drive, ts, substeps=steps, stations=2, throw=False)
        return traj.status, traj.tip, traj.deflection

    return run


def table(found: list[Compared]) -> str:
    """Distribution of the differences by formulation, as Markdown."""
    rows = [
        "| formulation | robots | median | 90 % | largest | within 1e-4 | changes when refined | "
        "largest deflection |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for where, space in (("in the plane", False), ("in space", True)):
        for name in sorted({x.formulation for x in found}):
            some = [x for x in found if x.formulation == name and x.space == space]
            good = [x for x in some if np.isfinite(x.apart)]
            if not some:
                continue
            apart = np.array([x.apart for x in good]) if good else np.array([np.nan])
            middle, most = np.quantile(apart, 0.5), np.quantile(apart, 0.9)
            rest = max((x.own + x.theirs for x in good), default=np.nan)
            rows.append(
                f"| {name}, {where} | {len(some)} | {middle:.1e} | {most:.1e} | "
                f"{np.max(apart):.1e} | {np.mean(apart < WANTED):.0%} | {rest:.0e} | "
                f"{max((x.bent for x in good), default=np.nan):.1%} |"
            )
    return "\n".join(rows)


HEAD = """# Against Exudyn

Generated by `python -m tests.fuzz.exudyn --robots {robots} --page`: {robots} random serial arms of
{structures} structures in every formulation, with its default options, and in
[Exudyn](https://github.com/jgerstmayr/EXUDYN) through `fx.to_exudyn`. The arms have one to three
elastic links, payloads at the tip and inside, hubs, damped and elastic joints, weight, motions and
controllers, and some a moving base. They move for {end} s. The links have no damping, because
Exudyn's spatial beam ignores it.

The difference is the largest distance between the tips over the times, over the length of the arm.
Both codes are refined twice and extrapolated; the column *changes when refined* shows the largest
remaining change of the two. The number of elements, modes or segments is the default one and is not
refined.

"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robots", type=int, default=50)
    parser.add_argument("--structures", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first structure")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args()
    from tests.fuzz.runs import setting

    setting()
    begun, found = time.perf_counter(), []
    for shape in range(args.first, args.first + args.structures):
        seeds = list(range(shape - args.first, args.robots, args.structures))
        for one in compared(shape, seeds):
            found.append(one)
            print(one, flush=True)
            if args.json:
                with args.json.open("a") as f:
                    f.write(json.dumps(vars(one)) + "\n")
    print(table(found))
    print(
        f"{args.robots} robots, {args.structures} structures, {time.perf_counter() - begun:.0f} s"
    )
    if args.page:
        head = HEAD.format(robots=args.robots, structures=args.structures, end=END)
        PAGE.write_text(head + table(found) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
