"""Parametric resonance and energy exchange between bending planes, with counter-examples.

These effects are the paper's motivation.
"""

import jax
import jax.numpy as jnp
import numpy as np
from tools import CONFIG, first_mode, integrate, tip

import flexjax as fx
from flexjax.formulation import Start


def _rod(planar, EIy=1.0):
    """Round and slender: radius of gyration 7e-3 of the length, first frequency 11.1 rad/s."""
    constants = fx.BeamConstants(
        EA=2e4, EIy=EIy, EIz=1.0, GJ=0.8, rhoA=0.1, rhoIx=1e-6, rhoIy=5e-7, rhoIz=5e-7
    )
    joint = fx.Joint("weld", "fixed", "ground", "rod")
    return fx.Robot(
        "rod",
        [fx.Link("rod", 1.0, constants=constants)],
        [joint],
        gravity=(0.0, 0.0, 0.0),
        planar=planar,
    )


def _mode_integrals():
    """Integrals of the first mode phi over the unit length.

    The integrands are phi^2, phi''^2, (1 - x) phi'^2, (int_0^x phi'^2)^2 and phi'^2 phi''^2.
    """
    x = np.linspace(0.0, 1.0, 2001)
    f, f1, f2 = (
        np.asarray(jax.vmap(g)(jnp.asarray(x)))
        for g in (first_mode, jax.grad(first_mode), jax.grad(jax.grad(first_mode)))
    )
    shortening = np.concatenate([[0.0], np.cumsum(0.5 * (f1[1:] ** 2 + f1[:-1] ** 2) * np.diff(x))])
    return tuple(
        float(np.trapezoid(y, x))
        for y in (f**2, f2**2, (1 - x) * f1**2, shortening**2, f1**2 * f2**2)
    )


def _runge_kutta(rate, z, end, steps):
    h, out = end / steps, [z]
    for k in range(steps):
        t = k * h
        a = rate(t, z)
        b = rate(t + h / 2, z + h / 2 * a)
        c = rate(t + h / 2, z + h / 2 * b)
        z = z + h / 6 * (a + 2 * b + 2 * c + rate(t + h, z + h * c))
        out.append(z)
    return np.array(out)


def parametric():
    """Bending excited by axial motion of the ground at twice the bending frequency.

    The growth rate is compared with Floquet theory of one mode, q'' + w^2 (1 + e sin 2wt) q = 0.
    Counter-examples without growth: excitation at 3 w, and the linear order.
    """
    c = CONFIG["parametric"]
    squared, bent, hanging, _, _ = _mode_integrals()
    omega = np.sqrt(bent / (0.1 * squared))
    ts = np.linspace(0, c["end"], 1201)
    out = {"t": ts.tolist()}
    for label, order, ratio in (
        ("linear", "linear", 2.0),
        ("consistent", "consistent", 2.0),
        ("off resonance", "consistent", 3.0),
    ):
        model = fx.MovingBeam(elements=c["elements"], order=order).bind(_rod(True))
        shake = fx.stack(
            [
                fx.sine(amplitude=c["shake"], frequency=ratio * omega / (2 * np.pi)),
                fx.constant(0.0),
                fx.constant(0.0),
            ]
        )
        drive = fx.Drive(base=fx.Base(translation=shake))
        shape = fx.Shape.of(y=lambda s: c["start"] * first_mode(s))
        start = model.initial_state(drive, 0.0, Start(links={"rod": shape}))
        q, _, _, status, _ = integrate(model, drive, ts, c["dt"], start)
        uy = tip(model, q)[1] / c["start"]
        # Largest deflection in each period, and the slope of its logarithm over the second half.
        period = 2 * np.pi / omega
        tops = np.array(
            [
                np.max(np.abs(uy[(ts >= k * period) & (ts < (k + 1) * period)]))
                for k in range(int(c["end"] / period))
            ]
        )
        half = np.arange(len(tops) // 2, len(tops))
        rate = float(np.polyfit(half * period, np.log(tops[half]), 1)[0])
        out[label] = {"uy": uy.tolist(), "growth": float(tops[-1]), "rate": rate, "status": status}
        print(
            f"  {label}: largest deflection in the last period {tops[-1]:.3f} of the start, "
            f"growth {rate:.4f} 1/s",
            flush=True,
        )
    e = c["shake"] * (2 * omega) ** 2 * hanging / (omega**2 * squared)
    period = np.pi / omega

    def hill(t, z):
        return np.array([z[1], -(omega**2) * (1 + e * np.sin(2 * omega * t)) * z[0]])

    columns = [_runge_kutta(hill, z, period, 400)[-1] for z in np.eye(2)]
    out["theory"] = float(np.log(np.max(np.abs(np.linalg.eigvals(np.array(columns).T)))) / period)
    out["rate_over_theory"] = out["consistent"]["rate"] / out["theory"]
    print(f"  Floquet: {out['theory']:.4f} 1/s", flush=True)
    return out


def _orientation(t, y, z, omega):
    """Angle from the y axis to the major axis of the ellipse fitted to the last two periods."""
    last = t > t[-1] - 4 * np.pi / omega
    basis = np.stack([np.cos(omega * t[last]), np.sin(omega * t[last])], axis=1)
    amplitudes = np.linalg.lstsq(basis, np.stack([y[last], z[last]], axis=1), rcond=None)[0]
    axis = np.linalg.eigh(amplitudes.T @ amplitudes)[1][:, -1]
    return float(np.arctan(axis[1] / axis[0]))


def planes(only):
    """Energy exchange between the bending planes of a round rod that vibrates on an ellipse.

    The major axis of the ellipse rotates, so bending in y becomes bending in z. The linear order
    does not have this effect. The reference is one mode of an inextensible rod. Counter-examples:
    planes with different stiffness (EIy 1.5 EIz), and an ellipse a hundred times smaller.
    """
    c = CONFIG["planes"]
    squared, bent, _, shortened, stiffened = _mode_integrals()
    m, alpha, beta = 0.1 * squared, 0.1 * shortened, 2 * stiffened
    omega = np.sqrt(bent / m)
    ts = np.linspace(0, c["end"], int(c["end"] * 50) + 1)
    period = int(round(2 * np.pi / omega * 50))
    out = {"t": ts.tolist(), "omega": float(omega)}
    cases = {  # order, EIy, size of the ellipse
        "linear": ("linear", 1.0, 1.0),
        "complete": ("complete", 1.0, 1.0),
        "consistent": ("consistent", 1.0, 1.0),
        "small": ("consistent", 1.0, 0.01),
        "planes apart": ("consistent", 1.5, 1.0),
    }
    for label in only or cases:
        order, EIy, size = cases[label]
        model = fx.MovingBeam(elements=c["elements"], order=order).bind(_rod(False, EIy))
        drive = fx.Drive()
        rate = size * c["short"] * omega * np.sqrt(EIy)
        shape = fx.Shape.of(
            y=lambda s, size=size: size * c["long"] * first_mode(s),
            z_rate=lambda s, rate=rate: rate * first_mode(s),
        )
        start = model.initial_state(drive, 0.0, Start(links={"rod": shape}))
        q, _, energy, status, _ = integrate(model, drive, ts, c["dt"], start)
        _, uy, uz = tip(model, q)
        balance = np.asarray(energy.balance)
        angle = _orientation(ts, uy, uz, omega) if status == 0 else float("nan")
        out[label] = {
            "uy": (uy / size).tolist(),
            "uz": (uz / size).tolist(),
            "turned": angle,
            "status": status,
            "drift": float(np.max(np.abs(balance - balance[0])) / balance[0]),
            "largest_uz": float(np.max(np.abs(uz[-period:])) / size / c["short"]),
        }
        print(
            f"  {label}: ellipse rotated by {angle:+.4f} rad, final uz "
            f"{out[label]['largest_uz']:.3f} of its start, status {status}",
            flush=True,
        )

    def rate(t, state):
        # (m + alpha r r^T) r'' = -k r - beta |r|^2 r - alpha |r'|^2 r, from
        # L = m r'^2/2 + alpha (r.r')^2/2 - k r^2/2 - beta r^4/4.
        r, rd = state[:2], state[2:]
        force = -(bent + beta * r @ r + alpha * rd @ rd) * r
        return np.concatenate([rd, np.linalg.solve(m * np.eye(2) + alpha * np.outer(r, r), force)])

    steps = 10 * (len(ts) - 1)
    start = np.array([c["long"], 0.0, 0.0, c["short"] * omega])
    path = _runge_kutta(rate, start, c["end"], steps)[::10]
    out["one_mode"] = {
        "uy": path[:, 0].tolist(),
        "uz": path[:, 1].tolist(),
        "turned": _orientation(ts, path[:, 0], path[:, 1], omega),
    }
    print(f"  one mode: ellipse rotated by {out['one_mode']['turned']:+.4f} rad", flush=True)
    if "consistent" in out:
        out["turned_over_one_mode"] = out["consistent"]["turned"] / out["one_mode"]["turned"]
    return out
