"""Springs, dampers, friction, end stops and motors of the joints: generalised forces, their energy, and their part of a
Newton matrix."""

import jax.numpy as jnp
import numpy as np

from flexjax.mechanism.chain._coordinates import joint_coordinates, motor_side, to_v
from flexjax.mechanism.chain._layout import Layout
from flexjax.mechanism.chain._parameters import Parameters


def _flexible(layout: Layout) -> np.ndarray:
    mask = np.zeros(layout.dofs, bool)
    mask[list(layout.motors)] = True
    return mask


def _beyond_stops(par: Parameters, x):
    if par.stops is None:
        return jnp.zeros_like(x), jnp.zeros_like(x)
    lower, upper, ks, _ = par.stops.T
    below, above = jnp.minimum(x - lower, 0.0), jnp.maximum(x - upper, 0.0)
    return jnp.where(ks > 0, below, 0.0), jnp.where(ks > 0, above, 0.0)


def _between(layout: Layout, on_joint, on_motor):
    """(nv,) from forces on joints (D,) and forces (D,) on the motors of flexible joints, ignored elsewhere."""
    if not layout.motors:
        return to_v(layout, on_joint)
    rest = jnp.zeros(layout.nv - layout.dofs, on_joint.dtype)
    return jnp.concatenate([on_joint, rest]) + to_v(
        layout, jnp.where(_flexible(layout), on_motor, 0.0)
    )


def spring_forces(layout: Layout, par: Parameters, q):
    """(nv,) of joint springs and end stops."""
    if par.stops is None and not layout.motors:
        return jnp.zeros(layout.nv, q.dtype)
    x = joint_coordinates(layout, q)
    xm, _ = motor_side(layout, q, jnp.zeros(layout.nv, q.dtype))
    below, above = _beyond_stops(par, x)
    stretch = par.stiffness * (x - xm)
    stopped = 0.0 if par.stops is None else par.stops[:, 2] * (below + above)
    return _between(layout, -stretch - stopped, stretch)


def joint_forces(layout: Layout, par: Parameters, drive, robot, t, q, v, args, memory):
    """(nv,) of springs and stops; of motors; of dampers, friction and stops' dampers."""
    x, xd = joint_coordinates(layout, q), v[: layout.dofs]
    xm, xmd = motor_side(layout, q, v)
    damper = par.damping * (jnp.where(_flexible(layout), xd - xmd, xd) if layout.motors else xd)
    elastic = spring_forces(layout, par, q)
    driven = to_v(layout, drive.effort(robot, t, args, xm, xmd, memory))
    stopped = 0.0
    if par.stops is not None:
        below, above = _beyond_stops(par, x)
        stopped = jnp.where((below < 0) | (above > 0), par.stops[:, 3] * xd, 0.0)
    damped = _between(layout, -damper - stopped, damper)
    if par.coulomb is not None:
        damped = damped - to_v(layout, par.coulomb * jnp.tanh(xmd / par.v_eps))
    return elastic, driven, damped


def joint_energy(layout: Layout, par: Parameters, q):
    """Energy of joint springs and end stops."""
    if par.stops is None and not layout.motors:
        return jnp.zeros((), q.dtype)
    x = joint_coordinates(layout, q)
    xm, _ = motor_side(layout, q, jnp.zeros(layout.nv, q.dtype))
    below, above = _beyond_stops(par, x)
    springs = 0.5 * jnp.sum(par.stiffness * (x - xm) ** 2)
    return (
        springs
        if par.stops is None
        else springs + 0.5 * jnp.sum(par.stops[:, 2] * (below**2 + above**2))
    )


def joint_stiffness(layout: Layout, par: Parameters, drive, robot, q, v, cv, cq):
    """(D,) each: cq dQ/dq + cv dQ/dv with the sign turned, of the joint, of the spring between joint and motor, of the
    motor."""
    kp, kd = drive.stiffness(robot)
    flexible = _flexible(layout)
    x = joint_coordinates(layout, q)
    _, xmd = motor_side(layout, q, v)
    controller = cq * kp + cv * kd
    if par.coulomb is not None:
        slope = 1.0 / jnp.cosh(jnp.clip(xmd / par.v_eps, -20, 20)) ** 2
        controller = controller + cv * par.coulomb / par.v_eps * slope
    joint = jnp.where(flexible, 0.0, cv * par.damping + controller)
    if par.stops is not None:
        touching = (par.stops[:, 2] > 0) & ((x < par.stops[:, 0]) | (x > par.stops[:, 1]))
        joint = joint + jnp.where(touching, cq * par.stops[:, 2] + cv * par.stops[:, 3], 0.0)
    spring = jnp.where(flexible, cq * par.stiffness + cv * par.damping, 0.0)
    return joint, spring, jnp.where(flexible, controller, 0.0)
