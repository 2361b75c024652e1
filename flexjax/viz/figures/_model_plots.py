"""Figures of modes, linear models, comparisons and convergence studies."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from matplotlib.figure import Figure

from flexjax._types import NumbersLike, ravel
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel
from flexjax.numerics.term import State
from flexjax.simulate import Comparison, Linear, Modes
from flexjax.viz.figures._style import COLOURS, curve_style, legend_above, new_figure
from flexjax.viz.figures._time_plots import above_zero


@eqx.filter_jit
def _mode_displacements(
    model: AbstractModel, drive: Drive, y: State, shapes: Array, stations: Array
):
    """Positions (L, S, 3) at rest and complex displacements (n, L, S, 3) of the modes."""
    term = model.term(drive)
    flat, unravel = ravel(
        jax.tree.map(
            lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(lambda: term.rate(0.0, y, None))
        )
    )

    def positions(x):
        moved = State(term.retract(y.mech, unravel(x)), y.work, y.dissipated, y.memory)
        return model.observe(jnp.zeros((), x.dtype), moved, drive, stations).frames[..., :3]

    rest, tangent = jax.linearize(positions, flat)
    displace = jax.vmap(tangent)
    real, imag = (displace(x.T.astype(flat.dtype)) for x in (shapes.real, shapes.imag))
    return rest, real + 1j * imag


def mode_shapes(modes: Modes, *, model: AbstractModel) -> Figure:
    """The robot at rest (grey) and displaced in each mode, at a visible scale."""
    n = len(modes.frequencies)
    if n == 0:
        raise ValueError("plot: no vibration modes; expected elastic links or flexible joints.")
    rest, moved = (
        np.asarray(x)
        for x in _mode_displacements(
            model, modes.drive, modes.at, modes.shapes, jnp.linspace(0.0, 1.0, 21)
        )
    )
    size = float(np.max(np.ptp(rest.reshape(-1, 3), axis=0)))
    columns = min(n, 3)
    figure, axes = new_figure(
        -(-n // columns), columns, size=(max(3.4 * columns, 4.2), 2.7 * -(-n // columns))
    )
    # Each mode is drawn in the plane, xy or xz, in which it has the larger displacement.
    planes = ((0, 1), (0, 2))
    for k, axis in enumerate(axes):
        if k >= n:
            axis.set_visible(False)
            continue
        big = moved[k].ravel()[np.argmax(np.abs(moved[k]))]
        u = (
            (moved[k] * np.conj(big) / abs(big) ** 2).real * 0.15 * size
            if abs(big) > 0
            else moved[k].real
        )
        a, b = max(planes, key=lambda p: np.abs(u[..., p[1]]).max())
        for link in range(rest.shape[0]):
            axis.plot(
                rest[link, :, a],
                rest[link, :, b],
                color="#999999",
                linewidth=1,
                marker=".",
                markevery=4,
                markersize=3,
            )
            for sign in (1, -1):
                q = rest[link] + sign * u[link]
                # The markers show a mode along the link, which does not move the line.
                marks = {"marker": ".", "markevery": 4, "markersize": 4}
                axis.plot(
                    q[:, a],
                    q[:, b],
                    color=COLOURS[0 if sign > 0 else 1],
                    linestyle="-" if sign > 0 else "--",
                    **marks,
                )
        damping = float(modes.damping[k])
        damping = damping if abs(damping) > 1e-9 else 0.0  # rounding may make it negative
        axis.set(
            title=f"{k + 1}: {float(modes.frequencies[k]):.4g} Hz, damping ratio {damping:.2g}",
            aspect="equal",
        )
        axis.set_adjustable("datalim")
        axis.set_xlabel(f"{'xyz'[a]} [m]")
        axis.set_ylabel(f"{'xyz'[b]} [m]")
    return figure


def frequency_response(linear: Linear, *, frequencies: NumbersLike | None = None) -> Figure:
    """Magnitude and phase from every input to every output."""
    A, B, C, D = (np.asarray(x) for x in (linear.A, linear.B, linear.C, linear.D))
    if B.shape[1] == 0 or C.shape[0] == 0:
        raise ValueError(
            "plot: the linear model has no input or no output; expected a drive with an effort, "
            "and a robot with sensors."
        )
    poles = np.abs(np.linalg.eigvals(A)) / (2 * np.pi)
    poles = poles[poles > 1e-6 * np.max(poles, initial=1.0)]
    low, high = (
        (0.1 * poles.min(), 3 * np.sort(poles)[: max(1, min(12, len(poles)))].max())
        if len(poles)
        else (0.1, 100.0)
    )
    f = np.geomspace(low, high, 600) if frequencies is None else np.asarray(frequencies, float)
    eye = np.eye(A.shape[0])
    H = np.stack([C @ np.linalg.solve(2j * np.pi * x * eye - A, B) + D for x in f])
    figure, (top, bottom) = new_figure(2, 1, sharex=True)
    # A sensor that an input does not affect has no magnitude on a logarithmic axis.
    reach = np.max(np.abs(H), axis=0)
    curves = [
        (j, k)
        for k in range(B.shape[1])
        for j in range(C.shape[0])
        if reach[j, k] > 1e-12 * np.max(reach[:, k])
    ]
    units = [
        f"{a}/({b})" if " " in b else f"{a}/{b}"
        for a in linear.output_units
        for b in linear.input_units
    ]
    one = len({units[j * B.shape[1] + k] for j, k in curves}) == 1 if units else False
    for i, (j, k) in enumerate(curves):
        unit = f" [{units[j * B.shape[1] + k]}]" if units and not one else ""
        top.loglog(
            f,
            np.abs(H[:, j, k]),
            label=f"{linear.inputs[k]} to {linear.outputs[j]}{unit}",
            **curve_style(i),
        )
        bottom.semilogx(f, np.degrees(np.unwrap(np.angle(H[:, j, k]))), **curve_style(i))
    top.set_ylabel(
        f"magnitude [{units[0] if one else 'unit above' if units else 'output unit / input unit'}]"
    )
    bottom.set(xlabel="frequency [Hz]", ylabel="phase [deg]")
    legend_above(figure, top)
    return figure


def comparison(result: Comparison) -> Figure:
    """Tips, their distance from the reference, natural frequencies, and run times."""
    figure, axes = new_figure(2, 2, size=(9.6, 6.0))
    path, gap, freq, cost = axes
    best = np.asarray(result.trajectories[result.reference].tip)
    names = [row.name for row in result.rows]
    for i, (name, traj) in enumerate(result.trajectories.items()):
        p = np.asarray(traj.tip)
        path.plot(traj.ts, p[:, 1], label=name, **curve_style(i))
        if name != result.reference:
            gap.semilogy(
                traj.ts, above_zero(1e3 * np.linalg.norm(p - best, axis=1)), **curve_style(i)
            )
    for i, row in enumerate(result.rows):
        f = np.asarray(row.frequencies)
        freq.semilogy(
            np.arange(1, len(f) + 1) + 0.06 * (i - len(names) / 2),
            f,
            "os^Dv<>"[i % 7],
            color=COLOURS[i % len(COLOURS)],
        )
    cost.barh(
        names,
        [row.run_seconds for row in result.rows],
        color=[COLOURS[i % len(COLOURS)] for i in range(len(names))],
    )
    path.set(xlabel="time [s]", ylabel="tip y [m]")
    legend_above(figure, path)
    gap.set(xlabel="time [s]", ylabel="distance of tips [mm]", title=f"from {result.reference}")
    freq.set(xlabel="mode", ylabel="frequency [Hz]", title="natural frequencies, motors locked")
    freq.locator_params(axis="x", integer=True)
    cost.set(xlabel="time of the second run [s]")
    cost.invert_yaxis()
    return figure


def convergence(studies: dict, *, xlabel: str = "step [s]", ylabel: str = "error") -> Figure:
    """Errors over steps of ``{name: (steps, errors)}`` on logarithmic axes, with their orders."""
    figure, (axis,) = new_figure(1, 1, size=(5.2, 3.8))
    for i, (name, (steps, errors)) in enumerate(studies.items()):
        h, e = np.asarray(steps, float), np.asarray(errors, float)
        if h.shape != e.shape or h.ndim != 1 or len(h) < 2 or not (np.all(h > 0) and np.all(e > 0)):
            raise ValueError(
                f"plot: study {name!r}; expected two equally long lists of at least two positive "
                "numbers (steps, errors)."
            )
        slope = np.polyfit(np.log(h), np.log(e), 1)[0]
        axis.loglog(
            h, e, marker="os^Dv<>"[i % 7], label=f"{name}: order {slope:.2f}", **curve_style(i)
        )
    axis.set(xlabel=xlabel, ylabel=ylabel)
    axis.legend()
    return figure
