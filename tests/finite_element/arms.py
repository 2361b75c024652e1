"""The same arm as a robot and as an independent Lagrangian."""

import jax.numpy as jnp

import flexjax as fx
from flexjax.numerics.beam import bspline_cubics, hermite_cubics
from tests.finite_element.lagrangian import Arm, Piece, from_table

TYPES = {"R": "revolute", "Pa": "sliding", "Pb": "prismatic"}


def both(
    kinds,
    *,
    lengths,
    elements,
    mu=0.7,
    EI=0.5,
    rhoI=2e-3,
    gravity=(1.0, -9.81),
    payload=(0.2, 0.003, 0.05, -0.02),
    gammas=None,
    basis="auto",
):
    """(robot, Lagrangian) with all links elastic where ``elements`` is not zero, a payload with
    offset and inertia on the last link.
    """
    links, joints, pieces = [], [], []
    gammas = gammas or [0.0 if k == "R" else 0.4 + 0.3 * i for i, k in enumerate(kinds)]
    for i, kind in enumerate(kinds):
        carrier = i + 1 < len(kinds) and kinds[i + 1] == "Pa"
        n = elements[i]
        constants = fx.BeamConstants(EA=1.0, EIy=1.0, EIz=EI, GJ=1.0, rhoA=mu, rhoIz=rhoI)
        links.append(fx.Link(f"link{i + 1}", lengths[i], constants=constants, rigid=n == 0))
        parent = "ground" if i == 0 else f"link{i}"
        rotation = None if kind == "R" else [0.0, 0.0, gammas[i]]
        joints.append(
            fx.Joint(f"joint{i + 1}", TYPES[kind], parent, f"link{i + 1}", rotation=rotation)
        )
        last = i == len(kinds) - 1
        spline = carrier if basis == "auto" else basis == "bspline"
        table = None if n == 0 else (bspline_cubics if spline else hermite_cubics)(n)
        pieces.append(
            Piece(
                kind,
                gammas[i],
                lengths[i],
                mu,
                EI,
                n,
                0 if n == 0 else table.size,
                None if n == 0 else from_table(table),
                payload if last else (0.0,) * 4,
                rhoI,
            )
        )
    m, J, x, y = payload
    payloads = (
        [
            fx.Payload(
                "load", f"link{len(kinds)}", m, inertia=J, offset=[x, y, 0.0] if x or y else None
            )
        ]
        if m
        else []
    )
    robot = fx.Robot("-".join(kinds), links, joints, payloads, gravity=[*gravity, 0.0], planar=True)
    return robot, Arm(pieces, gravity)


def model_of(robot, elements, **options):
    counts = {link.name: n for link, n in zip(robot.links, elements, strict=True) if n}
    return fx.FiniteElement(elements=counts, **({"stiffening": False} | options)).bind(robot)


def coordinates(kinds, lengths, size, key):
    """A generic configuration and velocity: contacts and free lengths inside their links."""
    rng = key
    q, v = (
        jnp.asarray(0.03 * rng.standard_normal(size)),
        jnp.asarray(0.5 * rng.standard_normal(size)),
    )
    for i, kind in enumerate(kinds):
        if kind == "R":
            q = q.at[i].set(0.7 - 0.3 * i)
        elif kind == "Pb":
            q = q.at[i].set(0.62 * lengths[i])
        elif i:
            q = q.at[i].set(0.83 * lengths[i - 1])
        else:
            q = q.at[i].set(0.2)
    return q, v
