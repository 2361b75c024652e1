"""Arms that the tests of simulate and the solvers share."""

import functools

import flexjax as fx


@functools.cache
def planar_pair() -> fx.Robot:
    """Two rigid links in the plane with a payload: the smallest arm with a configuration-dependent
    mass matrix.
    """
    al = fx.Material.named("aluminium")
    links = [
        fx.Link(name, 0.5, section=fx.Rectangle(0.02, 0.02), material=al, rigid=True)
        for name in ("upper", "fore")
    ]
    return fx.Robot.serial(links, name="pair", payloads=(fx.Payload("tool", "fore", 0.2),))


@functools.cache
def pair_model():
    return fx.RigidArm().bind(planar_pair())


START = {"joint1": 0.3, "joint2": 0.8}

# Built here, once: inside a traced function their numbers would be tracers, and the cache would
# leak them.
planar_pair(), pair_model()
