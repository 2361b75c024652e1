"""Serial arms of flexible links in modal coordinates, synthesised with screws."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from flexjax.drive import Drive
from flexjax.formulation._base import AbstractFormulation, check_variant
from flexjax.formulation._chain_model import ChainModel
from flexjax.formulation._left_out import coordinates, lacks_shear, large_bending
from flexjax.formulation.screw_synthesis._frame import FramedLinks
from flexjax.formulation.screw_synthesis._integrals import lowest_bending, modal_links
from flexjax.formulation.screw_synthesis._link import ModalLinks
from flexjax.formulation.screw_synthesis._paper import WellPosed, check_well_posed
from flexjax.formulation.screw_synthesis._refusals import counts, refusals
from flexjax.mechanism import Start
from flexjax.mechanism.chain import (
    chain_parameters,
    chain_start,
    serial_layout,
)
from flexjax.numerics.beam import shape_functions
from flexjax.robot import Robot

WIDER = 5  # polynomials beyond the number of modes, in whose span a link's own modes are computed


def _frozen(basis: Any):
    """A dict of functions as a hashable tuple."""
    if not isinstance(basis, dict):
        return basis
    return tuple((k, tuple(v)) for k, v in sorted(basis.items()))


class ScrewSynthesis(AbstractFormulation):
    """Links with three screws (motion of the frame, reference geometry, deformation) and modes.

    Arguments:
        modes: number of shape functions in (axial, y, z, torsion), or one number for bending (one
            less, but at least one, for axial and torsion).
        basis: "polynomial" (converges for any next joint), "clamped-free" (eigenfunctions of the
            cantilever; better for the last link), "modes" (each link's own, from its sections,
            payloads, hub and joint axis), or a dict of functions of s in [0, 1], e.g.
            ``{"y": (lambda s: s**2,)}`` with matching ``modes``.
        variant: "complete", or "paper", the published equations: without stiffening.
        stiffening: sections move back by half the integral of the squared slope, so the axial
            strain is complete to second order. Without it rotating links soften, and the end of a
            bent link is too far out. By default on in the complete variant.
        frame: station of the link's frame, 0 at its base.

    >>> import flexjax as fx
    >>> model = fx.ScrewSynthesis(modes=2).bind(fx.load_robot("yaqubi-two-link"))
    """

    bend_power: ClassVar[int | None] = 3
    paper: ClassVar[str] = (
        "S. Yaqubi, J. Mattila, Scalable Screw-Theoretic Synthesis for PDE-Based Dynamic Modeling "
        "of Multibody Flexible Manipulators; with the corrections listed in "
        "flexjax/formulation/screw_synthesis/PAPER.md."
    )
    modes: int | tuple[int, int, int, int] = eqx.field(static=True, default=3)
    basis: str | tuple[tuple[str, tuple[Callable, ...]], ...] = eqx.field(
        static=True, default="polynomial", converter=_frozen
    )
    variant: str = eqx.field(static=True, default="complete")
    stiffening: bool | None = eqx.field(static=True, default=None)
    frame: float = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        counts = (self.modes,) if isinstance(self.modes, int) else tuple(self.modes)
        if len(counts) not in (1, 4) or any(not isinstance(n, int) or n < 0 for n in counts):
            raise ValueError(
                f"modes: {self.modes}; expected a whole number, or four of them for (axial, y, z, "
                "torsion), e.g. (2, 3, 3, 2)."
            )
        known = ("polynomial", "clamped-free", "modes")
        if isinstance(self.basis, str) and self.basis not in known:
            raise ValueError(
                f"basis: {self.basis!r}; expected 'polynomial', 'clamped-free', 'modes' or a dict "
                "of functions."
            )
        check_variant(self.variant)
        if not 0.0 <= self.frame <= 1.0:
            raise ValueError(f"frame: {self.frame}; expected a station from 0 (base) to 1 (tip).")
        if self.basis == "modes" and self.frame:
            raise ValueError(
                f"frame: {self.frame} with basis 'modes', which a link has about its base; "
                "expected 0, or basis 'polynomial'."
            )

    @property
    def stiffened(self) -> bool:
        """Whether sections move back as links bend."""
        return self.variant == "complete" if self.stiffening is None else self.stiffening

    def counts(self, robot: Robot) -> tuple[int, int, int, int]:
        """Shape functions in (axial, y, z, torsion); a planar robot has none out of its plane."""
        return counts(self, robot)

    def refusals(self, robot: Robot) -> list[str]:
        return refusals(self, robot)

    def build(self, robot: Robot) -> ChainModel:
        counts = self.counts(robot)
        shapes = {link.name: sum(counts) for link in robot.links if link.elastic and sum(counts)}
        # Links move in space; those of a planar robot bend in the plane only.
        layout = serial_layout(robot, shapes, planar=robot.planar and not shapes)
        parameters = chain_parameters(robot, layout)
        if not shapes:
            return ChainModel(robot, self, layout, parameters)
        basis = dict(self.basis) if isinstance(self.basis, tuple) else self.basis
        own = counts if basis == "modes" else None
        if own is not None:
            counts, basis = tuple(n + WIDER if n else 0 for n in counts), "polynomial"
        functions = shape_functions(counts, basis, self.frame, robot.gravity.dtype)
        links = modal_links(robot, layout, parameters, functions, self.stiffened, self.frame, own)
        links = FramedLinks(links) if self.frame else links
        return ChainModel(robot, self, layout, parameters, links)

    def start_refusals(self, robot: Robot, start: Start) -> list[str]:
        _, y, z, _ = self.counts(robot)
        return [
            f"start.links.{name}.{field}: ScrewSynthesis has no shape function along {field}; "
            "expected modes with at least one."
            for name, shape in start.links.items()
            for field, count in (("y", y), ("z", z))
            if count == 0
            and (getattr(shape, field), getattr(shape, f"{field}_rate")) != (None, None)
        ]

    def well_posed(
        self, robot: Robot, start: Start | dict | None = None, drive: Drive | None = None
    ) -> WellPosed:
        """Whether the stacked system is invertible, and if not, which joint or link is the cause.

        Arguments:
            robot: the robot.
            start: configuration, as in :func:`flexjax.simulate`.
            drive: prescribed joints are no unknowns.

        >>> import flexjax as fx
        >>> bool(fx.ScrewSynthesis(modes=1).well_posed(fx.load_robot("yaqubi-two-link")))
        True
        """
        if not isinstance(start, Start):
            start = Start(joints=start or {})
        model = self.bind(robot)
        assert isinstance(model, ChainModel)  # what ``build`` returns
        term = model.term(drive or Drive())
        return check_well_posed(term, *chain_start(term, 0.0, start))

    def run_warnings(self, model: ChainModel, traj: Any) -> list[str]:
        """Links that bent too far, or that rotated so fast that their bending frequency is over
        1 % too low: linear strain has no centrifugal stiffening.
        """
        if not isinstance(model.links, ModalLinks | FramedLinks):
            return []
        if self.stiffened:
            links = model.links.inner if isinstance(model.links, FramedLinks) else model.links
            across = np.asarray(links.end.Phi)[:, 1:]
            bends = model.tip_bends(coordinates(traj), across)
            shear = lacks_shear(self, model.robot)
            return shear + large_bending(self, bends)
        speed = np.linalg.norm(np.asarray(traj.velocity)[..., 0, 3:], axis=-1)  # at the bases
        speed = np.nanmax(speed.reshape(-1, speed.shape[-1]), axis=0, initial=0.0)
        found = []
        for i, stage in enumerate(model.layout.stages):
            if not model.layout.shapes[i]:
                continue
            first = lowest_bending(model.links, i)
            ratio = float((speed[stage.link] / first) ** 2)
            if ratio > 0.02:
                name = model.robot.links[stage.link].name
                found.append(
                    f"links.{name} turned at {speed[stage.link]:.3g} rad/s, its first bending "
                    f"frequency is {first:.3g} rad/s: linear strain has no centrifugal stiffening "
                    f"and makes that frequency about {50 * ratio:.2g} % too low. Use "
                    "ScrewSynthesis() with stiffening, its default."
                )
        return found
