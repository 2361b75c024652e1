"""What a model reports at one instant: always spatial, world frame, SI units."""

import dataclasses

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from flexjax._html import block, curves
from flexjax._types import Scalar, ScalarLike, is_traced
from flexjax.numerics.term import State


class Energy(eqx.Module):
    """Energies [J] at one instant or along a run.

    ``dissipated`` and ``work`` (of drive, loads and moving base) count from the start.

    >>> import flexjax as fx
    >>> import jax.numpy as jnp
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> traj = fx.simulate(model, None, jnp.linspace(0.0, 0.1, 3))
    >>> traj.energy.kinetic.shape
    (3,)
    """

    kinetic: Array
    elastic: Array
    gravity: Array
    dissipated: Array
    work: Array

    @property
    def mechanical(self) -> Array:
        return self.kinetic + self.elastic + self.gravity

    @property
    def balance(self) -> Array:
        """kinetic + elastic + gravity + dissipated - work: constant in an exact solution."""
        return self.mechanical + self.dissipated - self.work


class Snapshot(eqx.Module):
    """One instant: D joint coordinates (robot order), L links, S stations, J joints.

    Twists [linear; angular] and wrenches [force; moment] are in the axes of the section (links) or
    of the child (reactions).

    >>> import flexjax as fx
    >>> import jax.numpy as jnp
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> traj = fx.simulate(model, None, jnp.linspace(0.0, 0.1, 3))
    >>> last = traj[-1]
    >>> last.q.shape, last.frames.shape
    ((3,), (3, 11, 7))
    """

    q: Float[Array, " D"]  # link side; rotation vector for spherical joints
    qd: Float[Array, " D"]
    qdd: Float[Array, " D"]
    motor: Float[Array, " D"]  # motor side: q where the joint is rigid
    effort: Float[Array, " D"]  # of the drive, motor side
    frames: Float[Array, "L S 7"]  # x y z qw qx qy qz
    velocity: Float[Array, "L S 6"]
    acceleration: Float[Array, "L S 6"]  # of the point, without gravity; angular acceleration
    deflection: Float[Array, "L S 3"]  # from the tangent at the link's base, in the axes there
    strain: Float[Array, "L S 6"]  # axial, shear y, shear z, torsion, curvature y, curvature z
    reaction: Float[Array, "J 6"]  # parent on child, at the joint

    def __str__(self) -> str:
        if is_traced(self.q) or self.q.ndim != 1:
            return "Snapshot(traced, or a batch)"
        rows = [f"{'coordinate':>10}{'q':>14}{'rate':>14}{'acceleration':>14}{'effort':>14}"]
        columns = (np.asarray(x) for x in (self.q, self.qd, self.qdd, self.effort))
        for k, row in enumerate(zip(*columns, strict=True)):
            rows.append(f"{k:>10}" + "".join(f"{x:>14.6g}" for x in row))
        tip = ", ".join(f"{x:.6g}" for x in np.asarray(self.frames)[-1, -1, :3])
        return "\n".join([*rows, f"tip at ({tip}) m"])

    def _repr_html_(self) -> str:
        if is_traced(self.q) or self.q.ndim != 1:
            return block(str(self))
        points = np.asarray(self.frames)[..., :3]
        up = 1 if np.ptp(points[..., 1]) >= np.ptp(points[..., 2]) else 2
        links = {f"link {k + 1}": line[:, [0, up]] for k, line in enumerate(points)}
        return block(str(self), curves((), links, "x [m]", f"{'xyz'[up]} [m]", equal=True))


SNAPSHOT = frozenset(field.name for field in dataclasses.fields(Snapshot))


def energy_of(parts: tuple[Scalar, Scalar, Scalar], y: State, bristles: ScalarLike = 0.0) -> Energy:
    """The energies of a state from (kinetic, elastic, gravity) and the energy of bristles.

    The work of friction counts as dissipated while a run is integrated; what bristles store of it
    is elastic.
    """
    kinetic, elastic, gravity = parts
    return Energy(kinetic, elastic + bristles, gravity, y.dissipated - bristles, y.work)
