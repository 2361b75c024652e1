"""Springs of flexible joints in the plane, in series with the half segments beside them.

The stretch x between motor and outboard body is the deflection d of the joint spring and that of
the half segments: x = d + compliance * torque(d). A linear spring shares it in a fixed ratio.
Otherwise d is the root of that equation, which Newton's iteration finds from d = x on: the torque
rises ever faster with |d|, so no iterate passes the root.
"""

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from flexjax.mechanism import SpringLaw, friction_torque

if TYPE_CHECKING:
    from flexjax.formulation.transfer_matrix._plane import PlanarTerm

PerDof = Float[Array, " D"]


class JointSprings(NamedTuple):
    """Deflections (D,) of the joint springs and their rates; elastic and viscous torque on the
    outboard side, the slopes (taken positive) of both with respect to the stretch and its rate, and
    the energy of spring and half segments."""

    deflection: PerDof
    rate: PerDof
    elastic: PerDof
    viscous: PerDof
    of_stretch: PerDof
    of_rate: PerDof
    viscous_of_stretch: PerDof
    energy: PerDof


def sprung(term: "PlanarTerm") -> np.ndarray:
    """(D,) static: joints whose spring acts between a motor and a body."""
    return term.masks.driven_motor | term.masks.given_motor


def deflection(law: SpringLaw, compliance: PerDof, stretch: PerDof) -> PerDof:
    """Deflection of the joint springs, with half segments of this compliance in series."""
    if law.linear:
        return stretch / (1 + compliance * law.stiffness)

    def corrected(law: SpringLaw, compliance: PerDof, stretch: PerDof, d: PerDof) -> PerDof:
        gap = stretch - d - compliance * law.force(d)
        return d + gap / (1 + compliance * law.slope(d))

    fixed: tuple[SpringLaw, PerDof, PerDof] = jax.tree_util.tree_map(
        lax.stop_gradient, (law, compliance, stretch)
    )
    tiny = 4 * jnp.finfo(stretch.dtype).eps

    def body(carry):
        d, _, count = carry
        new = corrected(*fixed, d)
        return new, jnp.any(jnp.abs(new - d) > tiny * jnp.abs(fixed[2])), count + 1

    first = (fixed[2], jnp.asarray(True), jnp.zeros((), jnp.int32))
    d = lax.while_loop(lambda c: c[1] & (c[2] < 60), body, first)[0]
    # Each Newton step at the root gives one more order of derivative.
    for _ in range(2):
        d = corrected(law, compliance, stretch, d)
    return d


def share(law: SpringLaw, compliance: PerDof, stretch: PerDof) -> PerDof:
    """How fast the joint springs deflect with the stretch."""
    return 1 / (1 + compliance * law.slope(deflection(law, compliance, stretch)))


def joint_springs(
    term: "PlanarTerm", stretch: PerDof, rate: PerDof, memory: PyTree
) -> JointSprings:
    """The springs at a stretch (D,), with the friction across them."""
    own, first, hardware = term.connections, term.masks.first, term.chain.hardware
    law, soft = hardware.spring, own.compliance[first]
    d, part = deflection(law, soft, stretch), share(law, soft, stretch)
    torque, slope = law.force(d), law.slope(d) * part
    damper = hardware.damping * part**2 + slope**2 * own.compliance_times_tau[first]
    viscous, viscous_slope = damper * rate, jnp.zeros_like(rate)
    across = hardware.across
    if across is not None:
        # Refused beside half segments: deflection and stretch are the same.
        none = jnp.zeros_like(stretch)

        def friction(x: PerDof, xd: PerDof) -> PerDof:
            return friction_torque(across, "across", memory, (x, none), (xd, none))

        held, by = jax.linearize(friction, stretch, rate)
        one = jnp.ones_like(rate)
        viscous = viscous + held
        damper, viscous_slope = damper + by(none, one), by(one, none)
    energy = law.energy(d) + 0.5 * soft * torque**2
    return JointSprings(d, part * rate, -torque, -viscous, slope, damper, viscous_slope, energy)


def own_springs(term: "PlanarTerm") -> bool:
    """Static: a joint spring is nonlinear or has friction, which the connections do not contain."""
    hardware = term.chain.hardware
    return not hardware.spring.linear or hardware.across is not None
