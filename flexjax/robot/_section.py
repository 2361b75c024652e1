"""Cross-sections of links: the shape as the user gave it, turned into area, second moments and torsion constant.

Height lies along the link's local y, width along local z, so that ``Iz = width * height**3 / 12`` goes with bending
in y.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax._types import as_float


class SectionProperties(eqx.Module):
    """What a beam needs of a section; ``ky`` and ``kz`` are the shear correction factors of GA."""

    A: Array
    Iy: Array
    Iz: Array
    J: Array
    ky: Array
    kz: Array


class AbstractSection(eqx.Module):
    """A cross-section. ``shape`` is its name in a robot file."""

    shape: eqx.AbstractClassVar[str]

    @abc.abstractmethod
    def properties(self) -> SectionProperties:
        """Area, second moments, torsion constant and shear factors."""


class Rectangle(AbstractSection):
    """Solid rectangle, ``height`` along y and ``width`` along z, in metres.

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
        # Roark's closed form of the Saint-Venant torsion constant, within 0.5 % of the series for any ratio.
        J = long * short**3 * (1 / 3 - 0.21 * ratio * (1 - ratio**4 / 12))
        k = jnp.full_like(w, 5 / 6)
        return SectionProperties(A=w * h, Iy=h * w**3 / 12, Iz=w * h**3 / 12, J=J, ky=k, kz=k)


class Circle(AbstractSection):
    """Solid round bar of the given ``diameter``."""

    shape = "circle"
    diameter: Float[Array, ""] = eqx.field(converter=as_float)

    def properties(self) -> SectionProperties:
        d = self.diameter
        bend = jnp.pi * d**4 / 64
        k = jnp.full_like(d, 0.9)
        return SectionProperties(A=jnp.pi * d**2 / 4, Iy=bend, Iz=bend, J=2 * bend, ky=k, kz=k)


class Tube(AbstractSection):
    """Round tube: outer ``diameter`` and ``wall`` thickness."""

    shape = "tube"
    diameter: Float[Array, ""] = eqx.field(converter=as_float)
    wall: Float[Array, ""] = eqx.field(converter=as_float)

    def properties(self) -> SectionProperties:
        outer, inner = self.diameter, self.diameter - 2 * self.wall
        bend = jnp.pi * (outer**4 - inner**4) / 64
        k = jnp.full_like(outer, 0.5)
        return SectionProperties(
            A=jnp.pi * (outer**2 - inner**2) / 4, Iy=bend, Iz=bend, J=2 * bend, ky=k, kz=k
        )


class IBeam(AbstractSection):
    """I section: overall ``height`` (y) and ``width`` (z), ``flange`` and ``web`` thickness."""

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


class GivenSection(AbstractSection):
    """Area and moments given as numbers; the shear factors default to 5/6."""

    shape = "given"
    A: Float[Array, ""] = eqx.field(converter=as_float)
    Iy: Float[Array, ""] = eqx.field(converter=as_float)
    Iz: Float[Array, ""] = eqx.field(converter=as_float)
    J: Float[Array, ""] = eqx.field(converter=as_float)
    ky: Float[Array, ""] = eqx.field(converter=as_float, default=5 / 6)
    kz: Float[Array, ""] = eqx.field(converter=as_float, default=5 / 6)

    def properties(self) -> SectionProperties:
        return SectionProperties(A=self.A, Iy=self.Iy, Iz=self.Iz, J=self.J, ky=self.ky, kz=self.kz)


SECTIONS = {cls.shape: cls for cls in (Rectangle, Circle, Tube, IBeam, GivenSection)}
