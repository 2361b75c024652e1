"""Identification of a rotating link from data of an independent model: Euler and Bernoulli's beam
with centrifugal terms, by polynomials, in scipy. A model without these terms takes the stiffening
for a stiffer link."""

import numpy as np
import pytest

import flexjax as fx

L, E, TAU, M = 0.5, 70e9, 2e-3, 0.05
HEIGHT, WIDTH, RHO = 0.003, 0.03, 2700.0
MU, EI = RHO * HEIGHT * WIDTH, E * WIDTH * HEIGHT**3 / 12
FREE = ["links.link.material.E", "links.link.damping.strain_rate", "payloads.load.mass"]
TRUE = np.array([E, TAU, M])
# Angle: from 0 to TURN within DURATION, and a rest in which the link vibrates.
# The link bends by 2 % of its length: what Euler and Bernoulli's linear beam leaves out is of the
# square of that. In a third of the time, at the same speed, it bends by 9 %; then that is 1 % of
# the strain, and moves E by four standard deviations.
TURN, DURATION, END = 15.0, 1.8, 2.4


def quintic(t):
    """Angle, rate and acceleration of the joint."""
    s = np.clip(t / DURATION, 0.0, 1.0)
    angle = TURN * s**3 * (10 - 15 * s + 6 * s**2)
    rate = TURN / DURATION * 30 * s**2 * (1 - s) ** 2
    return angle, rate, TURN / DURATION**2 * 60 * s * (1 - s) * (1 - 2 * s)


def readings(ts, count=5, step=1e-3):
    """Strain at the clamp and height of the tip; w = sum of q_k (x/L)^(k + 2).

    The equations are linear: Gauss's rule of fourth order solves for both of its stages at once.
    """
    nodes, weights = np.polynomial.legendre.leggauss(24)
    x, dx = 0.5 * L * (nodes + 1), 0.5 * L * weights
    k = np.arange(2, count + 2)[:, None]
    f, f1, f2 = (x / L) ** k, k * (x / L) ** (k - 1) / L, k * (k - 1) * (x / L) ** (k - 2) / L**2
    mass = (f * MU * dx) @ f.T + M
    stiffness = (f2 * EI * dx) @ f2.T
    beyond = 0.5 * MU * (L**2 - x**2) + M * L  # of the mass times its distance
    centrifugal = (f1 * beyond * dx) @ f1.T - mass
    along = (f * MU * x * dx).sum(axis=1) + M * L
    solve, none, one = np.linalg.inv(mass), np.zeros((count, count)), np.eye(2 * count)

    def equations(t):
        """y' = A y + b of y = (q, v)."""
        _, spin, acc = quintic(t)
        pull = -solve @ (stiffness + spin**2 * centrifugal)
        A = np.block([[none, np.eye(count)], [pull, -TAU * solve @ stiffness]])
        return A, np.concatenate([np.zeros(count), -solve @ along * acc])

    y, rows, r = np.zeros(2 * count), [np.zeros(count)], np.sqrt(3) / 6
    for begin, end in zip(ts[:-1], ts[1:], strict=True):
        steps = int(np.ceil((end - begin) / step))
        h = (end - begin) / steps
        for t in begin + h * np.arange(steps):
            (A, a), (B, b) = equations(t + (0.5 - r) * h), equations(t + (0.5 + r) * h)
            stages = np.block(
                [
                    [one - 0.25 * h * A, (r - 0.25) * h * A],
                    [-(0.25 + r) * h * B, one - 0.25 * h * B],
                ]
            )
            rates = np.linalg.solve(stages, np.concatenate([A @ y + a, B @ y + b]))
            y = y + 0.5 * h * (rates[: 2 * count] + rates[2 * count :])
        rows.append(y[:count])
    q = np.array(rows).T
    out = L - 0.5 * np.einsum("it,ij,jt->t", q, (f1 * dx) @ f1.T, q)
    angle = quintic(ts)[0]
    height = np.sin(angle) * out + np.cos(angle) * q.sum(axis=0)
    return {"gauge": -0.5 * HEIGHT * 2 * q[0] / L**2, "tip": height}


def robot(guess):
    link = fx.Link(
        "link",
        L,
        section=fx.Rectangle(WIDTH, HEIGHT),
        material=fx.Material(E=guess[0], nu=0.33, rho=RHO),
        damping=fx.Damping(strain_rate=guess[1]),
    )
    sensors = (
        fx.Sensor("gauge", "strain_gauge", "link", s=0.0, position=(0.5 * HEIGHT, 0.0)),
        fx.Sensor("tip", "tip", "link", direction=(0.0, 1.0, 0.0)),
    )
    return fx.Robot(
        "rotating link",
        (link,),
        (fx.Joint("pin", "revolute", "ground", "link"),),
        (fx.Payload("load", "link", guess[2]),),
        sensors,
        planar=True,
        gravity=(0, 0, 0),
    )


def coverage(formulation, seeds):
    """(share of the 95 % intervals that contain the true value, mean relative error, scatter)."""
    model = formulation.bind(robot(TRUE * np.array([1.1, 0.8, 0.9])))
    ts = np.linspace(0.0, END, 301)
    clean = readings(ts)
    drive = fx.Drive(joints={"pin": fx.Motion(fx.quintic(0.0, TURN, DURATION))})
    inside, values = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        noisy = {k: y + 0.02 * np.std(y) * rng.normal(size=len(y)) for k, y in clean.items()}
        result = fx.identify(model, fx.Experiment(ts, noisy, drive=drive), FREE, dt=1e-3)
        low, high = result.intervals(0.95).T
        inside.append((low < TRUE) & (high > TRUE))
        values.append(result.values)
    scatter = np.std(values, axis=0, ddof=1) / TRUE
    return np.mean(inside, axis=0), np.mean(values, axis=0) / TRUE - 1, scatter


# Only the strain tells stiffness from payload: 1 % of both together changes it by 0.07 %.
# So the strain at the clamp must be that exact: with three elements it is 0.3 % off, and E by 3 %.
@pytest.mark.slow  # fifty identifications
@pytest.mark.parametrize(
    "formulation", [fx.FiniteElement(elements=8), fx.ScrewSynthesis(modes=5)], ids=str
)
def test_a_fast_link_is_not_biased(formulation, record_number):
    covered, error, _ = coverage(formulation, 50)
    name = type(formulation).__name__
    for path, share, bias in zip(FREE, covered, error, strict=True):
        print(f"{name}, {path}: coverage {share:.2f}, mean error {bias:+.2e}")
    record_number(
        f"{name}: 95 % intervals of independent data with centrifugal terms that cover",
        float(np.mean(covered)),
        (0.90, 0.99),
        "in",
    )


@pytest.mark.slow  # what the published form makes of the same data
def test_the_published_form_is_biased(record_number):
    """By far more than its estimates scatter. Its misfit counts as noise and makes the intervals
    so wide (11, 15 and 19 %) that they cover nevertheless."""
    seeds = 5
    covered, error, scatter = coverage(fx.FiniteElement(elements=8, variant="paper"), seeds)
    print("paper:", covered, error, scatter)
    record_number("published FiniteElement: error of the damping", float(error[1]), 0.1, ">")
    deviations = float(np.abs(error[1]) / (scatter[1] / np.sqrt(seeds)))
    record_number("the same, in standard errors of the mean", deviations, 10.0, ">")
