"""Where a run, an equilibrium or a linear model starts: checked against the model before anything
is compiled."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Float

from flexjax._compile import filter_jit
from flexjax._types import ScalarLike, is_traced
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.numerics.term import State
from flexjax.robot import Robot
from flexjax.simulate._tangent import displaced, tangent_space


def read_start(
    start: State | Start | dict | None, model: AbstractModel, drive: Drive, t0: ScalarLike | None
) -> Start | State:
    """A checked start in the model's precision; ``start`` is what a user may give. Without ``t0``
    a joint with a Motion may start elsewhere."""
    dtype = model.robot.gravity.dtype
    if isinstance(start, State):
        cast = lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x
        y: State = jtu.tree_map(cast, start)
        _refuse_foreign(y, model)
        _refuse_unlike(y, model, drive)
        _refuse_infinite(y)
        return y
    start = Start() if start is None else Start(joints=start) if isinstance(start, dict) else start
    if not isinstance(start, Start):
        raise ValueError(
            f"start: {type(start).__name__}; expected fx.Start, a dict of joint coordinates, or "
            "traj.final."
        )
    start.check(model.robot)
    _refuse_infinite(start)
    if t0 is not None:
        _refuse_contradiction(start, model, drive, t0)
    return jtu.tree_map(lambda x: jnp.asarray(x, dtype), start)


def origin_of(model: AbstractModel, start: Start | State) -> str:
    """The mark of states that follow from ``start``: the formulation to which their numbers belong.
    A state without a mark stays so, because a scan over states keeps its structure."""
    return start.origin if isinstance(start, State) else type(model.formulation).__name__


def marked(y: State, origin: str) -> State:
    return dataclasses.replace(y, origin=origin)


def first_state(model: AbstractModel, drive: Drive, t0: ScalarLike, start: Start | State) -> State:
    """The state at ``t0``, without a mark, because solvers build states from their parts."""
    if isinstance(start, State):
        return marked(start, "")
    return model.initial_state(drive, t0, start)


def read_drive(drive: Drive | None, robot: Robot) -> Drive:
    """A checked drive; ``drive`` is what a user may give."""
    drive = Drive() if drive is None else drive
    if not isinstance(drive, Drive):
        raise ValueError(
            f"drive: {type(drive).__name__}; expected fx.Drive(...), or None for no drive. A state "
            "or joint coordinates belong to the argument at= or start=."
        )
    drive.check(robot)
    return drive


def displaced_start(
    model: AbstractModel,
    drive: Drive,
    t0: ScalarLike,
    start: Start | State,
    dx: Float[Array, " n"],
) -> State:
    """The state at ``t0`` moved along a flat tangent, e.g. along the shape of a mode."""
    term, y = model.term(drive), first_state(model, drive, t0, start)
    return displaced(term, y, t0, tangent_space(term, y, t0)[1](dx))


_first = filter_jit(first_state)


def starting_state(
    model: AbstractModel, drive: Drive, at: State | Start | dict | None, t: ScalarLike = 0.0
) -> State:
    """The checked state at ``t`` that equilibria and linear models start from."""
    start = read_start(at, model, drive, None)
    if isinstance(start, State):
        return start
    t = jnp.asarray(t, model.robot.gravity.dtype)
    return marked(_first(model, drive, t, start), origin_of(model, start))


def _remedy(model: AbstractModel) -> str:
    return (
        f"Start {model.robot.name!r} from traj.final of a run of the same model, or from joint "
        "coordinates: start=fx.Start(...)."
    )


def _refuse_foreign(y: State, model: AbstractModel) -> None:
    own = type(model.formulation).__name__
    if y.origin not in ("", own):
        raise ValueError(f"start: a state of {y.origin}; expected one of {own}. {_remedy(model)}")


@filter_jit
def _refuse_unlike(y: State, model: AbstractModel, drive: Drive) -> None:
    # Compiled so that the initial state is traced once, not at every call.
    zero = jnp.zeros((), model.robot.gravity.dtype)
    like = jax.eval_shape(lambda: model.initial_state(drive, zero, Start()))
    # A state made from its parts may write "no memory" as () or as {}.
    remembers = bool(y.memory or like.memory)
    if remembers and jtu.tree_structure(y.memory) != jtu.tree_structure(like.memory):
        raise ValueError(
            "start.memory: of sampled controllers and bristles at "
            f"{', '.join(y.memory) or 'no joint'}; expected {', '.join(like.memory) or 'none'}, as "
            "in drive and robot. Replace it: dataclasses.replace(start, memory=model.initial_state("
            "drive, 0.0, fx.Start()).memory)."
        )
    for field in ("mech", "memory") if remembers else ("mech",):
        given, wanted = getattr(y, field), getattr(like, field)
        if jtu.tree_structure(given) != jtu.tree_structure(wanted):
            kinds = [type(x).__name__ for x in (given, wanted)]
            raise ValueError(
                f"start.{field}: a {kinds[0]}; expected a {kinds[1]} as this model has. "
                f"{_remedy(model)}"
            )
        for (path, x), w in zip(
            jtu.tree_leaves_with_path(given), jtu.tree_leaves(wanted), strict=True
        ):
            if jnp.shape(x) != w.shape:
                raise ValueError(
                    f"start.{field}{jtu.keystr(path)}: shape {jnp.shape(x)}; expected {w.shape}. "
                    f"{_remedy(model)}"
                )


def _refuse_infinite(start: Start | State) -> None:
    for path, x in jtu.tree_leaves_with_path(start):
        if is_traced(x) or np.all(np.isfinite(x)):
            continue
        value = np.atleast_1d(np.asarray(x))
        k = int(np.flatnonzero(~np.isfinite(value))[0])
        entry = f".{k}" if np.ndim(x) else ""
        name = jtu.keystr(path, simple=True, separator=".")
        raise ValueError(f"start.{name}{entry}: {value.flat[k]}; expected a finite number.")


def _refuse_contradiction(start: Start, model: AbstractModel, drive: Drive, t0: ScalarLike) -> None:
    """A joint with a Motion starts where the motion does."""
    robot = model.robot
    for name, act in drive.joints.items():
        joint = robot.joints[robot.joint_index(name)]
        if not act.prescribes or joint.flexible:
            continue
        value, rate, _ = act.signals()[0].evaluate(t0)
        for field, given, wanted in (
            ("joints", start.joints.get(name), value),
            ("rates", start.rates.get(name), rate),
        ):
            if given is None or any(is_traced(x) for x in (given, wanted)):
                continue
            if not np.allclose(np.asarray(given), np.asarray(wanted), rtol=1e-6, atol=1e-9):
                raise ValueError(
                    f"start.{field}.{name}: {np.asarray(given)} contradicts the Motion of that "
                    f"joint, which starts at {np.asarray(wanted)}; leave it out."
                )
