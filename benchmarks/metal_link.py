"""A slender aluminium link, pinned and released under gravity: 1 s in 1000 implicit steps.

    python -m benchmarks.metal_link [--elements 16] [--dt 1e-3] [--repeats 5] [--only FiniteElement]

Every formulation that supports the robot runs, and Exudyn if it is installed, in the same process.
Ratios are comparable between machines, seconds are not. The gradient is that of tip x + y after
1 s with respect to Young's modulus and length of the link; the model is bound inside the
differentiated function. Its runs are interleaved with those of the simulation. The target for the
ratio of gradient to simulation is 2.5.
"""

import argparse
import dataclasses
import importlib.util
import statistics

from benchmarks import _exudyn, _harness

# Exudyn's geometrically exact beam and an independent port-Hamiltonian code (16 elements, dt 1e-3).
REFERENCE_TIP = (-0.99997, -0.007948)
END = 1.0
GRAVITY = 9.81


@dataclasses.dataclass(frozen=True)
class Link:
    length: float = 1.0
    side: float = 0.01
    E: float = 70e9
    nu: float = 0.3
    rho: float = 2700.0
    shear_factor: float = 5 / 6

    @property
    def area(self):
        return self.side**2

    @property
    def second_moment(self):
        return self.side**4 / 12

    @property
    def G(self):
        return self.E / (2 * (1 + self.nu))


def robot(link: Link):
    import flexjax as fx

    body = fx.Link(
        "link",
        link.length,
        section=fx.Rectangle(link.side, link.side),
        material=fx.Material(E=link.E, nu=link.nu, rho=link.rho),
    )
    return fx.Robot.serial([body], name="metal link", gravity=(0.0, -GRAVITY, 0.0))


def run_flexjax(name: str, link: Link, *, elements: int, dt: float, repeats: int) -> dict:
    """Time value and gradient of one formulation; a refusal or a failure is also a row."""
    import jax
    import jax.numpy as jnp

    import flexjax as fx
    from flexjax.formulation import formulation

    arm = robot(link)
    make = formulation(name)
    fields = {f.name for f in dataclasses.fields(make)}
    method = make(elements=elements) if "elements" in fields else make()
    refusals = method.refusals(arm)
    if refusals:
        return _harness.row(name, refused=refusals)
    model = method.bind(arm)
    drive = fx.Drive()
    ts = jnp.array([0.0, END])

    def tip(parameters):
        changed = arm
        for path, parameter in parameters.items():
            changed = changed.replace(path, parameter)
        return fx.simulate(model.rebind(changed), drive, ts, dt=dt, throw=False).tip[-1, :2]

    parameters = {
        "links.link.material.E": jnp.asarray(link.E),
        "links.link.length": jnp.asarray(link.length),
    }
    try:
        both = [tip, jax.grad(lambda p: tip(p).sum())]
        (end, value), (slope, gradient) = _harness.in_turns(both, parameters, repeats=repeats)
    except Exception as e:  # the other formulations still run
        return _harness.row(name, error=f"{type(e).__name__}: {e}")
    return _harness.row(
        name,
        tip=[float(x) for x in end],
        slope={path: float(x) for path, x in slope.items()},
        value=value,
        gradient=gradient,
        gradient_over_value=gradient.wall / value.wall,
    )


def run_exudyn(kind: str, link: Link, *, elements: int, dt: float, repeats: int) -> dict:
    runs = [
        _exudyn.pendulum(link, kind=kind, elements=elements, dt=dt, end=END, gravity=GRAVITY)
        for _ in range(repeats + 1)
    ][1:]
    timing = _harness.Timing(
        0.0,
        statistics.median(r.wall for r in runs),
        statistics.median(r.cpu for r in runs),
        repeats,
    )
    last = runs[-1]
    return _harness.row(
        f"exudyn {kind}",
        tip=list(last.tip),
        value=timing,
        steps=last.steps,
        newton_iterations=last.newton_iterations,
    )


def show(rows: list[dict], reference: dict | None):
    print(
        f"\n{'':32}{'tip x':>11}{'tip y':>12}{'compile':>10}{'run':>10}{'cpu':>10}"
        f"{'gradient':>10}{'of a run':>10}{'wall ratio':>12}{'cpu ratio':>11}"
    )
    for r in rows:
        if "value" not in r:
            reason = r.get("error") or "; ".join(r["refused"])
            print(f"{r['name']:32}  {'failed' if 'error' in r else 'refused'}: {reason}")
            continue
        value, gradient = r["value"], r.get("gradient")
        comparable = reference and r["name"] != "RigidArm"  # the rigid arm is another problem
        ratio, wall_ratio = (
            f"{value[k] / reference['value'][k]:.2f}" if comparable else "-"
            for k in ("cpu", "wall")
        )
        slope = f"{1e3 * gradient['wall']:.1f} ms" if gradient else "-"
        times = f"{gradient['wall'] / value['wall']:.2f}" if gradient else "-"
        print(
            f"{r['name']:32}{r['tip'][0]:11.6f}{r['tip'][1]:12.7f}{value['compile']:8.2f} s"
            f"{1e3 * value['wall']:7.1f} ms{1e3 * value['cpu']:7.1f} ms"
            f"{slope:>10}{times:>10}{wall_ratio:>12}{ratio:>11}"
        )
    print(f"{'reference tip':32}{REFERENCE_TIP[0]:11.5f}{REFERENCE_TIP[1]:12.6f}")
    if reference:
        print(f"ratios: to {reference['name']} in the same run; cpu: CPU time of all threads")


def main(argv: list[str] | None = None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--elements", type=int, default=16)
    parser.add_argument("--dt", type=float, default=1e-3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=None, help="names of formulations")
    args = parser.parse_args(argv)

    import jax

    jax.config.update("jax_enable_x64", True)
    _harness.fresh_compilations()
    _harness.show_environment()
    link = Link()
    options = dict(elements=args.elements, dt=args.dt, repeats=args.repeats)
    rows = []
    if importlib.util.find_spec("exudyn"):
        rows += [run_exudyn(kind, link, **options) for kind in _exudyn.ELEMENTS]
    else:
        print("exudyn is not installed (pip install 'flexjax[outside]'): no ratios")
    reference = rows[0] if rows else None
    from flexjax.formulation import REGISTRY

    for name in REGISTRY if args.only is None else args.only:
        rows.append(run_flexjax(name, link, **options))
    show(rows, reference)
    print(f"written to {_harness.save('metal_link', rows, **options)}")


if __name__ == "__main__":
    main()
