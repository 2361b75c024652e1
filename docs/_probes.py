"""Probes of the capability matrix: small robots with one feature each, and small drives."""

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

import flexjax as fx
from flexjax.formulation import Start
from flexjax.numerics.term import State
from flexjax.simulate import static_readings

BAR = {"section": fx.Rectangle(0.02, 0.005), "material": fx.Material.named("aluminium")}
ROUND = {"section": fx.Circle(0.01), "material": fx.Material.named("aluminium")}
RIGID = {"rigid": True, "body": fx.Body(1.0, (0.25, 0.0, 0.0), (1e-4, 0.02, 0.02, 0.0, 0.0, 0.0))}


def link(name="a", **fields):
    described = {"pieces", "constants", "body"} & set(fields)
    return fx.Link(name, 0.5, **(fields if described else {**BAR, **fields}))


def joint(kind="revolute", parent="ground", child="a", **fields):
    return fx.Joint(f"{parent}-{child}", kind, parent, child, **fields)


def robot(links, joints, **fields):
    return fx.Robot("probe", links, joints, **{"planar": True, **fields})


def one(joint_fields=None, **link_fields):
    """One elastic link on a revolute joint."""
    return robot([link(**link_fields)], [joint(**(joint_fields or {}))])


def two(kind="revolute", first=None, **fields):
    """Two elastic links with a joint of the given kind between them."""
    return robot([link(**(first or {})), link("b")], [joint(), joint(kind, "a", "b", **fields)])


def behind_rigid(kind, **fields):
    """A rigid link that carries an elastic one, with a joint of the given kind between them."""
    return robot([link(**RIGID), link("b")], [joint(), joint(kind, "a", "b", **fields)])


def based(kind, planar=False, **fields):
    """One elastic link on the ground; round, so that it bends in both planes and twists."""
    return robot([link(**ROUND)], [joint(kind, **fields)], planar=planar)


def beam():
    return fx.BeamConstants(
        EA=7e6, EIy=200.0, EIz=15.0, GJ=30.0, rhoA=0.27, rhoIx=1e-5, rhoIy=9e-6, rhoIz=1e-6
    )


Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
LOOP = [
    joint(),
    joint(child="b", rotation=(0.0, 0.0, 1.5)),
    joint("revolute", "a", "c", rotation=(0.0, 0.0, 1.5)),
    joint("revolute", "b", "d", rotation=(0.0, 0.0, -1.5)),
    fx.Joint("closure", "revolute", "c", "d", loop=True, child_at="tip"),
]


def spatial():
    """Two elastic links in space."""
    links = [link(**ROUND), link("b", **ROUND)]
    return robot(links, [joint(axis=Z), joint("revolute", "a", "b", axis=Y)], planar=False)


def rigid_tip():
    """An elastic link that carries a rigid one."""
    return robot([link(), link("b", **RIGID)], [joint(), joint("revolute", "a", "b")])


def branched():
    """An elastic link that carries two others."""
    joints = [joint(), joint("revolute", "a", "b"), joint("revolute", "a", "c")]
    return robot([link(), link("b"), link("c")], joints)


def loaded(payload):
    """One elastic link with a payload."""
    return eqx.tree_at(lambda r: r.payloads, one(), (payload,))


def mounted():
    """One elastic link whose joint has an offset and a mounting angle."""
    return one({"offset": (0.0, 0.02, 0.0), "rotation": (0.0, 0.0, 0.3)})


ROBOTS = {
    "Arm": {
        "one elastic link": one,
        "several elastic links, revolute joints, planar": two,
        "several elastic links, spatial": spatial,
        "a rigid link carries the elastic one": lambda: behind_rigid("revolute"),
        "an elastic link carries a rigid one": rigid_tip,
        "rigid links only": lambda: robot([link(**RIGID)], [joint()]),
        "branches": branched,
        "closed loops": lambda: robot([link(), link("b"), link("c"), link("d")], LOOP),
    },
    "Joint": {
        "revolute": one,
        "fixed, between elastic links": lambda: two("fixed"),
        "prismatic with axis": lambda: based("prismatic", planar=True, axis=Y),
        "sliding along a rigid link (Pa)": lambda: behind_rigid("sliding", home=0.2),
        "sliding along an elastic link (Pa)": lambda: two("sliding", home=0.2),
        "an elastic link slides through the joint (Pb)": lambda: behind_rigid(
            "prismatic", home=0.3
        ),
        "telescoping elastic tubes (Pb)": lambda: two("prismatic", home=0.3),
        "universal": lambda: based("universal", axis=Y, axis2=Z),
        "spherical": lambda: based("spherical"),
        "free (floating base)": lambda: based("free"),
        "flexible (spring between motor and link)": lambda: one({"stiffness": 100.0}),
        "backlash and hardening of a joint spring": lambda: one(
            {"stiffness": 50.0, "backlash": 0.01, "hardening": 100.0}
        ),
        "viscous damping": lambda: one({"damping": 0.1}),
        "dry friction": lambda: one({"friction": fx.Friction(0.1)}),
        "dry friction of a flexible joint's output": lambda: one(
            {"stiffness": 50.0, "output_friction": fx.Friction(0.1)}
        ),
        "dry friction with bristles": lambda: one({"friction": fx.Friction(0.1, bristle=10.0)}),
        "hub": lambda: one({"hub": fx.Hub(0.1, 1e-3)}),
        "rotor and gear": lambda: one({"motor": fx.Motor(rotor=1e-6, gear=50.0)}),
        "torque ripple of a motor": lambda: one({"motor": fx.Motor(ripple=fx.Ripple(7.0, 0.1))}),
        "end stops": lambda: one({"stops": fx.Stops(-1.0, 1.0, 100.0)}),
        "mounting offset and angle": mounted,
    },
    "Link": {
        "constants in place of section and material": lambda: one(constants=beam()),
        "pieces with different sections": lambda: one(
            pieces=(fx.Piece(0.5, **BAR), fx.Piece(0.5, **ROUND))
        ),
        "tapered": lambda: one(section_end=fx.Rectangle(0.01, 0.003)),
        "curved at rest": lambda: one(curvature=(0.0, 0.0, 0.4)),
        "strain-rate damping": lambda: one(damping=fx.Damping(strain_rate=1e-4)),
        "mass-proportional damping": lambda: one(damping=fx.Damping(mass=0.1)),
        "modal damping": lambda: one(damping=fx.Damping(modal=0.01)),
    },
    "Payload": {
        "at the tip, with inertia and offset": lambda: loaded(
            fx.Payload("p", "a", 0.1, 1e-4, (0.02, 0.01, 0.0))
        ),
        "inside the link": lambda: loaded(fx.Payload("p", "a", 0.1, s=0.5)),
    },
}


def control(t, q, qd, params):
    return -params * q


def wrench(*numbers):
    return fx.constant(jnp.array(numbers))


PIN = "ground-a"
WRENCH = (0.1, 1.0, 0.0, 0.0, 0.0, 0.1)
DRIVES = {
    "Motion (prescribed)": fx.Drive({PIN: fx.Motion(fx.quintic(0.0, 1.0, 0.5))}),
    "Effort": fx.Drive({PIN: fx.Effort(fx.constant(0.3))}),
    "PD": fx.Drive({PIN: fx.PD(10.0, 1.0, fx.constant(0.2))}),
    "Feedback (your own control law)": fx.Drive(
        {PIN: fx.Feedback(lambda t, q, qd, p: p * (0.2 - q), jnp.asarray(10.0))}
    ),
    "Sampled (your own discrete-time law)": fx.Drive(
        {PIN: fx.Sampled(control, 1e-3, jnp.asarray(10.0))}
    ),
    "load at the tip": fx.Drive(loads=[fx.Load("a", wrench(*WRENCH))]),
    "load inside a link": fx.Drive(loads=[fx.Load("a", wrench(*WRENCH), s=0.4)]),
    "follower load": fx.Drive(loads=[fx.Load("a", wrench(*WRENCH), frame="section")]),
    "moving base": fx.Drive(
        base=fx.Base(
            translation=fx.stack([fx.sine(0.01, 2.0), fx.sine(0.02, 3.0), fx.constant(0.0)])
        )
    ),
}
SENSORS = {
    "encoder": fx.Sensor("encoder", "encoder", PIN),
    "motor encoder": fx.Sensor("motor encoder", "motor_encoder", PIN),
    "tip position": fx.Sensor("tip position", "tip", "a", direction=(0.0, 1.0, 0.0)),
    "strain gauge": fx.Sensor("strain gauge", "strain_gauge", "a", s=0.2, position=(0.0025, 0.0)),
    "flex sensor": fx.Sensor("flex sensor", "flex", "a", span=(0.1, 0.9)),
    "accelerometer": fx.Sensor(
        "accelerometer", "accelerometer", "a", s=0.7, direction=(0.0, 1.0, 0.0)
    ),
    "joint torque": fx.Sensor("joint torque", "torque", PIN),
}
STRAINS = ("axial", "shear y", "shear z", "torsion", "curvature y", "curvature z")


@eqx.filter_jit
def _rate(model, drive, held):
    """The rate of the state at t = 0.1 while sampled controllers hold the effort ``held``."""
    t = jnp.asarray(0.1)
    y = model.initial_state(drive, t, Start())
    memory = jax.tree.map(lambda x: jnp.full_like(x, held), y.memory)
    return model.term(drive).rate(t, State(y.mech, y.work, y.dissipated, memory), None)


def acts(model, drive) -> bool:
    """Whether a drive changes the rate of the state."""
    driven, passive = (jax.tree.leaves(_rate(model, d, 0.3)) for d in (drive, fx.Drive()))
    return any(
        np.max(np.abs(np.asarray(a) - np.asarray(b))) > 1e-9
        for a, b in zip(driven, passive, strict=False)
    )


@eqx.filter_jit
def _perturbed(model, drive, key):
    """Readings of all sensors and strains at three stations, all unknowns slightly perturbed."""
    t = jnp.asarray(0.0)
    y, term = model.initial_state(drive, t, Start()), model.term(drive)
    shape = jax.eval_shape(lambda: term.rate(t, y, None))
    like, unflatten = jax.flatten_util.ravel_pytree(
        jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shape)
    )
    moved = term.retract(y.mech, unflatten(1e-3 * jax.random.normal(key, like.shape, like.dtype)))
    y = State(moved, y.work, y.dissipated, y.memory)
    return static_readings(model, drive, t, y), model.observe(
        t, y, drive, jnp.array([0.1, 0.45, 0.8])
    ).strain


def perturbed(formulation, spatial: bool) -> tuple[dict[str, float], np.ndarray]:
    """Readings by sensor and largest strains by component, spatial where supported."""
    arm = robot(
        [link(**ROUND)], [joint(axis=Z)], planar=not spatial, sensors=tuple(SENSORS.values())
    )
    readings, strain = _perturbed(
        formulation.bind(arm), fx.Drive({PIN: fx.PD(5.0, 0.1, fx.constant(0.1))}), jax.random.key(0)
    )
    return dict(zip(SENSORS, np.abs(np.asarray(readings)).tolist(), strict=True)), np.max(
        np.abs(np.asarray(strain)), axis=(0, 1)
    )
