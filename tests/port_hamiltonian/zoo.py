"""Mechanisms with every part that the formulation holds, small enough to compile quickly."""

import flexjax as fx

_SOFT = dict(
    EA=4e3,
    EIy=9.0,
    EIz=6.0,
    GJ=5.0,
    rhoA=0.5,
    GAy=1.5e3,
    GAz=1.2e3,
    rhoIx=2e-3,
    rhoIy=1e-3,
    rhoIz=1.5e-3,
)


def constants(**changed):
    return fx.BeamConstants(**(_SOFT | changed))


def spatial():
    """Curved link on a universal joint with hub and friction, rigid link on a flexible joint with
    rotor, link with an offset payload on a ball.
    """
    links = [
        fx.Link(
            "a",
            0.7,
            constants=constants(),
            curvature=(0.3, -0.4, 0.6),
            damping=fx.Damping(strain_rate=1e-3),
        ),
        fx.Link(
            "b",
            0.3,
            rigid=True,
            body=fx.Body(0.4, (0.1, 0.02, 0.0), (1e-3, 2e-3, 2e-3, 0.0, 0.0, 0.0)),
        ),
        fx.Link("c", 0.5, constants=constants()),
    ]
    joints = [
        fx.Joint(
            "u",
            "universal",
            "ground",
            "a",
            axis=(0, 0, 1),
            axis2=(0, 1, 0),
            hub=fx.Hub(0.1, 1e-2),
            damping=0.02,
            home=(0.2, -0.3),
        ),
        fx.Joint(
            "f",
            "revolute",
            "a",
            "b",
            axis=(0, 0.6, 0.8),
            stiffness=30.0,
            damping=0.05,
            offset=(0.02, 0.05, -0.03),
            rotation=(0.2, 0.1, 0.4),
            motor=fx.Motor(rotor=4e-3, gear=3.0),
        ),
        fx.Joint("s", "spherical", "b", "c", home=(0.3, 0.2, -0.4)),
    ]
    payloads = [fx.Payload("p", "c", 0.2, inertia=1e-3, offset=(0.03, 0.04, 0.01))]
    return fx.Robot("spatial zoo", links, joints, payloads, gravity=(0.0, -9.81, 1.0))


def planar():
    """Two links, prismatic base, flexible elbow with rotor and stops, a payload inside a link."""
    links = [
        fx.Link("a", 0.8, constants=constants(), curvature=(0, 0, 0.5)),
        fx.Link("b", 0.6, constants=constants()),
    ]
    joints = [
        fx.Joint(
            "slide",
            "prismatic",
            "ground",
            "a",
            axis=(0.6, 0.8, 0),
            mass=0.2,
            stops=fx.Stops(-0.05, 0.05, 50.0, 1.0),
        ),
        fx.Joint(
            "elbow",
            "revolute",
            "a",
            "b",
            stiffness=20.0,
            damping=0.1,
            friction=fx.Friction(0.05, 0.1),
            motor=fx.Motor(rotor=2e-3, gear=5.0),
        ),
    ]
    payloads = [fx.Payload("p", "b", 0.3, inertia=1e-3, offset=(0.0, 0.05, 0.0), s=0.4)]
    return fx.Robot("planar zoo", links, joints, payloads, planar=True)


def closed_spatial():
    """A four-bar in space whose loop is closed by a revolute joint."""
    names = ("a", "b", "c")
    links = [fx.Link(n, 0.5, constants=constants()) for n in names]
    joints = [
        fx.Joint("j1", "revolute", "ground", "a", home=0.3),
        fx.Joint("j2", "revolute", "a", "b", home=-1.5),
        fx.Joint("j3", "spherical", "b", "c", home=(0.0, 0.0, -1.3)),
        fx.Joint(
            "close", "revolute", "ground", "c", loop=True, child_at="tip", offset=(0.55, -0.05, 0.0)
        ),
    ]
    return fx.Robot("closed in space", links, joints, gravity=(0.0, -9.81, 0.5))
