"""Planar arms of finite-element beams with revolute, sliding (Pa) or prismatic (Pb) joints."""

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from flexjax.formulation._base import AbstractFormulation, check_variant
from flexjax.formulation._chain_model import ChainModel
from flexjax.formulation._left_out import coordinates, lacks_shear, large_bending
from flexjax.formulation.finite_element._integrals import Terms, payload_loads, stacked_numbers
from flexjax.formulation.finite_element._link import FiniteElementLinks
from flexjax.formulation.finite_element._refusals import counts, refusals
from flexjax.formulation.finite_element._spin_limit import spin_warnings
from flexjax.mechanism.chain import (
    Layout,
    Parameters,
    chain_parameters,
    serial_layout,
)
from flexjax.numerics.beam import Cubics, bspline_cubics, hermite_cubics
from flexjax.robot import Robot

BASES = {"hermite": hermite_cubics, "bspline": bspline_cubics}


def _frozen(elements: Any):
    return tuple(sorted(elements.items())) if isinstance(elements, dict) else elements


class FiniteElement(AbstractFormulation):
    """Links as Euler-Bernoulli beams of cubic elements, clamped to a floating frame at the joint.

    Arguments:
        elements: number per link, or a dict from link name to number (0: that link is rigid).
        basis: "hermite" (the paper's), "bspline", or "auto": B-splines on links that carry a
            sliding joint, Hermite cubics elsewhere. The rider's spin contains the curvature, in
            which Hermite cubics jump at element borders: they would gain or lose energy there.
        contact: how a joint slides along an elastic link. "fixed": over its fixed mesh. "ale": a
            node moves with the contact, with half of the elements on either side; only there may
            the curvature jump at the contact, and the link's ends are singular. "node": the
            paper's rule, deflection and slope of the next node; the rider jumps.
        variant: "complete", or "paper", the published equations: without stiffening and without
            rotary inertia of sections.
        stiffening: points move back by half the integral of the squared slope, which stiffens
            rotating links. Without it they soften, and the end of a bent link is too far out. By
            default on in the complete variant, but for links that run through their joint or whose
            mesh moves (contact="ale"): a run in which it matters there warns.
        rotary: rotary inertia of the sections; by default on in the complete variant.

    >>> import flexjax as fx
    >>> model = fx.FiniteElement(elements=3).bind(fx.load_robot("my-par"))
    """

    bend_power: ClassVar[int | None] = 3
    paper: ClassVar[str] = (
        "C. A. My, D. X. Bien, C. H. Le, M. Packianather, An efficient finite element formulation "
        "of dynamics for a flexible robot with different type of joints, Mechanism and Machine "
        "Theory 134 (2019); with the corrections listed in "
        "flexjax/formulation/finite_element/PAPER.md."
    )
    elements: int | tuple[tuple[str, int], ...] = eqx.field(
        static=True, default=5, converter=_frozen
    )
    basis: str = eqx.field(static=True, default="auto")
    contact: str = eqx.field(static=True, default="fixed")
    variant: str = eqx.field(static=True, default="complete")
    stiffening: bool | None = eqx.field(static=True, default=None)
    rotary: bool | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        given = self.elements
        pairs = isinstance(given, tuple) and all(len(x) == 2 for x in given)
        counts = [n for _, n in given] if isinstance(given, tuple) and pairs else [given]
        if any(not isinstance(n, int) or n < 0 for n in counts):
            raise ValueError(
                f"elements: {self.elements}; expected a whole number, or a dict from link name to "
                "one, e.g. {'upper': 8}."
            )
        check_variant(self.variant)
        if self.basis not in ("auto", *BASES):
            raise ValueError(f"basis: {self.basis!r}; expected 'auto', 'hermite' or 'bspline'.")
        if self.contact not in ("fixed", "ale", "node"):
            raise ValueError(f"contact: {self.contact!r}; expected 'fixed', 'ale' or 'node'.")
        if self.contact != "fixed" and self.basis == "bspline":
            raise ValueError(
                f"contact: {self.contact!r} with B-splines, which have no values at nodes; "
                "expected basis='auto' or 'hermite'."
            )

    def counts(self, robot: Robot) -> dict[str, int]:
        """Elements of every elastic link."""
        return counts(self, robot)

    def refusals(self, robot: Robot) -> list[str]:
        return refusals(self, robot)

    def stiffened(self, robot: Robot) -> frozenset[str]:
        """Elastic links whose points move back as they bend."""
        on = self.variant == "complete" if self.stiffening is None else self.stiffening
        if not on:
            return frozenset()
        guided = {j.child for j in robot.tree_joints if j.telescopes}
        return frozenset(self.counts(robot)) - guided - self.pinned(robot)

    def pinned(self, robot: Robot) -> frozenset[str]:
        """Links whose mesh has a node at a contact."""
        elastic = self.counts(robot)
        return frozenset(
            j.parent
            for j in robot.tree_joints
            if self.contact == "ale" and j.type == "sliding" and j.parent in elastic
        )

    def table(self, robot: Robot, name: str, count: int) -> Cubics:
        carrier = any(j.type == "sliding" and j.parent == name for j in robot.tree_joints)
        basis = self.basis
        if basis == "auto":
            basis = "bspline" if carrier and self.contact == "fixed" else "hermite"
        return BASES[basis](count)

    def build(self, robot: Robot) -> ChainModel:
        by_name = {name: self.table(robot, name, n) for name, n in self.counts(robot).items()}
        pinned = self.pinned(robot)
        sizes = {name: c.size for name, c in by_name.items()}
        layout = serial_layout(robot, sizes, planar=True, pinned=pinned)
        parameters = chain_parameters(robot, layout)
        if not by_name:
            return ChainModel(robot, self, layout, parameters)
        tables = tuple(
            by_name.get(robot.links[s.link].name) if s.link >= 0 else None for s in layout.stages
        )
        size = layout.shape_count
        names = [robot.links[s.link].name if s.link >= 0 else "" for s in layout.stages]
        through = tuple(s.extends for s in layout.stages)
        nodes = tuple(name in pinned for name in names)
        stiffened = self.stiffened(robot)
        stiff = tuple(name in stiffened for name in names)
        rotary = self.variant == "complete" if self.rotary is None else self.rotary
        terms = tuple(Terms(on, rotary, any(through)) for on in stiff)
        numbers = stacked_numbers(robot, layout, tables, size, terms, pinned)
        damped = any(link.damping is not None for link in robot.links if link.name in by_name)
        links = FiniteElementLinks(
            numbers,
            payload_loads(robot, layout, pinned),
            tables,
            through,
            (False,) * len(through),
            stiff,
            damped,
            nodes,
            self.contact == "node",
        )
        if pinned:
            parameters, links = _lend(layout, parameters, links)
        return ChainModel(robot, self, layout, parameters, links)

    def run_warnings(self, model: ChainModel, traj: Any) -> list[str]:
        found = spin_warnings(model, traj) + lacks_shear(self, model.robot)
        links = model.links
        if isinstance(links, FiniteElementLinks) and not (any(links.through) or any(links.pinned)):
            across = links.end_functions()[0][:, None]
            bends = model.tip_bends(coordinates(traj), across)
            found += large_bending(self, bends)
        return found


def _lend(
    layout: Layout, parameters: Parameters, links: FiniteElementLinks
) -> tuple[Parameters, FiniteElementLinks]:
    """Move the mass of a body on a pinned contact to its carrier, as a point mass there.

    The energy is the same, but both can be eliminated one after the other.
    """
    borrowed, taken = jnp.zeros_like(links.length), jnp.zeros_like(parameters.inertia)
    for b, stage in enumerate(layout.stages):
        if stage.rides:
            mass = parameters.inertia[b, 0, 0] + links.numbers.rigid[b, 0, 0]
            out = parameters.space.adjoint(jax.tree.map(lambda x, b=b: x[b], parameters.after))
            point = mass * jnp.diag(jnp.array([1.0, 1.0, 0.0], mass.dtype))
            borrowed = borrowed.at[b - 1].set(mass)
            taken = taken.at[b].set(out.T @ point @ out)
    parameters = eqx.tree_at(lambda p: p.inertia, parameters, parameters.inertia - taken)
    return parameters, dataclasses.replace(links, borrowed=borrowed, taken=taken)
