"""Cost of a finite-element step over elements and links, compile time, and cost of assembly.

    python -m benchmarks.finite_element_cost [--elements 10 30] [--links 2 4 8] [--assembly 8 16]

A slope is the exponent of the CPU time per energy-conserving step of falling metal links, from a
log-log fit to a scan without outputs. The compile time is that of `simulate` for 3 links of 10
elements. Assembly compares two ways to the mass matrix of a link: element matrices added into a
band, as in flexjax, and the paper's sum of element matrices "of the size of q". The paper claims
that the second saves a factor O(2 eta) for eta elements.
"""

import argparse
import time

from benchmarks import _harness, metal_link
from benchmarks.port_hamiltonian_cost import chain, slope

STEPS = 50


def step_cost(links: int, elements: int, repeats: int = 5) -> dict:
    """Compile time, and CPU time per step after the release."""
    import diffrax
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import flexjax as fx
    from flexjax.formulation import Start

    model, drive, dt = fx.FiniteElement(elements=elements).bind(chain(links)), fx.Drive(), 1e-3
    solver, y = model.default_solver(drive), model.initial_state(drive, jnp.zeros(()), Start())
    arrays, static = eqx.partition(model.term(drive), eqx.is_array)

    def run(arrays, y):
        term = eqx.combine(arrays, static)
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
        return y.mech.q[0], ok

    (angle, ok), timing = _harness.measure(run, arrays, y, repeats=repeats)
    name = f"{links} links of {elements} elements"
    return _harness.row(
        name,
        elements=elements,
        links=links,
        value=timing,
        step=timing.cpu / STEPS,
        wall=timing.wall / STEPS,
        converged=bool(ok),
        angle=float(angle),
    )


def arm_compile(links: int = 3, elements: int = 10) -> dict:
    """Compile time: the first call of simulate minus the second one."""
    import jax
    import jax.numpy as jnp

    import flexjax as fx

    model = fx.FiniteElement(elements=elements).bind(chain(links))
    ts, times = jnp.linspace(0.0, 0.1, 11), []
    for _ in range(2):
        begun = time.perf_counter()
        jax.block_until_ready(fx.simulate(model, None, ts, dt=1e-3, throw=False).tip)
        times.append(time.perf_counter() - begun)
    return _harness.row(
        f"simulate, {links} links of {elements} elements",
        first=times[0],
        run=times[1],
        compile_only=times[0] - times[1],
    )


def assembly_cost(elements: int, repeats: int = 5) -> dict:
    """Cost of one link's mass matrix both ways, in a scan that hides the dispatch."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from flexjax.numerics.beam import hermite_cubics
    from flexjax.numerics.linalg._banded import to_band

    cubics, rounds = hermite_cubics(elements), 50
    n = cubics.size
    index = jnp.asarray(np.where(cubics.index < n, cubics.index, n))
    blocks = jnp.asarray(np.random.default_rng(0).standard_normal((elements, 4, 4)))

    def band(blocks):
        return to_band(index, blocks, n)

    def full(blocks):
        # Every element matrix has the size of q (eqs. 8-13); they are summed.
        place = jax.nn.one_hot(index, n + 1, dtype=blocks.dtype)
        each = jnp.einsum("eai,eab,ebj->eij", place, blocks, place)
        return jnp.sum(each, axis=0)[:n, :n]

    times = {}
    for name, make in (("band", band), ("full", full)):

        def many(blocks, make=make):
            return jax.lax.scan(
                lambda c, k: (c + 1e-9 * jnp.sum(make(blocks * k)), None),
                0.0,
                jnp.linspace(1.0, 2.0, rounds),
            )[0]

        times[name] = _harness.measure(many, blocks, repeats=repeats)[1].cpu / rounds
    return _harness.row(
        f"assembly of {elements} elements",
        elements=elements,
        **times,
        ratio=times["full"] / times["band"],
    )


def main(argv: list[str] | None = None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--elements", type=int, nargs="*", default=[10, 30, 100, 300, 1000])
    parser.add_argument("--links", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--assembly", type=int, nargs="*", default=[8, 16, 32, 64, 128])
    parser.add_argument("--no-arm", action="store_true", help="skip the compile time of an arm")
    args = parser.parse_args(argv)

    import jax

    jax.config.update("jax_enable_x64", True)
    _harness.fresh_compilations()
    _harness.show_environment()
    rows, results = [], {}
    for by, cases in (
        ("elements", [(1, n) for n in args.elements]),
        ("links", [(k, 10) for k in args.links]),
    ):
        group = []
        for links, elements in cases:
            group.append(step_cost(links, elements))
            last = group[-1]
            print(
                f"{last['name']}: {1e6 * last['step']:.1f} us CPU, {1e6 * last['wall']:.1f} us "
                f"wall per step, compiled in {last['value']['compile']:.1f} s, "
                f"converged {last['converged']}",
                flush=True,
            )
        rows += group
        if len(group) > 1:
            results[f"slope in {by}"] = slope(group, by)
            print(f"slope in {by}: {results[f'slope in {by}']:.3f} (limit 1.1)", flush=True)
    if not args.no_arm:
        rows.append(arm_compile())
        last = rows[-1]
        print(
            f"{last['name']}: first call {last['first']:.1f} s, second {last['run']:.2f} s "
            "(compilation: limit 10 s)",
            flush=True,
        )
    group = [assembly_cost(n) for n in args.assembly]
    for r in group:
        print(
            f"{r['name']}: {1e6 * r['band']:.1f} us into bands, {1e6 * r['full']:.1f} us with "
            f"matrices of the size of q, ratio {r['ratio']:.1f}",
            flush=True,
        )
    if len(group) > 1:
        results |= {
            f"slope of assembly, {k}": slope([{**r, "step": r[k]} for r in group], "elements")
            for k in ("band", "full")
        }
        print({k: round(v, 2) for k, v in results.items()})
    link = metal_link.Link().__dict__
    path = _harness.save("finite_element_cost", rows + group, link=link, **results)
    print(f"written to {path}")


if __name__ == "__main__":
    main()
