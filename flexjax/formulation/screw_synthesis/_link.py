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
from flexjax.mechanism.chain import AbstractLinks, Eta, Mass, MotionPair, Tip, Twists
from flexjax.numerics.beam import ShapeFunctions
from flexjax.numerics.linalg import mm, mtv, mv, transpose
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


class Points(eqx.Module):
    """Mass points of links that shorten as they bend, at quadrature stations and payloads (B, k).

    A point moves back along the link by eta^T g eta / 2.
    """

    mass: Float[Array, "B k"]
    r0: Float[Array, "B k 3"]
    Phi: Float[Array, "B k 3 m"]
    g: Float[Array, "B k m m"]  # int v' v'^T + w' w'^T from the frame to the point
    end: Float[Array, "B m m"]  # the same to the tip
    Mxx: Float[Array, "B m m"]  # the part of Mee by the linear motion along the link

    def at(self, eta: Eta) -> tuple[Float[Array, "B k 3"], Float[Array, "B k 3 m"]]:
        """Positions, and their derivatives with respect to the shape."""
        slope = self.along(eta)
        linear = mv(self.Phi, eta[:, None])
        back = 0.5 * jnp.sum(slope * eta[:, None, :], axis=2)
        ahead = jnp.asarray(np.array([1.0, 0.0, 0.0]), eta.dtype)
        r = self.r0 + linear - back[:, :, None] * ahead[None, None]
        return r, self.Phi - ahead[None, None, :, None] * slope[:, :, None, :]

    def along(self, x: Eta) -> Float[Array, "B k m"]:
        """g x."""
        return mv(self.g, x[:, None])


def shortening(
    basis: ShapeFunctions, length: Scalar, s: ScalarLike, origin: float
) -> Float[Array, "m m"]:
    """int v' v'^T + w' w'^T from the station ``origin`` to ``s``."""
    nodes, weights = np.polynomial.legendre.leggauss(min(basis.series.shape[2], 24))
    span = s - origin
    f1 = jax.vmap(lambda x: basis(origin + span * x)[1])(
        jnp.asarray(0.5 * (nodes + 1), length.dtype)
    )
    direction = np.array(basis.direction, int)
    bends = np.isin(direction, (1, 2)) & (direction[:, None] == direction[None, :])
    square = jnp.einsum("k,ki,kj->ij", jnp.asarray(0.5 * weights, length.dtype), f1, f1)
    return jnp.where(bends, span / length * square, 0.0)


class ModalLinks(AbstractLinks):
    """Links in modal coordinates with frames at the station ``origin``.

    ``points`` is None for the paper's linear motion of sections.
    """

    integrals: Integrals
    length: Float[Array, " B"]
    end: Fields  # at the tips, stacked
    basis: ShapeFunctions  # of every link, stacked
    flexible: tuple[bool, ...] = eqx.field(static=True)
    points: Points | None = None
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
        C1, ee = i.C1, i.Mee
        if self.points is None:
            c, V, Q = self._position(eta)
            angular = jnp.einsum("axy,bxyj->baj", jnp.asarray(LEVI_CIVITA, eta.dtype), V)
        else:
            # Products and sums, which fuse: a dot is a kernel of its own.
            p = self.points
            r, D = p.at(eta)
            heavy, along = p.mass[:, :, None] * r, D[:, :, 0]
            c, Q = jnp.sum(heavy, axis=1), mm(transpose(heavy), r)
            C1 = jnp.sum(p.mass[:, :, None, None] * D, axis=1)
            lever = jnp.broadcast_to(heavy[:, :, :, None], D.shape)
            angular = jnp.sum(jnp.cross(lever, D, axis=2), axis=1)
            ee = ee - p.Mxx + mm(transpose(p.mass[:, :, None] * along), along)
        lever = jax.vmap(se3.skew)(c)
        eye = i.m0[:, None, None] * jnp.eye(3, dtype=eta.dtype)[None]
        top = jnp.concatenate([eye, -lever], axis=2)
        bottom = jnp.concatenate([lever, self._moment(Q)], axis=2)
        zz = jnp.concatenate([top, bottom], axis=1)
        return Mass(zz, jnp.concatenate([C1, angular + i.JPsi], axis=1), ee)

    def apply(self, mass: Mass, x: Eta) -> Eta:
        return mv(mass.ee, x)

    def kinetic_gradient(self, eta: Eta, motions: MotionPair) -> Eta:
        # Written out, because gradients through a run differentiate it twice more. Sums over k
        # combine one motion with the other.
        if self.points is not None:
            return self._gradient_of_points(eta, motions)
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

    def _gradient_of_points(self, eta: Eta, motions: MotionPair) -> Eta:
        p = self.points
        assert p is not None  # asked only of links with points
        r, D = p.at(eta)
        u, w = motions.z[:, :, None, :3], motions.z[:, :, None, 3:]
        w = jnp.broadcast_to(w, (2, *r.shape))
        rate = motions.rate[:, :, None]
        v = u + jnp.cross(w, jnp.broadcast_to(r, w.shape)) + mv(D[None], rate)
        # Sums over i combine one motion with the other.
        momentum = p.mass[None, :, :, None] * v[::-1]
        across = jnp.sum(jnp.cross(momentum, w), axis=0)
        back = jnp.sum(momentum[..., :1] * mv(p.g[None], rate), axis=(0, 2))
        return 0.5 * (jnp.sum(across[..., None] * D, axis=(1, 2)) - back)

    def bias(self, eta: Eta, rate: Eta, z: Twists) -> tuple[Twists, Eta]:
        if self.points is not None:
            return self._bias_of_points(eta, rate, z)
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

    def _bias_of_points(self, eta: Eta, rate: Eta, z: Twists) -> tuple[Twists, Eta]:
        p, i = self.points, self.integrals
        assert p is not None  # asked only of links with points
        r, D = p.at(eta)
        u, w = z[:, None, :3], z[:, None, 3:]
        r_rate = mv(D, rate[:, None])
        jolt = -jnp.sum(p.along(rate) * rate[:, None, :], axis=2)
        w = jnp.broadcast_to(w, r.shape)
        acc = jnp.cross(w, u + jnp.cross(w, r) + 2 * r_rate)
        force = p.mass[:, :, None] * acc.at[:, :, 0].add(jolt)
        spin = z[:, 3:]
        rotary = jnp.cross(spin, mv(i.J, spin) + mv(i.JPsi, rate))
        moment = jnp.sum(jnp.cross(r, force), axis=1) + rotary
        shape = jnp.sum(force[..., None] * D, axis=(1, 2))
        return jnp.concatenate([jnp.sum(force, axis=1), moment], axis=1), shape

    # --- elasticity
    def elastic_energy(self, eta: Eta) -> Float[Array, " B"]:
        return 0.5 * jnp.einsum("bi,bij,bj->b", eta, self.integrals.K, eta)

    def elastic_force(self, eta: Eta) -> Eta:
        return mv(self.integrals.K, eta)

    def damping_force(self, eta: Eta, rate: Eta) -> Eta:
        return mv(self.integrals.D, rate)

    # --- solves with Mee: positive definite, small and dense
    def factor(self, eta: Eta, mass: Mass, cv: ScalarLike | None, cq: ScalarLike | None):
        matrix = mass.ee
        if cq is not None and cv is not None:
            matrix = matrix + cv * self.integrals.D + cq * self.integrals.K
        # The inverse: a step uses it several times, and products fuse, unlike triangular solves.
        eye = jnp.eye(matrix.shape[1], dtype=matrix.dtype)
        inverse = jax.vmap(lambda L: jax.scipy.linalg.cho_solve((L, True), eye))
        return inverse(jnp.linalg.cholesky(matrix))

    def solve(self, factors: PyTree, rhs: Float[Array, "B m k"]) -> Float[Array, "B m k"]:
        return mm(factors, rhs)

    # --- sections
    def _back(self, eta: Eta, s: Float[Array, " B"]) -> Float[Array, "B m m"] | None:
        """Shortening up to the stations ``s``, one on every link."""
        if self.points is None:
            return None
        on = jnp.asarray(self.flexible, eta.dtype)[:, None, None]
        return on * jax.vmap(lambda f, L, s: shortening(f, L, s, self.origin))(
            self.basis, self.length, s
        )

    def _turned(
        self, f: Fields, eta: Eta, s: Float[Array, " B"], g: Float[Array, "B m m"] | None
    ) -> Tip:
        """Sections with fields ``f`` and shortening ``g``; identity for rigid links."""

        def one(f, eta, ahead, on, g):
            theta = on * (f.Psi @ eta)
            E = se3.rotation_exp(theta)
            Phi, r = f.Phi, on * (f.Phi @ eta).at[0].add(ahead)
            if g is not None:
                back = g @ eta
                Phi, r = Phi.at[0].add(-back), r.at[0].add(-0.5 * jnp.dot(back, eta))
            S = jnp.concatenate([E.T @ Phi, se3.so3_dexp(theta) @ f.Psi])
            return Tip(se3.Pose(E, r), on * S)

        ahead = self.length * (s - self.origin)
        return jax.vmap(one)(f, eta, ahead, jnp.asarray(self.flexible, eta.dtype), g)

    def section(self, eta: Eta, s: Float[Array, " B"]) -> Tip:
        f = jax.vmap(fields)(self.basis, self.length, s)
        return self._turned(f, eta, s, self._back(eta, s))

    def tip(self, eta: Eta) -> Tip:
        g = None if self.points is None else self.points.end
        return self._turned(self.end, eta, jnp.ones_like(self.length), g)

    def strain(
        self, eta: Eta, s: Float[Array, " B"]
    ) -> tuple[Float[Array, "B 3"], Float[Array, "B 6"]]:
        def one(eta, basis, length, s):
            f = fields(basis, length, s)
            axial, zero = (f.Phi_x @ eta)[:1], jnp.zeros(2, eta.dtype)
            return f.Phi @ eta, jnp.concatenate([axial, zero, f.Psi_x @ eta])

        deflection, strains = jax.vmap(one)(eta, self.basis, self.length, s)
        g = self._back(eta, s)
        if g is None:
            return deflection, strains
        back = 0.5 * jnp.sum(eta * mv(g, eta), axis=1)
        return deflection.at[:, 0].add(-back), strains
