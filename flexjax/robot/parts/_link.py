"""Parameters of links: elastic beams or rigid bodies."""

import equinox as eqx
from jaxtyping import Array, Float

from flexjax._types import as_float, as_float_or_none
from flexjax.robot.parts._choices import MATERIALS as MATERIALS
from flexjax.robot.parts._facts import LinkFacts
from flexjax.robot.parts._fault import RobotError
from flexjax.robot.parts._section import AbstractSection


class Material(eqx.Module):
    """Linear elastic material; ``Material.named("aluminium")`` returns one of a small table.

    Give exactly one of ``nu`` and ``G``.

    Arguments:
        E: Young's modulus [Pa].
        rho: density [kg/m3].
        nu: Poisson's ratio.
        G: shear modulus [Pa].

    >>> import flexjax as fx
    >>> float(fx.Material.named("aluminium").rho)
    2700.0
    >>> float(fx.Material(E=2.1e11, rho=7850.0, nu=0.3).nu)
    0.3
    """

    E: Float[Array, ""] = eqx.field(converter=as_float)
    rho: Float[Array, ""] = eqx.field(converter=as_float)
    nu: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    G: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)

    def __check_init__(self):
        if (self.nu is None) == (self.G is None):
            given = f"nu = {self.nu}, G = {self.G}"
            remedy = "Give nu (Poisson's ratio) or G (shear modulus)."
            raise RobotError("material", [f"{given}: expected exactly one of them. {remedy}"])

    @property
    def shear_modulus(self) -> Array:
        if self.G is not None:
            return self.G
        assert self.nu is not None  # one of the two is given
        return self.E / (2 * (1 + self.nu))

    @classmethod
    def named(cls, name: str) -> "Material":
        if name not in MATERIALS:
            known = ", ".join(MATERIALS)
            remedy = "For another material give E, rho and nu or G."
            raise RobotError("material", [f"{name!r}: expected one of {known}. {remedy}"])
        return cls(**MATERIALS[name])


class BeamConstants(eqx.Module):
    """Stiffness and inertia per length of a beam, in place of section and material.

    Without a shear stiffness shear is not modelled; a missing rotary inertia is zero. In
    PortHamiltonian such a link is an Euler-Bernoulli beam too; only its torsion without ``rhoIx``
    has inertia, ``rhoA l**2 / 12`` with the length ``l`` of an element.

    Arguments:
        EA: axial stiffness [N].
        EIy, EIz: stiffness for bending in z and in y [N m2].
        GJ: torsional stiffness [N m2].
        rhoA: mass per length [kg/m].
        GAy, GAz: shear stiffness along y and z [N].
        rhoIx, rhoIy, rhoIz: rotary inertia per length [kg m].

    >>> import flexjax as fx
    >>> beam = fx.BeamConstants(EA=1e6, EIy=20.0, EIz=20.0, GJ=15.0, rhoA=0.3)
    >>> fx.Link("upper", 0.5, constants=beam).elastic
    True
    """

    EA: Float[Array, ""] = eqx.field(converter=as_float)
    EIy: Float[Array, ""] = eqx.field(converter=as_float)
    EIz: Float[Array, ""] = eqx.field(converter=as_float)
    GJ: Float[Array, ""] = eqx.field(converter=as_float)
    rhoA: Float[Array, ""] = eqx.field(converter=as_float)
    GAy: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    GAz: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    rhoIx: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    rhoIy: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    rhoIz: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)


class Damping(eqx.Module):
    """Damping of a link.

    Arguments:
        strain_rate: tau in sigma = E (eps + tau eps_dot) [s].
        mass: factor c of the force per length -c * rhoA * (velocity of the deformation) [1/s].
        modal: damping ratio of every mode of the link clamped at its base.

    >>> import flexjax as fx
    >>> float(fx.Damping(strain_rate=1e-4).strain_rate)
    0.0001
    """

    strain_rate: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    mass: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    modal: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)


class Body(eqx.Module):
    """Mass properties of a rigid link.

    Arguments:
        mass: mass [kg].
        com: centre of mass from the link's base, in link axes [m].
        inertia: inertia about the centre of mass as (xx, yy, zz, xy, xz, yz) [kg m2].

    >>> import flexjax as fx
    >>> body = fx.Body(mass=1.2, com=(0.25, 0.0, 0.0), inertia=(1e-3, 0.03, 0.03, 0, 0, 0))
    >>> fx.Link("upper", 0.5, body=body, rigid=True).elastic
    False
    """

    mass: Float[Array, ""] = eqx.field(converter=as_float)
    com: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 0.0))
    inertia: Float[Array, "6"] = eqx.field(
        converter=as_float, default=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    )


class Piece(eqx.Module):
    """A segment of a link with its own section.

    Arguments:
        fraction: fraction of the link's length.
        section, material: section and material of the segment.
        section_end: section at its far end; its dimensions vary linearly.
        constants: stiffness and inertia per length, in place of section and material.

    >>> import flexjax as fx
    >>> steel = fx.Material.named("steel")
    >>> pieces = [fx.Piece(0.4, fx.Circle(0.02), steel), fx.Piece(0.6, fx.Circle(0.01), steel)]
    >>> len(fx.Link("stepped", 0.5, pieces=pieces).pieces)
    2
    """

    fraction: Float[Array, ""] = eqx.field(converter=as_float)
    section: AbstractSection | None = None
    section_end: AbstractSection | None = None
    material: Material | None = None
    constants: BeamConstants | None = None


class Link(LinkFacts, eqx.Module):
    """One link, along its local +x axis from its base (s = 0) to its tip (s = 1).

    Give exactly one of ``section`` with ``material``, ``constants``, ``pieces`` or, for a rigid
    link, ``body``.

    Arguments:
        name: name of the link.
        length: length [m].
        section, material: section and material.
        section_end: section at the tip; the dimensions vary linearly from ``section``.
        constants: stiffness and inertia per length.
        pieces: segments with their own sections, from base to tip.
        body: mass properties of a rigid link.
        curvature: unstressed (twist, curvature about y, curvature about z) [1/m].
        damping: damping of the link.
        rigid: whether the link is rigid.

    >>> import flexjax as fx
    >>> link = fx.Link("upper", 0.5, fx.Rectangle(0.03, 0.005), fx.Material.named("aluminium"))
    >>> link.elastic
    True
    """

    name: str = eqx.field(static=True)
    length: Float[Array, ""] = eqx.field(converter=as_float)
    section: AbstractSection | None = None
    material: Material | None = None
    section_end: AbstractSection | None = None
    constants: BeamConstants | None = None
    pieces: tuple[Piece, ...] = eqx.field(converter=tuple, default=())
    body: Body | None = None
    curvature: Float[Array, "3"] | None = eqx.field(converter=as_float_or_none, default=None)
    damping: Damping | None = None
    rigid: bool = eqx.field(static=True, default=False)
