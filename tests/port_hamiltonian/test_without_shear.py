"""Constants without shear stiffness and rotary inertia are those of an Euler-Bernoulli beam:
statics, frequencies and rigid motion against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation.port_hamiltonian._link import element_table
from tests.port_hamiltonian.test_inertia import carried, rigid_inertia

# So stubby that shear as stiff as extension would add 0.3 % to the deflection under a tip force.
BARE = dict(EA=1000.0, EIy=2.0, EIz=1.0, GJ=100.0, rhoA=1.0)
EULER = np.array([1.875104068711961, 4.694091132974175, 7.854757438237613])


def cantilever(constants, planar=True, **link) -> fx.Robot:
    body = fx.Link("link", 1.0, constants=fx.BeamConstants(**constants), **link)
    joint = fx.Joint("j", "fixed", "ground", "link")
    return fx.Robot.serial([body], [joint], gravity=(0.0, 0.0, 0.0), planar=planar)


def frequencies(constants, n, count=2, planar=True, **options):
    model = fx.PortHamiltonian(elements=n, **options).bind(cantilever(constants, planar))
    return 2 * np.pi * np.asarray(fx.modes(model, n=count).frequencies)


def test_statics_have_no_shear(record_number):
    """Nodes of a link under end forces lie on the cubic: no error of the mesh, none of shear."""
    model, force = fx.PortHamiltonian(elements=3).bind(cantilever(BARE)), 1e-6
    drive = fx.Drive(loads=[fx.Load("link", fx.constant((0.0, force, 0.0, 0.0, 0.0, 0.0)))])
    y = fx.equilibrium(model, drive)
    x = np.arange(4) / 3
    bent = force * (x**2 / 2 - x**3 / 6)
    error = np.max(np.abs(np.asarray(y.mech.x[1, 0]) - bent)) / bent.max()
    record_number("no shear: nodes under a tip force, relative to the cubic", error, 1e-8)
    strain = jax.jit(lambda y: model.observe(0.0, y, drive, jnp.linspace(0.0, 1.0, 5)).strain)(y)
    np.testing.assert_array_equal(strain[0, :, 1:3], 0.0)
    np.testing.assert_allclose(strain[0, :, 5], force * np.linspace(1.0, 0.0, 5), atol=1e-12)


def test_frequencies_are_those_of_euler_and_bernoulli(record_number):
    errors = [frequencies(BARE, n) / EULER[:2] ** 2 - 1 for n in (4, 8)]
    record_number("no shear: second frequency, 8 elements, relative", abs(errors[1][1]), 1e-4)
    order = np.log2(errors[0][1] / errors[1][1])
    record_number("no shear: order of the second frequency", order, (3.7, 4.3), "in")


@pytest.mark.slow
def test_lumped_frequencies_converge(record_number):
    errors = [frequencies(BARE, n, 1, mass=0.0)[0] / EULER[0] ** 2 - 1 for n in (6, 12)]
    order = np.log2(errors[0] / errors[1])
    record_number("no shear, lumped: order of the first frequency", order, (1.8, 2.2), "in")


def test_frequencies_in_space(record_number):
    """Both planes. Torsion without inertia of its own vibrates faster than they do."""
    found = frequencies(BARE, 4, 4, planar=False)
    exact = np.sort(np.concatenate([EULER[:2] ** 2 * np.sqrt(k) for k in (1.0, 2.0)]))
    error = np.max(np.abs(found / exact - 1))
    record_number("no shear: four frequencies in space, 4 elements, relative", error, 2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("given", ["shear only", "rotary inertia only"])
def test_partly_given(given, record_number):
    """Timoshenko's beam without rotary inertia, and Rayleigh's without shear: first-order change of
    the first frequency by shear and rotary inertia, from the shapes of Euler and Bernoulli."""
    x = np.linspace(0.0, 1.0, 20001)
    b = EULER[0]
    sigma = (np.cos(b) + np.cosh(b)) / (np.sin(b) + np.sinh(b))
    slope = b * (np.sinh(b * x) + np.sin(b * x) - sigma * (np.cosh(b * x) - np.cos(b * x)))
    third = b**3 * (np.sinh(b * x) - np.sin(b * x) - sigma * (np.cosh(b * x) + np.cos(b * x)))
    w = np.cosh(b * x) - np.cos(b * x) - sigma * (np.sinh(b * x) - np.sin(b * x))
    mean = lambda y: float(np.trapezoid(y, x))
    small = 1e-4
    constants, change = {
        "shear only": ({"GAy": 1 / small}, -small * mean(third**2) / (b**4 * mean(w**2))),
        "rotary inertia only": ({"rhoIz": small}, -small * mean(slope**2) / mean(w**2)),
    }[given]
    n, without = (8, {}) if given == "rotary inertia only" else (32, {"GAy": 1e9})
    plain = frequencies(BARE | without, n, 1)[0]
    found = (frequencies(BARE | constants, n, 1)[0] / plain) ** 2 - 1
    record_number(f"{given}: change of the first eigenvalue", abs(found - change), 2e-5)


@pytest.mark.parametrize("curvature", [None, (0.5, -1.0, 2.0)])
def test_rigid_motion_is_exact(curvature, record_number):
    bare = fx.BeamConstants(**BARE, rhoIx=0.01)
    link, n = fx.Link("link", 0.7, constants=bare, curvature=curvature), 3
    there = carried(link, n)
    table = jax.jit(lambda link: element_table(link, n, blend=1.0))(link)
    own, weight, moment = (np.asarray(x) for x in table.nodal())
    off = np.asarray(table.coupling)
    found = sum(there[k].T @ own[k] @ there[k] for k in range(n + 1))
    for k in range(n):
        pair = there[k].T @ off[k] @ there[k + 1]
        found = found + pair + pair.T
    exact = np.asarray(rigid_inertia(link))
    error = np.max(np.abs(found - exact)) / np.max(np.abs(exact))
    record_number(f"no shear: inertia of an undeformed link, curvature {curvature}", error, 1e-13)
    whole = np.zeros((6 * (n + 1), 6 * (n + 1)))
    for k in range(n + 1):
        whole[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] = own[k]
    for k in range(n):
        whole[6 * k : 6 * k + 6, 6 * k + 6 : 6 * k + 12] = off[k]
        whole[6 * k + 6 : 6 * k + 12, 6 * k : 6 * k + 6] = off[k].T
    assert np.min(np.linalg.eigvalsh(whole)) > 0


def test_derivatives_of_an_element(record_number):
    """Of stiffness and inertia, where constants are left out: finite, and those of differences."""

    def total(numbers):
        link = fx.Link("link", 0.7, constants=fx.BeamConstants(**BARE | numbers))
        table = element_table(link, 2, blend=1.0)
        return sum(jnp.sum(jnp.sin(x)) for x in jax.tree_util.tree_leaves(table))

    run = jax.jit(jax.value_and_grad(total))
    numbers = {"EIz": jnp.asarray(1.0), "rhoA": jnp.asarray(1.0)}
    for name, slope in run(numbers)[1].items():
        ahead, behind = (run(numbers | {name: 1.0 + d})[0] for d in (1e-6, -1e-6))
        error = abs((ahead - behind) / 2e-6 / slope - 1)
        record_number(f"no shear: derivative of an element w.r.t. {name}, relative", error, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("planar", [True, False])
def test_energy_and_gradients_of_a_fall(planar, record_number):
    """A soft link falls and bends by a third of its length."""
    ts = jnp.linspace(0.0, 0.2, 3)

    def end(numbers):
        link = fx.Link("link", 1.0, constants=fx.BeamConstants(**BARE | numbers))
        robot = fx.Robot.serial(
            [link], [fx.Joint("j", "revolute", "ground", "link")], planar=planar
        )
        model = fx.PortHamiltonian(elements=3).bind(robot)
        traj = fx.simulate(model, None, ts, dt=5e-3, stations=2, throw=False)
        return traj.tip[-1, 1], (traj.energy, traj.deflection[-1, 0, -1, 1])

    run = jax.jit(jax.value_and_grad(end, has_aux=True))
    numbers = {"EIz": jnp.asarray(1.0), "rhoA": jnp.asarray(1.0)}
    (_, (energy, bent)), slopes = run(numbers)
    assert abs(bent) > 0.1
    total = energy.kinetic + energy.elastic + energy.gravity
    drift = jnp.max(jnp.abs(total - total[0])) / jnp.max(energy.kinetic)
    where = "in the plane" if planar else "in space"
    record_number(f"no shear: energy of a fall {where}, relative", drift, 1e-11)
    for name, slope in slopes.items():
        ahead, behind = (run(numbers | {name: 1.0 + d})[0][0] for d in (1e-5, -1e-5))
        error = abs((ahead - behind) / 2e-5 / slope - 1)
        record_number(f"no shear: gradient w.r.t. {name} {where}, relative", error, 1e-6)


@pytest.mark.slow
def test_a_swing_is_that_of_finite_elements(record_number):
    """Against FiniteElement, whose beam is that of Euler and Bernoulli: with shear as stiff as
    extension and the rotary inertia of an element, the deflection was 9 % off."""
    body = fx.Link("link", 1.0, constants=fx.BeamConstants(**BARE | {"EIz": 50.0, "EA": 1e4}))
    joint = fx.Joint("j", "revolute", "ground", "link")
    robot = fx.Robot.serial([body], [joint], gravity=(0.0, 0.0, 0.0), planar=True)
    drive = fx.Drive({"j": fx.Motion(fx.quintic(0.0, 0.02, 0.2))})
    ts = jnp.linspace(0.0, 0.3, 7)
    tips = [
        fx.simulate(f.bind(robot), drive, ts, dt=1e-3, stations=2).deflection[:, 0, -1, 1]
        for f in (fx.FiniteElement(elements=4), fx.PortHamiltonian(elements=4))
    ]
    error = float(jnp.max(jnp.abs(tips[0] - tips[1])) / jnp.max(jnp.abs(tips[0])))
    record_number("no shear: deflection in a swing against FiniteElement, relative", error, 2e-3)
