"""Cost of a port-Hamiltonian step over elements and links, and of a batch compared to Exudyn.

    python -m benchmarks.port_hamiltonian_cost [--elements 10 100] [--links 2 4 8] [--batch 256]

A slope is the exponent of the CPU time per implicit step of planar metal links, from a log-log fit
to a scan without outputs. The batch simulates `benchmarks.metal_link` (16 elements, 1000 steps)
with different Young's moduli. Its time per run is divided by Exudyn's time for one run; both are
medians of interleaved runs.
"""

import argparse

import numpy as np

from benchmarks import _exudyn, _harness, metal_link

STEPS = 100


def chain(links: int, length: float = 1.0):
    import flexjax as fx

    one = metal_link.robot(metal_link.Link()).links[0]
    parts = [
        fx.Link(f"link{i}", length, section=one.section, material=one.material)
        for i in range(links)
    ]
    return fx.Robot.serial(
        parts, name=f"{links} metal links", gravity=(0.0, -metal_link.GRAVITY, 0.0)
    )


def step_cost(robot, elements: int, repeats: int = 5) -> dict:
    """Compile time, and CPU time per step after the release."""
    import diffrax
    import jax
    import jax.numpy as jnp

    import flexjax as fx
    from flexjax.formulation import Start

    model, drive, dt = fx.PortHamiltonian(elements=elements).bind(robot), fx.Drive(), 1e-3
    solver = model.default_solver(drive)

    def run(model):
        term = model.term(drive)
        y = model.initial_state(drive, jnp.zeros(()), Start())
        memory = solver.init(term, 0.0, dt, y, None)

        def one(carry, t):
            y, memory, ok = carry
            y, _, _, memory, result = solver.step(term, t, t + dt, y, None, memory, False)
            return (y, memory, ok & (result == diffrax.RESULTS.successful)), None

        (y, _, ok), _ = jax.lax.scan(
            one,
            (y, memory, jnp.asarray(True)),
            dt * jnp.arange(STEPS, dtype=jnp.result_type(float)),
        )
        return y.mech.x[:, -1, -1], ok

    (tip, ok), timing = _harness.measure(run, model, repeats=repeats)
    return _harness.row(
        robot.name,
        elements=elements,
        links=len(robot.links),
        value=timing,
        step=timing.cpu / STEPS,
        converged=bool(ok),
        tip=[float(x) for x in tip],
    )


def slope(rows: list[dict], by: str) -> float:
    return float(np.polyfit(np.log([r[by] for r in rows]), np.log([r["step"] for r in rows]), 1)[0])


def batch_cost(size: int, repeats: int = 7) -> dict:
    import jax
    import jax.numpy as jnp

    import flexjax as fx

    link = metal_link.Link()
    arm = metal_link.robot(link)
    model, ts = fx.PortHamiltonian(elements=16).bind(arm), jnp.array([0.0, metal_link.END])

    def tip(E):
        changed = model.rebind(arm.replace("links.link.material.E", E))
        return fx.simulate(changed, None, ts, dt=1e-3, throw=False).tip[-1, :2]

    options = dict(
        kind="GeometricallyExact2D",
        elements=16,
        dt=1e-3,
        end=metal_link.END,
        gravity=metal_link.GRAVITY,
    )
    moduli = link.E * jnp.linspace(0.8, 1.2, size)
    _, timing, theirs = _harness.alternate(
        jax.vmap(tip), moduli, other=lambda: _exudyn.pendulum(link, **options), repeats=repeats
    )
    return _harness.row(
        f"batch of {size}",
        value=timing,
        per_run=timing.wall / size,
        per_run_cpu=timing.cpu / size,
        exudyn=theirs.wall,
        ratio=timing.wall / size / theirs.wall,
        ratio_cpu=timing.cpu / size / theirs.cpu,
    )


def main(argv: list[str] | None = None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--elements", type=int, nargs="*", default=[10, 100, 1000])
    parser.add_argument("--links", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--batch", type=int, default=256, help="size of the batch; 0 skips it")
    args = parser.parse_args(argv)

    import jax

    jax.config.update("jax_enable_x64", True)
    _harness.fresh_compilations()
    _harness.show_environment()
    rows, results = [], {}
    for by, cases in (
        ("elements", [(1, n) for n in args.elements]),
        ("links", [(k, 8) for k in args.links]),
    ):
        group = []
        for links, elements in cases:
            group.append(step_cost(chain(links), elements))
            last = group[-1]
            print(
                f"{links} links of {elements} elements: {1e6 * last['step']:.1f} us per step, "
                f"compiled in {last['value']['compile']:.1f} s",
                flush=True,
            )
        rows += group
        if len(group) > 1:
            results[f"slope in {by}"] = slope(group, by)
            print(f"slope in {by}: {results[f'slope in {by}']:.3f} (limit 1.1)", flush=True)
    if args.batch:
        rows.append(batch_cost(args.batch))
        last = rows[-1]
        results["batch over Exudyn"], results["batch over Exudyn, CPU time"] = (
            last["ratio"],
            last["ratio_cpu"],
        )
        print(
            f"batch of {args.batch}: {1e3 * last['per_run']:.2f} ms per run "
            f"({1e3 * last['per_run_cpu']:.2f} ms of CPU time), "
            f"Exudyn {1e3 * last['exudyn']:.1f} ms; ratio {last['ratio']:.3f} in wall time, "
            f"{last['ratio_cpu']:.3f} in CPU time (limit 0.12)"
        )
    print(f"written to {_harness.save('port_hamiltonian_cost', rows, **results)}")


if __name__ == "__main__":
    main()
