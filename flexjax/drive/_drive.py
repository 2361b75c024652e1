"""The drive: one actuation per named joint, loads, a moving base."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from flexjax._types import PieceTime, ScalarLike
from flexjax.drive._base import Base, Load
from flexjax.drive._check import finite_faults, leaves_hold, signal_faults, signals_hold
from flexjax.drive._controllers import (
    PD,
    AbstractActuation,
    ActuationState,
    Feedback,
    Sampled,
    Voltage,
)
from flexjax.robot import Robot
from flexjax.robot.parts._fault import drive_misfit, no_such_joint

INFINITE = ("limit", "params")  # fields that may be infinite


class SampledMemory(eqx.Module):
    """Memory of a sampled controller: queue of efforts (the first acts) and number of samples."""

    queue: Array
    count: Array


class Drive(eqx.Module):
    """What moves the robot.

    Arguments:
        joints: actuation by name of the joint; other joints are passive.
        loads: wrenches on links.
        base: motion of the ground frame.

    >>> import flexjax as fx
    >>> drive = fx.Drive(joints={"shoulder": fx.Motion(fx.quintic(0.0, 1.0, 2.0))})
    """

    joints: dict[str, AbstractActuation] = eqx.field(default_factory=dict)
    loads: tuple[Load, ...] = eqx.field(converter=tuple, default=())
    base: Base | None = None
    # (D,) added to the actuations' efforts behind the motors' limits: inputs of linear models.
    added_effort: Float[Array, " D"] | None = None

    def __check_init__(self):
        for name, act in self.joints.items():
            if not isinstance(act, AbstractActuation):
                raise ValueError(
                    f"drive.joints.{name}: {type(act).__name__}; expected Motion, Effort, Voltage, "
                    "PD, Feedback or Sampled, e.g. fx.Motion(fx.quintic(0, 1, 2.0))."
                )

    def check(self, robot: Robot) -> None:
        """Check names, kinds, shapes and values against the robot; one error for all faults."""
        joints = {j.name: j for j in robot.tree_joints}
        faults = []
        for name, act in self.joints.items():
            where = f"drive.joints.{name}"
            if name not in joints:
                faults.append(no_such_joint(where, name, joints))
                continue
            joint = joints[name]
            faults += act.shape_faults(where, joint.dofs)
            elastic = [link.name for link in robot.links if link.elastic]
            faults += [
                f"{where}.gauges: {link!r}; expected an elastic link: {', '.join(elastic)}."
                for link, _ in (act.gauges if isinstance(act, Sampled) else ())
                if link not in elastic
            ]
            if isinstance(act, Voltage):
                faults += [
                    f"{where}: a Voltage needs joints.{name}.motor.{field}."
                    for field in ("torque_constant", "resistance")
                    if joint.motor is None or getattr(joint.motor, field) is None
                ]
            if joint.dofs == 0:
                faults.append(f"{where}: a {joint.type} joint cannot be driven; leave it out.")
            if act.prescribes and joint.type in ("spherical", "free"):
                faults.append(
                    f"{where}: Motion on a {joint.type} joint; expected an effort, or a universal "
                    "or revolute joint."
                )
            rotor = joint.motor is not None and joint.motor.rotor is not None
            if joint.flexible and not act.prescribes and not rotor:
                faults.append(
                    f"{where}: an effort on a flexible joint needs joints.{name}.motor.rotor (the "
                    "inertia it accelerates)."
                )
        links = [link.name for link in robot.links]
        for i, load in enumerate(self.loads):
            if load.link not in links:
                faults.append(
                    f"drive.loads.{i}.link: {load.link!r}; expected one of {', '.join(links)}."
                )
            faults += load.shape_faults(f"drive.loads.{i}")
        if self.base is not None:
            faults += self.base.shape_faults("drive.base")
        faults += self.value_faults()
        if faults:
            raise drive_misfit(faults)

    def value_faults(self) -> list[str]:
        """Values that no robot allows; a limit or a parameter may be infinite."""
        faults = []
        for name, act in self.joints.items():
            faults += act.faults(f"drive.joints.{name}")
        for i, load in enumerate(self.loads):
            faults += load.faults(f"drive.loads.{i}")
        if self.base is not None:
            faults += self.base.faults("drive.base")
        faults += signal_faults("drive", self)
        reported = {fault.partition(":")[0] for fault in faults}
        more = finite_faults("drive", self, infinite=INFINITE)
        return faults + [fault for fault in more if fault.partition(":")[0] not in reported]

    def holds(self) -> Bool[Array, ""]:
        """``value_faults`` inside a program: whether every value, traced or not, is in range."""
        ranges = [x for act in self.joints.values() for x in act.ranges()]
        ranges += [x.range() for x in (*self.loads, self.base) if x is not None]
        conditions = [x.holds() for x in ranges] + leaves_hold(self, INFINITE) + signals_hold(self)
        return jnp.all(jnp.stack(conditions)) if conditions else jnp.asarray(True)

    def prescribed(self, robot: Robot) -> np.ndarray:
        """Static mask (D,) of the joint coordinates that a Motion prescribes."""
        mask = [
            bool(j.name in self.joints and self.joints[j.name].prescribes)
            for j in robot.tree_joints
            for _ in range(j.dofs)
        ]
        return np.array(mask, dtype=bool).reshape(-1)

    def motion(
        self, robot: Robot, t: ScalarLike, piece_time: PieceTime = None
    ) -> tuple[Array, Array, Array]:
        """Coordinates, rates and accelerations (D,) of the prescribed joints; zero elsewhere."""
        dtype = robot.gravity.dtype
        rows = []
        for joint in robot.tree_joints:
            act = self.joints.get(joint.name)
            if act is not None and act.prescribes:
                values = act.signals()[0].evaluate(t, piece_time)
                own = [jnp.broadcast_to(x, (joint.dofs,)).astype(dtype) for x in values]
                rows.append(jnp.stack(own))
            else:
                rows.append(jnp.zeros((3, joint.dofs), dtype))
        table = jnp.concatenate(rows, axis=1) if rows else jnp.zeros((3, 0), dtype)
        return table[0], table[1], table[2]

    def effort(
        self,
        robot: Robot,
        t: ScalarLike,
        piece_time: PieceTime,
        q: Float[Array, " D"],
        qd: Float[Array, " D"],
        memory: PyTree = (),
    ) -> Array:
        """Efforts (D,) of the motors, within their limits, from motor-side coordinates."""
        parts = []
        slices = robot.dof_slices()
        for joint in robot.tree_joints:
            sl = slices[joint.name]
            act = self.joints.get(joint.name)
            if (act is None and not joint.cogs) or (act is not None and act.prescribes):
                parts.append(jnp.zeros_like(qd[sl]))
                continue
            tau = jnp.zeros_like(qd[sl])
            if act is not None:
                held = memory[joint.name].queue[0] if isinstance(act, Sampled) else None
                state = ActuationState(q[sl], qd[sl], q, qd, held, joint.motor)
                tau = act.effort(t, piece_time, state)
            if joint.motor is not None and joint.motor.ripple is not None:
                ripple = joint.motor.ripple
                wave = jnp.sin(ripple.periods * joint.motor.gear * q[sl] + ripple.phase)
                tau = tau + (ripple.torque + ripple.share * tau) * wave
            if joint.motor_limit is not None:
                tau = jnp.clip(tau, -joint.motor_limit, joint.motor_limit)
            parts.append(tau.astype(qd.dtype))
        total = jnp.concatenate(parts) if parts else jnp.zeros_like(qd)
        return total if self.added_effort is None else total + self.added_effort

    def acts(self, robot: Robot) -> bool:
        """Static: whether a motor has an effort; those that cog have one without a drive."""
        return bool(self.joints) or any(joint.cogs for joint in robot.tree_joints)

    def stiffness(self, robot: Robot) -> tuple[Array, Array]:
        """Position and rate gains (D,) of the controllers, for Newton matrices."""
        dtype = robot.gravity.dtype
        kp, kd = [], []
        for joint in robot.tree_joints:
            act = self.joints.get(joint.name)
            p, d = (0.0, 0.0) if act is None else act.stiffness()
            kp += [jnp.asarray(p, dtype)] * joint.dofs
            kd += [jnp.asarray(d, dtype)] * joint.dofs
        return (jnp.stack(kp), jnp.stack(kd)) if kp else (jnp.zeros(0, dtype), jnp.zeros(0, dtype))

    def slopes(
        self,
        robot: Robot,
        t: ScalarLike,
        piece_time: PieceTime,
        q: Float[Array, " D"],
        qd: Float[Array, " D"],
        memory: PyTree = (),
    ) -> tuple[Array, Array]:
        """-d effort / d q and -d effort / d qd (D,) of each joint's own coordinate.

        Zero beyond a limit and where an effort does not resist.
        """
        own = any(isinstance(act, Feedback | Voltage) for act in self.joints.values())
        if not own and not any(j.cogs for j in robot.tree_joints) and not self.limited(robot):
            return self.stiffness(robot)
        every, none = jnp.eye(qd.shape[0], dtype=qd.dtype), jnp.zeros_like(qd)
        _, slope = jax.linearize(
            lambda q, qd: self.effort(robot, t, piece_time, q, qd, memory), q, qd
        )
        by_q, by_qd = (
            jax.vmap(lambda e, f=f: slope(*f(e)) @ e)(every)
            for f in (lambda e: (e, none), lambda e: (none, e))
        )
        return jnp.maximum(-by_q, 0.0), jnp.maximum(-by_qd, 0.0)

    def limited(self, robot: Robot) -> list[str]:
        """Joints under a controller with limited effort."""
        return [
            joint.name
            for joint in robot.tree_joints
            if isinstance(act := self.joints.get(joint.name), PD | Feedback | Voltage)
            and (getattr(act, "limit", None) is not None or joint.motor_limit is not None)
        ]

    def unlimited(self, robot: Robot) -> tuple["Drive", Robot]:
        """Drive and robot without the limits on the efforts of controllers."""
        names = self.limited(robot)
        cut = [name for name in names if getattr(self.joints[name], "limit", None) is not None]
        weak = [
            i for i, j in enumerate(robot.joints) if j.name in names and j.motor_limit is not None
        ]
        drive = eqx.tree_at(lambda d: [d.joints[n].limit for n in cut], self, [None] * len(cut))
        strong = eqx.tree_at(
            lambda r: [r.joints[i].motor.limit for i in weak], robot, [None] * len(weak)
        )
        return drive, strong

    def limits(
        self,
        robot: Robot,
        t: ScalarLike,
        piece_time: PieceTime,
        q: Float[Array, " D"],
        qd: Float[Array, " D"],
        memory: PyTree = (),
    ) -> tuple[np.ndarray, Array, Array, Array, Array] | None:
        """Coordinates (n,) with limited effort; their effort without limit, limit and both gains.

        None if there are none.
        """
        names = self.limited(robot)
        if not names:
            return None
        joints, slices = {j.name: j for j in robot.tree_joints}, robot.dof_slices()
        dofs = np.concatenate([np.arange(robot.dofs)[slices[name]] for name in names])
        bound = jnp.full(robot.dofs, jnp.inf, qd.dtype)
        for name in names:
            for limit in (getattr(self.joints[name], "limit", None), joints[name].motor_limit):
                bound = bound if limit is None else bound.at[slices[name]].min(limit)
        drive, strong = self.unlimited(robot)
        effort = drive.effort(strong, t, piece_time, q, qd, memory)
        kp, kd = drive.slopes(strong, t, piece_time, q, qd, memory)
        return dofs, effort[dofs], bound[dofs], kp[dofs], kd[dofs]

    def breaks(self) -> Array:
        """All times at which a signal jumps; their number is static."""
        signals = [s for act in self.joints.values() for s in act.signals()]
        signals += [load.wrench for load in self.loads]
        if self.base is not None:
            signals += [s for s in (self.base.translation, self.base.angle) if s is not None]
        parts = [s.breaks() for s in signals]
        return jnp.concatenate(parts) if parts else jnp.zeros(0)

    def initial_memory(self, robot: Robot) -> dict[str, SampledMemory]:
        dtype = robot.gravity.dtype
        dofs = {j.name: j.dofs for j in robot.tree_joints}
        return {
            name: SampledMemory(jnp.zeros((act.delay + 1, dofs[name]), dtype), jnp.zeros((), dtype))
            for name, act in self.joints.items()
            if isinstance(act, Sampled)
        }

    def sample(
        self,
        t: ScalarLike,
        t_next: ScalarLike,
        q: Float[Array, " D"],
        qd: Float[Array, " D"],
        memory: dict[str, SampledMemory],
        strains: dict[str, Float[Array, "k 6"]] | None = None,
    ) -> dict[str, SampledMemory]:
        """Update the sampled controllers whose sample time is nearer to ``t`` than to the end.

        ``strains``: those at the gauges of a controller, by name of its joint.
        """
        new = dict(memory)
        for name, mem in memory.items():
            act = self.joints.get(name)
            if not isinstance(act, Sampled):
                continue  # memory of the robot
            due = t + 0.5 * (t_next - t) > mem.count * act.period
            measured = (strains[name],) if strains and name in strains else ()
            effort = act.fn(t, q, qd, act.params, *measured)
            value = jnp.broadcast_to(effort, mem.queue.shape[1:])
            shifted = jnp.concatenate([mem.queue[1:], value[None].astype(mem.queue.dtype)])
            new[name] = jax.tree.map(
                functools.partial(jnp.where, due), SampledMemory(shifted, mem.count + 1), mem
            )
        return new
