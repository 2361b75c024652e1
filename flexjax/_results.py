"""How a simulation ended: one enumeration for every solver and formulation, with remedies."""

import enum


class Status(enum.IntEnum):
    """Outcome of a run. Inside compiled code it travels as an int32 array; 0 is success.

    >>> import flexjax as fx
    >>> fx.Status(1).name
    'newton_failed'
    >>> fx.Status.ok.message
    'the run ended as asked'
    """

    ok = 0
    newton_failed = 1
    non_finite = 2
    max_steps = 3
    ran_off_link = 4
    singular = 5
    energy_collapse = 6
    constraint_drift = 7
    invalid_parameter = 8

    @property
    def message(self) -> str:
        return _MESSAGES[self]


_MESSAGES = {
    Status.ok: "the run ended as asked",
    Status.newton_failed: (
        "Newton's iteration of an implicit step did not converge; try a smaller dt, or a smoother "
        "drive"
    ),
    Status.non_finite: (
        "the state became infinite or NaN; try a smaller dt, an implicit solver, more passes per "
        "step (TransferMatrix), or look for a load that grows without bound"
    ),
    Status.max_steps: (
        "the adaptive run needed more steps than allowed; raise max_steps, loosen the tolerance, "
        "or use an implicit solver with fixed dt"
    ),
    Status.ran_off_link: (
        "a sliding or prismatic joint ran off the end of its link; shorten the motion or add end "
        "stops"
    ),
    Status.singular: (
        "the equations became singular; look for a massless joint driven by an effort, or a "
        "mechanism at a singular pose"
    ),
    Status.energy_collapse: (
        "the strain energy is unbounded below at this amplitude; use a complete order of "
        "approximation"
    ),
    Status.constraint_drift: "a loop-closing constraint drifted; try a smaller dt",
    Status.invalid_parameter: "a parameter of the robot or the drive is not finite or outside "
    "its range (a negative modulus, a station beyond the tip, times that do not increase); give "
    "it bounds, or vary its logarithm",
}


class SimulationError(RuntimeError):
    """Raised after a failed run with ``throw=True``: time, joint or link, and remedy.

    >>> import flexjax as fx
    >>> error = fx.SimulationError(fx.Status.newton_failed, 0.3, "joint elbow")
    >>> error.status.name, error.t_fail
    ('newton_failed', 0.3)
    """

    def __init__(self, status: Status, t_fail: float, where: str | None, faults: str = ""):
        self.status, self.t_fail, self.where = status, t_fail, where
        place = f" at {where}" if where else ""
        self.reason = (
            f"simulation failed at t = {t_fail:.6g} s{place}: {status.name}: {status.message}."
            + (f" {faults}" if faults else "")
        )
        super().__init__(f"{self.reason} Pass throw=False to get the part before it.")


class EquilibriumError(RuntimeError):
    """Raised where :func:`flexjax.equilibrium` finds no state at rest.

    ``joint`` is left with the effort ``remaining`` [``unit``] that nothing balances; None where the
    joints are balanced and a link is not.

    >>> import flexjax as fx
    >>> error = fx.EquilibriumError("elbow", 2.5, "N m")
    >>> error.joint, error.remaining
    ('elbow', 2.5)
    """

    def __init__(self, joint: str | None, remaining: float, unit: str):
        self.joint, self.remaining, self.unit = joint, remaining, unit
        found = (
            "the shape of the links does not converge"
            if joint is None
            else f"joints.{joint} is left with {remaining:.4g} {unit} that nothing balances"
        )
        super().__init__(
            f"equilibrium: no state at rest found: {found}. Hold the joint by a Motion, a "
            "controller or an Effort, start nearer to rest (at=...), or apply the loads in steps."
        )
