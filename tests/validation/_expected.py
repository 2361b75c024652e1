"""The error that a formulation should have: bounds that follow from its mesh, step and energy.

h is the length of an element or segment over the link's, beta the wave number of a mode.
"""

import numpy as np
import scipy.linalg

from tests.validation._row import REFERENCE, method

ROUNDING = 1e-12
SECOND = ("ScrewSynthesis", "FiniteElement")  # energy to the second order of the slope
WHY = {
    "frequencies": """Bounds. FiniteElement and MovingBeam: cubic elements make a wave too fast by
    $(\\beta h)^4/1440$, times 1.5. PortHamiltonian: linear elements with one point of integration,
    by $(\\beta h)^2/8$, times 1.25. TransferMatrix: in rigid segments with springs the errors of
    second order cancel, which leaves $(\\beta h)^4/1440$, times 3, and at a clamp $(\\beta h)^2/6$.
    ScrewSynthesis: the error of Ritz's method with its polynomials, computed without flexjax.""",
    "rotating": """Bound of ScrewSynthesis: the error of Ritz's method with its polynomials,
    computed without flexjax. """,
    "statics": """Bounds. ScrewSynthesis and FiniteElement have the energy to the second order of
    the slope: their error is that of the linear beam whose tip moves back by half of the squared
    slope, which is known in closed form (times 1.02). TransferMatrix is the trapezoidal rule of the
    curvature, PortHamiltonian the midpoint rule: the tip's displacement times $1.5 h^2$ and
    $0.75 h^2$. PortHamiltonian has
    constant curvature without error, and so has the closed polygon of TransferMatrix. """,
    "pendulum": """Bound: the trapezoidal rule lengthens a period of n steps by $(2\\pi/n)^2/12$;
    at three quarters of it, with an amplitude of a right angle, times 1.5.""",
    "kinematic": "Bound: the positions are solved to rounding.",
}
GUARD = "are the error of the first run times 1.5 to 3: they notice a change and claim nothing."


def subdivisions(name: str) -> int:
    option = next(k for k in ("elements", "segments", "modes") if hasattr(method(name), k))
    return getattr(method(name), option)


def expected(case: str, name: str, quantity: str) -> float | None:
    """The bound of an error by theory; None where there is none."""
    made = {
        "frequencies": _frequency,
        "rotating": _rotating,
        "elastica": _static,
        "roll-up": _static,
        "heavy": _static,
    }
    if case in made:
        return made[case](case, name, quantity)
    if case == "pendulum":
        n = 1000
        return 1.5 * (2 * np.pi / n) ** 2 / 12 * 0.75 * 2 * np.pi * np.pi / 2
    return ROUNDING if case in ("four-bar", "slider-crank") else None


def why(case: str, names: list[str], open_: list[str]) -> str:
    """Where the bounds of a section come from. ``open_``: formulations with guards in it."""
    group = "statics" if case in ("elastica", "roll-up", "heavy") else case
    group = "kinematic" if case in ("four-bar", "slider-crank") else group
    if not open_:
        return WHY[group]
    who = "The bounds" if open_ == names else f"The bounds of {', '.join(open_)}"
    return f"{WHY.get(group, '')} {who} {GUARD}"


def _frequency(case: str, name: str, quantity: str) -> float:
    word, _, mode = quantity.rpartition(", mode ")
    entry = REFERENCE["frequencies"]["rows"][word]
    beta = entry["beta"][int(mode) - 1]
    h = 1 / subdivisions(name)
    if name == "ScrewSynthesis":
        exact = np.square(entry["beta"])[int(mode) - 1]
        hub = entry["hub"] if entry["free"] else None
        return 1.01 * (_ritz(subdivisions(name), hub, entry["tip_mass"])[int(mode) - 1] / exact - 1)
    if name == "PortHamiltonian":
        return 1.25 * (beta * h) ** 2 / 8
    if name == "TransferMatrix":
        free = entry["free"] and not entry["hub"]
        return 3 * (beta * h) ** 4 / 1440 if free else (beta * h) ** 2 / 6
    return 1.5 * (beta * h) ** 4 / 1440


def _ritz(count: int, hub: float | None, tip: float, speed: float = 0.0) -> np.ndarray:
    """Frequencies with x^2, x^3, ..., and x where the base turns with a hub; about steady
    rotation."""
    p = np.arange(2 if hub is None else 1, count + 2)
    a, b = p[:, None], p[None, :]
    M = 1 / (a + b + 1) + tip
    K = a * (a - 1) * b * (b - 1) / np.where(a + b > 3, a + b - 3, 1)
    if hub is not None:
        M[0, 0] += hub
    # Tension (1 - x^2)/2 times the squared speed, and the softening of the rotating frame.
    tension = 0.5 * a * b * (1 / (a + b - 1) - 1 / (a + b + 1))
    K = K + speed**2 * (tension - 1 / (a + b + 1))
    found = np.sqrt(np.maximum(scipy.linalg.eigh(K, M, eigvals_only=True), 0.0))
    return found[0 if hub is None else 1 :]


def _rotating(case: str, name: str, quantity: str) -> float | None:
    if name != "ScrewSynthesis":
        return None
    speed = float(quantity.split()[1])
    exact = next(w for s, w in REFERENCE["rotating"]["rows"] if s == speed)
    return 1.01 * (_ritz(subdivisions(name), None, 0.0, speed)[0] / exact - 1)


def _static(case: str, name: str, quantity: str) -> float | None:
    """Of the tip: linear theory, or the rule of integration times the displacement."""
    words = {"elastica": "elastica", "roll-up": "roll_up", "heavy": "heavy_elastica"}
    value = float(quantity.split()[0 if case == "roll-up" else -1])
    rows = REFERENCE[words[case]]["rows"]
    load = value / 360 if case == "roll-up" else value
    given = next(r for r in rows if abs(r[0] - load) < 1e-12)
    if case == "roll-up":
        m = 2 * np.pi * given[0]
        across, back = given[2], 1 - given[1]
        linear = m / 2, m**2 / 6
    else:
        across, back = given[1:3]
        linear = (load / 3, load**2 / 15) if case == "elastica" else (load / 8, load**2 / 112)
    if name in SECOND:
        return 1.02 * max(abs(linear[0] - across), abs(linear[1] - back)) + 2e-5
    h, size = 1 / subdivisions(name), max(across, back)
    if case == "roll-up" and (name == "PortHamiltonian" or load == 1.0):
        return ROUNDING if name in ("PortHamiltonian", "TransferMatrix") else None
    if name in ("PortHamiltonian", "TransferMatrix"):
        return (0.75 if name == "PortHamiltonian" else 1.5) * h**2 * size
    return None
