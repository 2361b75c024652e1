"""Loads on links and a moving base."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax._types import PieceTime, ScalarLike, as_float
from flexjax.drive._check import POSITION, Range, number_fault, refuse_any, signal_fault
from flexjax.drive.signal import AbstractSignal
from flexjax.numerics.screw import se3


class Load(eqx.Module):
    """A wrench on a link.

    Arguments:
        link: name of the link.
        wrench: signal of six components [force; moment] [N, N m].
        s: position on the link, 0 (base) to 1 (tip).
        frame: "world", or "section" for a follower load in the axes of the section.

    >>> import flexjax as fx
    >>> push = fx.Load("link", fx.constant([0.0, -1.0, 0.0, 0.0, 0.0, 0.0]), s=0.5)
    >>> fx.Drive(loads=[push]).check(fx.load_robot("metal-link"))
    """

    link: str = eqx.field(static=True)
    wrench: AbstractSignal
    s: Float[Array, ""] = eqx.field(converter=as_float, default=1.0)
    frame: str = eqx.field(static=True, default="world")

    def __check_init__(self):
        refuse_any(self.faults("load"))

    def range(self) -> Range:
        return Range("s", self.s, lambda s: (s >= 0) & (s <= 1), POSITION)

    def faults(self, where: str) -> list[str]:
        """Faults of its values."""
        frame = self.frame in ("world", "section")
        return [
            *([] if frame else [f"{where}.frame: {self.frame!r}; expected 'world' or 'section'."]),
            *self.range().faults(where),
        ]

    def shape_faults(self, where: str) -> list[str]:
        six = "Give three forces, then three moments."
        return [
            *number_fault(f"{where}.s", self.s, "Add one load for each position."),
            *signal_fault(f"{where}.wrench", self.wrench, ((6,),), six),
        ]


class Base(eqx.Module):
    """Prescribed motion of the ground frame.

    Arguments:
        translation: signal of three components, in world axes [m].
        angle: signal of a rotation about ``axis`` [rad].
        axis: fixed direction of the rotation.

    >>> import flexjax as fx
    >>> shake = fx.stack([fx.sine(0.01, 5.0), fx.constant(0.0), fx.constant(0.0)])
    >>> fx.Drive(base=fx.Base(translation=shake)).check(fx.load_robot("metal-link"))
    """

    translation: AbstractSignal | None = None
    angle: AbstractSignal | None = None
    axis: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 1.0))

    def __check_init__(self):
        refuse_any(self.faults("base"))

    def range(self) -> Range:
        some = lambda x: (abs(x) > 0).any(-1)
        return Range("axis", self.axis, some, "a direction, e.g. (0, 0, 1)")

    def faults(self, where: str) -> list[str]:
        """Faults of its values."""
        return self.range().faults(where)

    def shape_faults(self, where: str) -> list[str]:
        faults = []
        if self.translation is not None:
            three = "Give x, y and z."
            faults += signal_fault(f"{where}.translation", self.translation, ((3,),), three)
        if self.angle is not None:
            faults += signal_fault(f"{where}.angle", self.angle, ((),), "Give one angle.")
        if self.axis.shape != (3,):
            faults.append(f"{where}.axis: numbers of shape {self.axis.shape}; expected shape (3,).")
        return faults

    def motion(
        self, t: ScalarLike, piece_time: PieceTime = None
    ) -> tuple[se3.Pose, Float[Array, "6"], Float[Array, "6"]]:
        """Pose, body twist and its component derivative, of the base frame."""
        axis = self.axis / jnp.linalg.norm(self.axis)
        still = jnp.zeros((3, 3), axis.dtype)
        x, v, a = still if self.translation is None else self.translation.evaluate(t, piece_time)
        phi, rate, acc = still[0] if self.angle is None else self.angle.evaluate(t, piece_time)
        R = se3.rotation_exp(axis * phi)
        omega, alpha = axis * rate, axis * acc
        u = R.T @ v
        # d/dt (R^T v) = R^T a - omega x (R^T v): the component derivative that the recursions use.
        u_dot = R.T @ a - jnp.cross(omega, u)
        return se3.Pose(R, x), jnp.concatenate([u, omega]), jnp.concatenate([u_dot, alpha])
