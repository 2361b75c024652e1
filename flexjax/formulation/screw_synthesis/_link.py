"""Flexible links in modal coordinates: r = xi e_x + Phi(xi) eta, rotation theta = Psi(xi) eta.

Mass matrices and velocity products are polynomials in eta. Their coefficients (inertia-shape
integrals) are computed once. With mu dxi the mass and J the rotary inertia of sections,
    C1 = int Phi,  Q = int r r^T,  V_j = int r Phi_j^T = A1_j + A2_ij eta_i,
    Mee = int Phi^T Phi + Psi^T J Psi.
Paper: link model eqs. (24)-(39) and displacement equation (81)-(92) with the corrections in
PAPER.md.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from flexjax._types import Scalar, ScalarLike
from flexjax.mechanism import Curve
from flexjax.mechanism.chain import AbstractLinks, Bent, Eta, Mass, MotionPair, Tip, Twists
from flexjax.numerics.beam import ShapeFunctions
from flexjax.numerics.linalg import mm, mtv, mv
from flexjax.numerics.screw import se3

LEVI_CIVITA = np.zeros((3, 3, 3))
LEVI_CIVITA[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = 1.0
LEVI_CIVITA[[0, 1, 2], [2, 0, 1], [1, 2, 0]] = -1.0


class Fields(eqx.Module):
    """Displacement Phi, section rotation Psi and their derivatives at one station: 3 x m each."""

    Phi: Float[Array, "3 m"]
    Psi: Float[Array, "3 m"]
    Phi_x: Float[Array, "3 m"]
    Psi_x: Float[Array, "3 m"]


def fields(basis: ShapeFunctions, length: Scalar, s: ScalarLike) -> Fields:
    """theta = (torsion, -w', v'): the section stays normal to the centreline."""
    f, d1, d2 = basis(s)
    d1, d2 = d1 / length, d2 / length**2
    where = np.array(basis.direction, int)

    def rows(*selected):
        none = jnp.zeros_like(f)
        return jnp.stack([jnp.where(where == d, sign * x, none) for d, sign, x in selected])

    Phi = rows((0, 1, f), (1, 1, f), (2, 1, f))
    Psi = rows((3, 1, f), (2, -1, d1), (1, 1, d1))
    Phi_x = rows((0, 1, d1), (1, 1, d1), (2, 1, d1))
    Psi_x = rows((3, 1, d1), (2, -1, d2), (1, 1, d2))
    return Fields(Phi, Psi, Phi_x, Psi_x)


class Integrals(eqx.Module):
    """Inertia-shape integrals and stiffness, stacked over stages; zero for rigid links."""

    m0: Float[Array, " B"]
    c0: Float[Array, "B 3"]
    C1: Float[Array, "B 3 m"]
    Q0: Float[Array, "B 3 3"]
    A1: Float[Array, "B 3 3 m"]  # int r0_b Phi_cj
    A2: Float[Array, "B 3 3 m m"]  # int Phi_bi Phi_cj
    J: Float[Array, "B 3 3"]
    JPsi: Float[Array, "B 3 m"]
    Mee: Float[Array, "B m m"]  # unit where padded
    K: Float[Array, "B m m"]
    D: Float[Array, "B m m"]


class Stretch(eqx.Module):
    """Data of geometric stiffening at the quadrature stations (B, k).

    Axial stiffness and damper times weight, and slopes u', v', w' per coordinate.
    """

    EA: Float[Array, "B k"]
    damper: Float[Array, "B k"]
    u: Float[Array, "B k m"]
    v: Float[Array, "B k m"]
    w: Float[Array, "B k m"]

    def strain(self, eta: Eta):
        """Axial strain u' + (v'^2 + w'^2)/2, and its gradient (B, k, m)."""
        u, v, w = (jnp.einsum("bkm,bm->bk", x, eta) for x in (self.u, self.v, self.w))
        return u + 0.5 * (v**2 + w**2), self.u + v[:, :, None] * self.v + w[:, :, None] * self.w


class ModalLinks(AbstractLinks):
    """Links in modal coordinates with frames at the station ``origin``.

    ``stretch`` is None for the paper's linear strain.
    """

    integrals: Integrals
    length: Float[Array, " B"]
    end: Fields  # at the tips, stacked
    basis: ShapeFunctions  # of every link, stacked
    flexible: tuple[bool, ...] = eqx.field(static=True)
    stretch: Stretch | None = None
    origin: float = eqx.field(static=True, default=0.0)

    def _position(self, eta: Eta):
        """Mass moment c, V (B,3,3,m) and Q (B,3,3) at a shape."""
        i = self.integrals
        quadratic = jnp.einsum("bxyij,bi->bxyj", i.A2, eta)
        once, twice = (
            jnp.einsum("bxyj,bj->bxy", i.A1, eta),
            jnp.einsum("bxyj,bj->bxy", quadratic, eta),
        )
        return (
            i.c0 + mv(i.C1, eta),
            i.A1 + quadratic,
            i.Q0 + once + jnp.swapaxes(once, 1, 2) + twice,
        )

    def _moment(self, Q: Float[Array, "B 3 3"]):
        """Moment of inertia from the second moments Q, rotary inertia included."""
        trace = Q[:, 0, 0] + Q[:, 1, 1] + Q[:, 2, 2]
        return trace[:, None, None] * jnp.eye(3, dtype=Q.dtype)[None] - Q + self.integrals.J

    def mass(self, eta: Eta) -> Mass:
        i = self.integrals
        c, V, Q = self._position(eta)
        lever = jax.vmap(se3.skew)(c)
        eye = i.m0[:, None, None] * jnp.eye(3, dtype=eta.dtype)[None]
        top = jnp.concatenate([eye, -lever], axis=2)
        bottom = jnp.concatenate([lever, self._moment(Q)], axis=2)
        angular = jnp.einsum("axy,bxyj->baj", jnp.asarray(LEVI_CIVITA, eta.dtype), V) + i.JPsi
        zz = jnp.concatenate([top, bottom], axis=1)
        return Mass(zz, jnp.concatenate([i.C1, angular], axis=1), i.Mee)

    def apply(self, mass: Mass, x: Eta) -> Eta:
        return mv(mass.ee, x)

    def kinetic_gradient(self, eta: Eta, motions: MotionPair) -> Eta:
        # Written out, because gradients through a run differentiate it twice more. Sums over k
        # combine one motion with the other.
        i, eps = self.integrals, jnp.asarray(LEVI_CIVITA, eta.dtype)
        _, V, _ = self._position(eta)
        z, rate = motions
        u, w = z[:, :, :3], z[:, :, 3:]
        mixed = jnp.sum(jnp.cross(u, w[::-1]), axis=0)
        pair = jnp.sum(w[:, :, :, None] * w[::-1, :, None, :], axis=0)
        trace = pair[:, 0, 0] + pair[:, 1, 1] + pair[:, 2, 2]
        spread = trace[:, None, None] * jnp.eye(3, dtype=eta.dtype)[None] - pair
        angular = jnp.einsum("kbxy,kbj->bxyj", jnp.einsum("axy,kba->kbxy", eps, w), rate[::-1])
        return 0.5 * (
            mtv(i.C1, mixed)
            + jnp.einsum("bxy,bxyj->bj", spread, V)
            + jnp.einsum("bxyij,bxyj->bi", i.A2, angular)
        )

    def bias(self, eta: Eta, rate: Eta, z: Twists) -> tuple[Twists, Eta]:
        i = self.integrals
        c, V, Q = self._position(eta)
        u, w = z[:, :3], z[:, 3:]
        cross = jnp.cross
        a0, c_rate = cross(w, u), mv(i.C1, rate)
        R = jnp.einsum("bxyj,bj->bxy", V, rate)  # int r r_dot^T
        trace = R[:, 0, 0] + R[:, 1, 1] + R[:, 2, 2]
        force = i.m0[:, None] * a0 + cross(w, cross(w, c)) + 2 * cross(w, c_rate)
        # int r x (w x (w x r)) = w x J w, and 2 int r x (w x r_dot) = 2 (w tr R - R^T w)
        moment = (
            cross(c, a0)
            + cross(w, mv(self._moment(Q), w) + mv(i.JPsi, rate))
            + 2 * (w * trace[:, None] - mtv(R, w))
        )
        square = jnp.sum(w * w, axis=1)
        spin = jnp.einsum("bxyj,bx,by->bj", V, w, w) - square[:, None] * jnp.einsum("bxxj->bj", V)
        eps = jnp.asarray(LEVI_CIVITA, eta.dtype)
        coriolis = 2 * jnp.einsum("axy,ba,bxyij,bi->bj", eps, w, i.A2, rate)
        return jnp.concatenate([force, moment], axis=1), mtv(i.C1, a0) + spin + coriolis

    # --- elasticity
    def elastic_energy(self, eta: Eta) -> Float[Array, " B"]:
        energy = 0.5 * jnp.einsum("bi,bij,bj->b", eta, self.integrals.K, eta)
        if self.stretch is not None:
            strain, _ = self.stretch.strain(eta)
            energy = energy + 0.5 * jnp.sum(self.stretch.EA * strain**2, axis=1)
        return energy

    def elastic_force(self, eta: Eta) -> Eta:
        force = mv(self.integrals.K, eta)
        if self.stretch is not None:
            strain, slope = self.stretch.strain(eta)
            force = force + jnp.einsum("bk,bkm->bm", self.stretch.EA * strain, slope)
        return force

    def damping_force(self, eta: Eta, rate: Eta) -> Eta:
        force = mv(self.integrals.D, rate)
        if self.stretch is not None:
            # The rate of the whole strain: the material does not resist the shortening in u'.
            _, slope = self.stretch.strain(eta)
            stress = self.stretch.damper * jnp.einsum("bkm,bm->bk", slope, rate)
            force = force + jnp.einsum("bk,bkm->bm", stress, slope)
        return force

    def _damper(self, eta: Eta):
        """Damping matrix (B, m, m)."""
        if self.stretch is None:
            return self.integrals.D
        _, slope = self.stretch.strain(eta)
        return self.integrals.D + jnp.einsum("bk,bki,bkj->bij", self.stretch.damper, slope, slope)

    def stiffness(self, eta: Eta):
        """Tangent stiffness (B, m, m), without compression, which could make it indefinite."""
        if self.stretch is None:
            return self.integrals.K
        g = self.stretch
        strain, slope = g.strain(eta)
        tension = g.EA * jnp.maximum(strain, 0.0)
        across = sum(jnp.einsum("bk,bki,bkj->bij", tension, x, x) for x in (g.v, g.w))
        return self.integrals.K + jnp.einsum("bk,bki,bkj->bij", g.EA, slope, slope) + across

    # --- solves with Mee: positive definite, small and dense
    def factor(self, eta: Eta, mass: Mass, cv: ScalarLike | None, cq: ScalarLike | None):
        matrix = mass.ee
        if cq is not None and cv is not None:
            matrix = matrix + cv * self._damper(eta) + cq * self.stiffness(eta)
        # The inverse: a step uses it several times, and products fuse, unlike triangular solves.
        eye = jnp.eye(matrix.shape[1], dtype=matrix.dtype)
        inverse = jax.vmap(lambda L: jax.scipy.linalg.cho_solve((L, True), eye))
        return inverse(jnp.linalg.cholesky(matrix))

    def solve(self, factors: PyTree, rhs: Float[Array, "B m k"]) -> Float[Array, "B m k"]:
        return mm(factors, rhs)

    def shaped(self, eta: Eta, bent: Bent, curve: Curve) -> Float[Array, " m"]:
        own = super().shaped(eta, bent, curve)
        axial = np.flatnonzero(np.array(self.basis.direction) == 0)
        if self.stretch is None or not len(axial):
            return own
        # A link that bends without stretching shortens.
        s, w = bent.quadrature()
        basis = jax.tree_util.tree_map(lambda x: x[bent.stage], self.basis)
        slopes = jax.vmap(lambda s: fields(basis, bent.length, s).Phi_x)(jnp.asarray(s, own.dtype))
        back = -0.5 * jnp.sum((slopes[:, 1:] @ own) ** 2, axis=1)
        u = slopes[:, 0, axial]
        weighted = jnp.asarray(w, own.dtype)[:, None] * u
        return own.at[axial].set(jnp.linalg.solve(weighted.T @ u, weighted.T @ back))

    # --- sections
    def _turned(self, f: Fields, eta: Eta, s: Float[Array, " B"]) -> Tip:
        """Sections with fields ``f`` (stacked); identity for rigid links."""

        def one(f, eta, ahead, on):
            theta = on * (f.Psi @ eta)
            E = se3.rotation_exp(theta)
            S = jnp.concatenate([E.T @ f.Phi, se3.so3_dexp(theta) @ f.Psi])
            return Tip(se3.Pose(E, on * (f.Phi @ eta).at[0].add(ahead)), on * S)

        ahead = self.length * (s - self.origin)
        return jax.vmap(one)(f, eta, ahead, jnp.asarray(self.flexible, eta.dtype))

    def section(self, eta: Eta, s: Float[Array, " B"]) -> Tip:
        return self._turned(jax.vmap(fields)(self.basis, self.length, s), eta, s)

    def tip(self, eta: Eta) -> Tip:
        return self._turned(self.end, eta, jnp.ones_like(self.length))

    def strain(
        self, eta: Eta, s: Float[Array, " B"]
    ) -> tuple[Float[Array, "B 3"], Float[Array, "B 6"]]:
        def one(eta, basis, length, s):
            f = fields(basis, length, s)
            slope = f.Phi_x @ eta
            axial = slope[0] if self.stretch is None else slope[0] + 0.5 * jnp.sum(slope[1:] ** 2)
            zero = jnp.zeros(2, eta.dtype)
            return f.Phi @ eta, jnp.concatenate([axial[None], zero, f.Psi_x @ eta])

        return jax.vmap(one)(eta, self.basis, self.length, s)
