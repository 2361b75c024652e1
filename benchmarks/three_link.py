"""Time at equal tip error against Exudyn's ANCF cable: the three links of paper 002 (Table III).

    python -m benchmarks.three_link [--repeats 3] [--error 1e-4] [--passes 1]

The arm with free joints is released horizontally under gravity, so neither code calls Python during
its run. Both codes are refined in space and time, each towards its own extrapolated limit. The
cheapest settings below the given tip error are compared in CPU time, which is insensitive to other
load. The benchmark also measures the time per step over the number of segments, and a batch of 256
runs against a single run.
"""

import argparse
import importlib.util
import statistics
import time

import numpy as np

from benchmarks import _harness

END = 0.4
LENGTH, SIDE, E, RHO = 0.254, 0.00508, 71e9, 2710.0
GRAVITY = 9.81


def arm():
    import flexjax as fx

    material = fx.Material(E=E, nu=0.33, rho=RHO)
    links = [
        fx.Link(f"link{i}", LENGTH, section=fx.Rectangle(SIDE, SIDE), material=material)
        for i in (1, 2, 3)
    ]
    return fx.Robot.serial(links, name="three links", gravity=(0.0, -GRAVITY, 0.0))


def flexjax_tip(segments: int, steps: int, passes: int | None = None):
    """A function of (robot, initial angle) that returns the tip at END, observed only there."""
    import jax.numpy as jnp

    import flexjax as fx

    method = fx.TransferMatrix(segments=segments, rotary=False, passes=passes)

    def tip(robot, angle):
        traj = fx.simulate(
            method.bind(robot),
            None,
            jnp.array([0.0, END]),
            substeps=steps,
            start={"joint1": angle},
            stations=2,
            throw=False,
        )
        return traj.tip[-1, :2]

    return tip


def exudyn_tip(elements: int, steps: int) -> tuple[np.ndarray, float, float]:
    """Tip, wall time and CPU time of three ANCF cables pinned to each other."""
    import exudyn
    import exudyn.itemInterface as eii

    mbs = exudyn.SystemContainer().AddSystem()
    h = LENGTH / elements
    area, second = SIDE**2, SIDE**4 / 12
    ground = mbs.AddNode(eii.NodePointGround())
    previous = None
    for link in range(3):
        nodes = [
            mbs.AddNode(
                eii.NodePoint2DSlope1(referenceCoordinates=[link * LENGTH + i * h, 0.0, 1.0, 0.0])
            )
            for i in range(elements + 1)
        ]
        for a, b in zip(nodes[:-1], nodes[1:], strict=True):
            body = mbs.AddObject(
                eii.ObjectANCFCable2D(
                    nodeNumbers=[a, b],
                    length=h,
                    massPerLength=RHO * area,
                    bendingStiffness=E * second,
                    axialStiffness=E * area,
                )
            )
            mbs.AddLoad(
                eii.Gravity(
                    markerNumber=mbs.AddMarker(eii.MarkerBodyMass(bodyNumber=body)),
                    loadVector=[0.0, -GRAVITY, 0.0],
                )
            )
        for c in (0, 1):
            inner = (
                eii.MarkerNodeCoordinate(nodeNumber=ground, coordinate=0)
                if previous is None
                else eii.MarkerNodeCoordinate(nodeNumber=previous, coordinate=c)
            )
            markers = [
                mbs.AddMarker(inner),
                mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=nodes[0], coordinate=c)),
            ]
            mbs.AddObject(eii.CoordinateConstraint(markerNumbers=markers))
        previous = nodes[-1]
    mbs.Assemble()
    settings = exudyn.SimulationSettings()
    settings.solution.file.write = False
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.endTime = END
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.adaptiveStep = False
    settings.timeIntegration.newton.useModifiedNewton = True
    settings.timeIntegration.newton.absoluteTolerance = 1e-6
    settings.timeIntegration.newton.relativeTolerance = 1e-8
    settings.timeIntegration.generalizedAlpha.computeInitialAccelerations = True
    settings.timeIntegration.generalizedAlpha.useNewmark = True
    settings.timeIntegration.generalizedAlpha.useIndex2Constraints = True
    settings.linearSolver.solverType = exudyn.LinearSolverType.EigenSparse
    wall, cpu = time.perf_counter(), time.process_time()
    if not mbs.SolveDynamic(settings):
        raise RuntimeError(f"Exudyn did not finish: {elements} elements, {steps} steps")
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return (
        np.asarray(mbs.GetNodeOutput(previous, exudyn.OutputVariableType.Position))[:2],
        wall,
        cpu,
    )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--error", type=float, default=1e-4)
    parser.add_argument("--passes", type=int, default=None)
    args = parser.parse_args(argv)

    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    _harness.fresh_compilations()
    _harness.show_environment()
    robot, zero, rows = arm(), jnp.asarray(0.0), []

    ours = {}
    for segments, steps in (
        (5, 100),
        (10, 100),
        (10, 200),
        (10, 400),
        (20, 400),
        (20, 800),
        (40, 1600),
    ):
        tip, timing = _harness.measure(
            flexjax_tip(segments, steps, args.passes), robot, zero, repeats=args.repeats
        )
        ours[segments, steps] = np.asarray(tip), timing
    fine, coarse = ours[40, 1600][0], ours[20, 800][0]
    limit = fine + (fine - coarse) / 3
    for (segments, steps), (tip, timing) in ours.items():
        rows.append(
            _harness.row(
                "TransferMatrix",
                segments=segments,
                steps=steps,
                tip=tip.tolist(),
                error=float(np.linalg.norm(tip - limit)),
                value=timing,
            )
        )
    if importlib.util.find_spec("exudyn"):
        theirs = {}
        for elements, steps in (
            (2, 100),
            (2, 200),
            (2, 300),
            (2, 400),
            (4, 400),
            (8, 800),
            (16, 1600),
        ):
            runs = [exudyn_tip(elements, steps) for _ in range(args.repeats)]
            theirs[elements, steps] = (
                runs[-1][0],
                _harness.Timing(
                    0.0, *(statistics.median(r[k] for r in runs) for k in (1, 2)), args.repeats
                ),
            )
        fine, coarse = theirs[16, 1600][0], theirs[8, 800][0]
        their_limit = fine + (fine - coarse) / 3
        distance = np.linalg.norm(limit - their_limit)
        print(f"limits: TransferMatrix {limit}, Exudyn {their_limit}, distance {distance:.1e} m")
        for (elements, steps), (tip, timing) in theirs.items():
            error = float(np.linalg.norm(tip - their_limit))
            rows.append(
                _harness.row(
                    "exudyn ANCFCable2D",
                    segments=elements,
                    steps=steps,
                    tip=tip.tolist(),
                    error=error,
                    value=timing,
                )
            )
    else:
        print("exudyn is not installed (pip install 'flexjax[outside]'): no ratio")
    print(f"\n{'':22}{'per link':>9}{'steps':>7}{'error [m]':>12}{'CPU':>11}{'compile':>10}")
    for r in rows:
        print(
            f"{r['name']:22}{r['segments']:9}{r['steps']:7}{r['error']:12.2e}"
            f"{1e3 * r['value']['cpu']:8.2f} ms{r['value']['compile']:8.2f} s"
        )
    best = {}
    for r in rows:
        if r["error"] <= args.error:
            best.setdefault(r["name"], []).append(r["value"]["cpu"])
    if len(best) == 2:
        ratio = min(best["TransferMatrix"]) / min(best["exudyn ANCFCable2D"])
        print(f"at a tip error of {args.error:g} m: {ratio:.2f} times the CPU time of Exudyn")
    sizes = (20, 80, 320, 1280)
    times = [
        _harness.measure(flexjax_tip(n, 50, args.passes), robot, zero, repeats=args.repeats)[1].cpu
        / 50
        for n in sizes
    ]
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    listed = ", ".join(
        f"{3 * n} segments {1e6 * t:.0f} us" for n, t in zip(sizes, times, strict=True)
    )
    print(f"time per step: {listed}; slope {slope:.2f}")
    single = flexjax_tip(20, 200, args.passes)
    one = _harness.measure(single, robot, zero, repeats=args.repeats)[1].cpu
    many = (
        _harness.measure(
            jax.vmap(single, (None, 0)), robot, jnp.linspace(0.0, 0.5, 256), repeats=args.repeats
        )[1].cpu
        / 256
    )
    print(
        f"batch of 256, CPU time per run: {1e3 * many:.2f} ms, single run {1e3 * one:.2f} ms "
        f"(factor {one / many:.1f})"
    )
    extra = dict(slope=float(slope), batch_gain=one / many, ratio=ratio if len(best) == 2 else None)
    print(f"written to {_harness.save('three_link', rows, **extra)}")


if __name__ == "__main__":
    main()
