"""Cross-sections of links, with their area, second moments and torsion constant.

The height is along the link's local y and the width along local z. Hence
``Iz = width * height**3 / 12`` is the second moment for bending in y.
"""

import abc
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax._types import as_float

if TYPE_CHECKING:
    # An annotation of equinox's own would make it an argument of every subclass's constructor.
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar


class SectionProperties(eqx.Module):
    """Section constants of a beam; ``ky`` and ``kz`` are the shear correction factors of GA."""

    A: Array
    Iy: Array
    Iz: Array
    J: Array
    ky: Array
    kz: Array


class AbstractSection(eqx.Module):
    """A cross-section. ``shape`` is its name in a robot file."""

    shape: AbstractClassVar[str]

    @abc.abstractmethod
    def properties(self) -> SectionProperties:
        """Area, second moments, torsion constant and shear factors."""

    @abc.abstractmethod
    def half_sizes(self) -> tuple[Array, Array] | None:
        """Largest distances from the axis along y and z; None if the section has no dimensions."""


class Rectangle(AbstractSection):
    """Solid rectangle: ``width`` along local z and ``height`` along local y [m].

    >>> import flexjax as fx
    >>> float(fx.Rectangle(width=0.02, height=0.005).properties().A)  # doctest: +ELLIPSIS
    0.0001...
    """

    shape = "rectangle"
    width: Float[Array, ""] = eqx.field(converter=as_float)
    height: Float[Array, ""] = eqx.field(converter=as_float)

    def properties(self) -> SectionProperties:
        w, h = self.width, self.height
        long, short = jnp.maximum(w, h), jnp.minimum(w, h)
        ratio = short / long
        # Roark's formula for the Saint-Venant torsion constant, within 0.5 % for any ratio.
        J = long * short**3 * (1 / 3 - 0.21 * ratio * (1 - ratio**4 / 12))
        k = jnp.full_like(w, 5 / 6)
        return SectionProperties(A=w * h, Iy=h * w**3 / 12, Iz=w * h**3 / 12, J=J, ky=k, kz=k)

    def half_sizes(self) -> tuple[Array, Array]:
        return 0.5 * self.height, 0.5 * self.width


class Circle(AbstractSection):
    """Solid circle of the given ``diameter`` [m].

    >>> import flexjax as fx
    >>> round(float(fx.Circle(0.02).properties().A), 6)
    0.000314
    """

    shape = "circle"
    diameter: Float[Array, ""] = eqx.field(converter=as_float)

    def properties(self) -> SectionProperties:
        d = self.diameter
        inertia = jnp.pi * d**4 / 64
        k = jnp.full_like(d, 0.9)
        return SectionProperties(
            A=jnp.pi * d**2 / 4, Iy=inertia, Iz=inertia, J=2 * inertia, ky=k, kz=k
        )

    def half_sizes(self) -> tuple[Array, Array]:
        return 0.5 * self.diameter, 0.5 * self.diameter


class Tube(AbstractSection):
    """Circular tube: outer ``diameter`` and ``wall`` thickness [m].

    >>> import flexjax as fx
    >>> round(float(fx.Tube(0.03, wall=2e-3).properties().A), 6)
    0.000176
    """

    shape = "tube"
    diameter: Float[Array, ""] = eqx.field(converter=as_float)
    wall: Float[Array, ""] = eqx.field(converter=as_float)

    def properties(self) -> SectionProperties:
        outer, inner = self.diameter, self.diameter - 2 * self.wall
        area = jnp.pi * (outer**2 - inner**2) / 4
        inertia = jnp.pi * (outer**4 - inner**4) / 64
        k = jnp.full_like(outer, 0.5)
        return SectionProperties(A=area, Iy=inertia, Iz=inertia, J=2 * inertia, ky=k, kz=k)

    def half_sizes(self) -> tuple[Array, Array]:
        return 0.5 * self.diameter, 0.5 * self.diameter


class IBeam(AbstractSection):
    """I section: overall ``height`` (y), ``width`` (z), thickness of ``flange`` and ``web`` [m].

    >>> import flexjax as fx
    >>> section = fx.IBeam(height=0.04, width=0.03, flange=3e-3, web=2e-3)
    >>> round(float(section.properties().A), 6)
    0.000248
    """

    shape = "i"
    height: Float[Array, ""] = eqx.field(converter=as_float)
    width: Float[Array, ""] = eqx.field(converter=as_float)
    flange: Float[Array, ""] = eqx.field(converter=as_float)
    web: Float[Array, ""] = eqx.field(converter=as_float)

    def properties(self) -> SectionProperties:
        h, w, tf, tw = self.height, self.width, self.flange, self.web
        inner = h - 2 * tf
        A = 2 * w * tf + inner * tw
        Iz = (w * h**3 - (w - tw) * inner**3) / 12
        Iy = (2 * tf * w**3 + inner * tw**3) / 12
        J = (2 * w * tf**3 + inner * tw**3) / 3
        return SectionProperties(
            A=A, Iy=Iy, Iz=Iz, J=J, ky=inner * tw / A, kz=(5 / 6) * 2 * w * tf / A
        )

    def half_sizes(self) -> tuple[Array, Array]:
        return 0.5 * self.height, 0.5 * self.width


class GivenSection(AbstractSection):
    """Section given by its constants.

    Arguments:
        A: area [m2].
        Iy, Iz: second moments for bending in z and in y [m4].
        J: torsion constant [m4].
        ky, kz: shear correction factors along y and z.

    >>> import flexjax as fx
    >>> section = fx.GivenSection(A=1e-4, Iy=8e-10, Iz=8e-10, J=1.4e-9)
    >>> float(section.properties().Iz)
    8e-10
    """

    shape = "given"
    A: Float[Array, ""] = eqx.field(converter=as_float)
    Iy: Float[Array, ""] = eqx.field(converter=as_float)
    Iz: Float[Array, ""] = eqx.field(converter=as_float)
    J: Float[Array, ""] = eqx.field(converter=as_float)
    ky: Float[Array, ""] = eqx.field(converter=as_float, default=5 / 6)
    kz: Float[Array, ""] = eqx.field(converter=as_float, default=5 / 6)

    def properties(self) -> SectionProperties:
        return SectionProperties(A=self.A, Iy=self.Iy, Iz=self.Iz, J=self.J, ky=self.ky, kz=self.kz)

    def half_sizes(self) -> None:
        return None
