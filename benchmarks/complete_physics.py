"""Cost of the complete physics: every default against ``variant="paper"``, the published form.

    taskset -c 1 python -m benchmarks.complete_physics [--only FiniteElement] [--gradient]

The metal link of ``benchmarks.metal_link``, pinned and released under gravity, 1000 steps of 1 ms.
Runs of both forms are interleaved, so that their ratio is reliable. ``--gradient`` compares the
gradients too, each with the simulation of its own form.
"""

import argparse

from benchmarks import _harness, metal_link

NAMES = ("ScrewSynthesis", "FiniteElement", "MovingBeam", "TransferMatrix", "PortHamiltonian")
# As published, its rule diverges with (1/4, 1/2).
STABLE = {"TransferMatrix": dict(beta=0.3, gamma=0.5)}


def compare(name: str, *, dt: float, repeats: int, gradient: bool) -> dict:
    """Times of the default and of the published form; a refusal is also a row."""
    import jax
    import jax.numpy as jnp

    import flexjax as fx
    from flexjax.formulation import formulation

    link = metal_link.Link()
    arm, ts = metal_link.robot(link), jnp.array([0.0, metal_link.END])
    parameters = {"links.link.material.E": jnp.asarray(link.E)}

    def tip(method):
        def run(parameters):
            changed = arm
            for path, parameter in parameters.items():
                changed = changed.replace(path, parameter)
            return fx.simulate(method.bind(changed), fx.Drive(), ts, dt=dt, throw=False).tip[-1, :2]

        return run

    make = formulation(name)
    forms = [tip(make()), tip(make(variant="paper", **STABLE.get(name, {})))]
    if gradient:
        forms += [jax.grad(lambda p, f=f: f(p).sum()) for f in forms]
    try:
        (default, own), (paper, published), *slopes = _harness.in_turns(
            forms, parameters, repeats=repeats
        )
    except Exception as e:  # the other formulations still run
        return _harness.row(name, error=f"{type(e).__name__}: {e}")
    row = dict(tip=[float(x) for x in default], published_tip=[float(x) for x in paper])
    row |= dict(value=own, published=published, ratio=own.cpu / published.cpu)
    if slopes:
        row["gradient_in_runs"] = slopes[0][1].cpu / own.cpu
        row["published_gradient_in_runs"] = slopes[1][1].cpu / published.cpu
    return _harness.row(name, **row)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=NAMES)
    parser.add_argument("--dt", type=float, default=1e-3)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--gradient", action="store_true")
    args = parser.parse_args()

    import jax

    jax.config.update("jax_enable_x64", True)
    rows = []
    for name in args.only:
        rows.append(compare(name, dt=args.dt, repeats=args.repeats, gradient=args.gradient))
        r = rows[-1]
        if "error" in r:
            print(f"{name:16} failed: {r['error'][:300]}")
            continue
        gradients = ""
        if "gradient_in_runs" in r:
            own, published = r["gradient_in_runs"], r["published_gradient_in_runs"]
            gradients = f", gradient {own:.2f} runs, published {published:.2f}"
        ms = [1e3 * r[k]["cpu"] for k in ("value", "published")]
        print(
            f"{name:16} {ms[0]:7.1f} ms, published {ms[1]:7.1f} ms: {r['ratio']:.2f}x{gradients}",
            flush=True,
        )
    _harness.save("complete_physics", rows)


if __name__ == "__main__":
    main()
