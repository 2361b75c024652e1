"""Links: elastic beams or rigid bodies, described by numbers only (no equations here)."""

import equinox as eqx
from jaxtyping import Array, Float

from flexjax._types import as_float, as_float_or_none
from flexjax.robot._fault import RobotError
from flexjax.robot._section import AbstractSection


class Material(eqx.Module):
    """Linear elastic material: Young's modulus ``E`` [Pa], density ``rho`` [kg/m3] and either Poisson's ratio ``nu``
    or the shear modulus ``G`` [Pa]. ``Material.named("aluminium")`` looks in the small table of :data:`MATERIALS`."""

    E: Float[Array, ""] = eqx.field(converter=as_float)
    rho: Float[Array, ""] = eqx.field(converter=as_float)
    nu: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    G: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)

    def __check_init__(self):
        if (self.nu is None) == (self.G is None):
            mend = "Give nu (Poisson's ratio) or G (shear modulus)."
            raise RobotError(
                "material", [f"nu = {self.nu}, G = {self.G}: expected exactly one of them. {mend}"]
            )

    @property
    def shear_modulus(self) -> Array:
        if self.G is not None:
            return self.G
        assert self.nu is not None  # one of the two is given
        return self.E / (2 * (1 + self.nu))

    @classmethod
    def named(cls, name: str) -> "Material":
        if name not in MATERIALS:
            names = ", ".join(MATERIALS)
            raise RobotError(
                "material", [f"{name!r}: expected one of {names}, or numbers E, rho and nu or G."]
            )
        return cls(**MATERIALS[name])


MATERIALS = {
    "aluminium": {"E": 70e9, "nu": 0.33, "rho": 2700.0},
    "steel": {"E": 210e9, "nu": 0.3, "rho": 7850.0},
    "stainless-steel": {"E": 193e9, "nu": 0.3, "rho": 8000.0},
    "titanium": {"E": 114e9, "nu": 0.34, "rho": 4430.0},
    "brass": {"E": 100e9, "nu": 0.34, "rho": 8500.0},
    "carbon-epoxy": {"E": 135e9, "G": 5e9, "rho": 1600.0},
    "glass-epoxy": {"E": 40e9, "G": 4e9, "rho": 1900.0},
    "abs": {"E": 2.2e9, "nu": 0.35, "rho": 1050.0},
    "pla": {"E": 3.5e9, "nu": 0.36, "rho": 1240.0},
}


class BeamConstants(eqx.Module):
    """Stiffness and inertia per length given directly, instead of section and material (papers often print these).

    A missing shear stiffness means that shear is not modelled; a missing rotary inertia is zero."""

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
    """Damping of a link: ``strain_rate`` = tau [s] in sigma = E (eps + tau eps_dot); ``mass`` [1/s], a force -mass *
    rhoA * velocity of the deformation; ``modal``, a ratio zeta for every mode of the link clamped at its base."""

    strain_rate: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    mass: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    modal: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)


class Body(eqx.Module):
    """Mass properties of a rigid link given directly: ``com`` in link axes from the link's base, ``inertia`` about
    the centre of mass as (xx, yy, zz, xy, xz, yz) [kg m2]."""

    mass: Float[Array, ""] = eqx.field(converter=as_float)
    com: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, 0.0, 0.0))
    inertia: Float[Array, "6"] = eqx.field(
        converter=as_float, default=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    )


class Piece(eqx.Module):
    """A part of a link that takes the given ``fraction`` of its length; ``section_end`` makes it taper linearly in
    its dimensions."""

    fraction: Float[Array, ""] = eqx.field(converter=as_float)
    section: AbstractSection | None = None
    section_end: AbstractSection | None = None
    material: Material | None = None
    constants: BeamConstants | None = None


class Link(eqx.Module):
    """One link, along its local +x from its base (s = 0) to its tip (s = 1).

    Give exactly one of ``section`` with ``material``, ``constants``, ``pieces``, or, for a rigid link, ``body``.
    ``section_end`` tapers the section; ``curvature`` is the unstressed (twist, curvature about y, curvature about z)
    [1/m].
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

    @property
    def elastic(self) -> bool:
        """Whether the link deforms."""
        return not self.rigid and self.body is None
