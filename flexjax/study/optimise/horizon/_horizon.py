"""The nonlinear problem along a horizon: efforts that are constant between samples."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from flexjax._compile import filter_jit
from flexjax.drive import Drive, Effort
from flexjax.drive.signal import constant
from flexjax.formulation import AbstractModel
from flexjax.numerics.term import State
from flexjax.robot import Robot
from flexjax.simulate import Rest, simulate
from flexjax.simulate._tangent import takes_effort
from flexjax.study.optimise.horizon._stages import Stages, find_costates, solve_bounded

USUAL = dict(position=1.0, velocity=1e-3, tip=1.0, effort=1e-6, final=100.0)  # weights
ALONG = (1.0, 0.5, 0.25, 0.1, 0.03)  # lengths of a step that are tried at once


class Weights(eqx.Module):
    """Weights of the squares of joint errors, joint rates, tip errors, deviations of the efforts
    from those at rest, and of all at the end."""

    position: Float[Array, ""]
    velocity: Float[Array, ""]
    tip: Float[Array, ""]
    effort: Float[Array, ""]
    final: Float[Array, ""]


class Horizon(eqx.Module):
    """From a state and efforts (H, D) to states at the samples and their cost."""

    model: AbstractModel
    goal: Rest
    weights: Weights
    sample: Float[Array, ""]  # [s]
    low: Float[Array, " D"]
    high: Float[Array, " D"]
    substeps: int = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def drive(self, u: Float[Array, " D"]) -> Drive:
        return Drive(joints={n: Effort(constant(u[k])) for k, n in enumerate(self.names)})

    def flat(self, state: State) -> Float[Array, " n"]:
        return ravel_pytree(state.mech)[0]

    def state(self, s: Float[Array, " n"]) -> State:
        zero = jnp.zeros((), s.dtype)
        mech = ravel_pytree(self.goal.state.mech)[1](s)
        return dataclasses.replace(self.goal.state, mech=mech, work=zero, dissipated=zero)

    def next(self, s: Float[Array, " n"], u: Float[Array, " D"]) -> Float[Array, " n"]:
        """The state one sample later; not finite if the simulation fails."""
        ts = jnp.stack([jnp.zeros_like(self.sample), self.sample])
        traj = simulate(
            self.model,
            self.drive(u),
            ts,
            substeps=self.substeps,
            start=self.state(s),
            stations=2,
            throw=False,
        )
        return jnp.where(traj.status == 0, self.flat(traj.final), jnp.nan)

    def errors(self, s: Float[Array, " n"]) -> Float[Array, " k"]:
        """Weighted distances of a state from rest at the goal."""
        names = frozenset({"q", "qd", "positions"})
        t, one = jnp.zeros_like(self.sample), jnp.ones(1, s.dtype)
        found = self.model.outputs(t, self.state(s), self.goal.drive, one, None, names)
        w = self.weights
        return jnp.concatenate(
            [
                jnp.sqrt(w.position) * (found["q"] - self.goal.q),
                jnp.sqrt(w.velocity) * found["qd"],
                jnp.sqrt(w.tip) * (found["positions"][-1, 0] - self.goal.tip),
            ]
        )

    def cost(self, S: Float[Array, "H n"], U: Float[Array, "H D"]) -> Float[Array, ""]:
        rows = jnp.sum(jax.vmap(self.errors)(S) ** 2, axis=1)
        last = self.weights.final * rows[-1]
        efforts = self.weights.effort * jnp.sum((U - self.goal.effort[None]) ** 2)
        return 0.5 * (jnp.sum(rows) + last + efforts)

    def expand(self, s0, S, U) -> Stages:
        """The stages about states S and inputs U; their ``c`` are the gaps between the pieces."""
        before = jnp.concatenate([s0[None], S[:-1]])

        def piece(s, u):
            n = s.shape[0]
            both = lambda x: self.next(x[:n], x[n:])
            x = jnp.concatenate([s, u])
            value, push = jax.linearize(both, x)
            J = jax.vmap(push, out_axes=1)(jnp.eye(x.shape[0], dtype=x.dtype))
            return value, J[:, :n], J[:, n:]

        following, A, B = jax.vmap(piece)(before, U)
        H, D = U.shape
        e, J = jax.vmap(lambda s: (self.errors(s), jax.jacfwd(self.errors)(s)))(S)
        share = jnp.ones(H, S.dtype).at[-1].add(self.weights.final)
        eye = jnp.eye(D, dtype=S.dtype)
        small = 1e-10 * jnp.eye(S.shape[1], dtype=S.dtype)
        return Stages(
            A,
            B,
            following - S,
            jnp.einsum("h,hki,hkj->hij", share, J, J) + small[None],
            jnp.einsum("h,hki,hk->hi", share, J, e),
            jnp.broadcast_to(self.weights.effort * eye, (H, D, D)),
            self.weights.effort * (U - self.goal.effort[None]),
        )


class Progress(eqx.Module):
    """Inputs and states of a search, its cost, the largest gap between pieces, and the step."""

    U: Float[Array, "H D"]
    S: Float[Array, "H n"]
    cost: Float[Array, ""]
    gap: Float[Array, ""]
    step: Float[Array, ""]


@filter_jit
def improve(horizon: Horizon, s0: Float[Array, " n"], U: Array, S: Array) -> Progress:
    """One step of multiple shooting: all pieces are simulated at once, and the gaps between them
    close along with the search, so that no run is longer than a sample."""
    stages = horizon.expand(s0, S, U)
    low, high = horizon.low[None] - U, horizon.high[None] - U
    dU, dS = solve_bounded(stages, jnp.zeros_like(s0), low, high)
    # A gap that remains must cost more than it saves, also where the cost itself is near zero.
    weight = 2.0 * jnp.max(jnp.abs(find_costates(stages, dS)))

    def merit(along):
        U_new, S_new = U + along * dU, S + along * dS
        before = jnp.concatenate([s0[None], S_new[:-1]])
        gap = jax.vmap(horizon.next)(before, U_new) - S_new
        cost = horizon.cost(S_new, U_new)
        value = cost + weight * jnp.sum(jnp.abs(gap))
        return jnp.where(jnp.isfinite(value), value, jnp.inf), cost, jnp.max(jnp.abs(gap))

    lengths = jnp.asarray(ALONG, U.dtype)
    values, costs, left = jax.vmap(merit)(lengths)
    k = jnp.argmin(values)
    good = jnp.isfinite(values[k])
    along = jnp.where(good, lengths[k], 0.0)
    U_new, S_new = U + along * jnp.where(good, dU, 0.0), S + along * jnp.where(good, dS, 0.0)
    return Progress(U_new, S_new, costs[k], left[k], along * jnp.max(jnp.abs(dU)))


def read_efforts(robot: Robot, limit: Any) -> tuple[tuple[str, ...], np.ndarray]:
    """Joints that take an effort, and the largest one of each."""
    joints = [j for j in robot.tree_joints if j.dofs]
    if not all(j.dofs == 1 and takes_effort(j) for j in joints):
        raise ValueError(
            "model: a joint with several coordinates, or a flexible joint without a rotor; "
            "expected revolute and prismatic joints that an effort can move."
        )
    names = tuple(j.name for j in joints)
    given = dict(limit) if isinstance(limit, Mapping) else dict.fromkeys(names, limit)
    if set(given) != set(names):
        raise ValueError(
            f"effort: {sorted(given)}; expected one number, or one for each of {', '.join(names)}."
        )
    largest = lambda value: np.inf if value is None else float(value)
    bounds = np.array([largest(given[n]) for n in names])
    if not np.all(bounds > 0):
        raise ValueError(f"effort: {limit}; expected positive efforts in N m or N.")
    return names, bounds


def make_horizon(
    model: AbstractModel,
    goal: Rest,
    sample: float,
    dt: float,
    effort: Any,
    weights: Mapping[str, float] | None,
) -> Horizon:
    """The checked problem."""
    if not (np.isfinite(sample) and sample > 0):
        raise ValueError(f"sample: {sample}; expected a positive time in seconds.")
    if not 0 < dt:
        raise ValueError(f"dt: {dt}; expected a positive step in seconds.")
    names, bounds = read_efforts(model.robot, effort)
    held = np.abs(np.asarray(goal.effort))
    for name, bound, hold in zip(names, bounds, held, strict=True):
        if hold > bound:
            raise ValueError(
                f"effort.{name}: {bound:g}; the arm at rest at the goal takes {hold:.4g}. Expected "
                "a larger effort, or another goal."
            )
    given = USUAL | dict(weights or {})
    unknown = set(given) - set(USUAL)
    if unknown or not all(np.isfinite(v) and v > 0 for v in given.values()):
        raise ValueError(
            f"weights: {weights}; expected positive numbers for some of position, velocity, tip, "
            "effort, final."
        )
    dtype = model.robot.gravity.dtype
    number = lambda x: jnp.asarray(x, dtype)
    return Horizon(
        model=model,
        goal=goal,
        weights=Weights(**{k: number(v) for k, v in given.items()}),
        sample=number(sample),
        low=number(-bounds),
        high=number(bounds),
        substeps=max(1, round(sample / dt)),
        names=names,
    )
