"""A hundred seconds: nothing drifts.

Joint coordinates are minimal, so what could drift are the quaternions of balls, the poses built
from them, and the energy; the stacked system stays regular on the way.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation import Start
from flexjax.formulation.screw_synthesis._paper import check_well_posed
from tests.screw_synthesis.arms import arm
from tests.screw_synthesis.test_motion import energy, run

# Without damping the energy of this tumbling arm spreads over all modes. The first link turning
# about its own axis against its torsion, of little inertia and 1.3e3 rad/s, comes to 140 rad/s; a
# step must resolve that, or Newton fails after seconds (2 ms) or half a minute (1 ms).
DT = 5e-4


@pytest.mark.slow
def test_nothing_drifts_in_a_hundred_seconds(record_number):
    model = fx.ScrewSynthesis(modes=(1, 1, 1, 1)).bind(
        arm(("spherical", "revolute"), axes=((0, 0, 1.0), (0, 1.0, 0)))
    )
    drive = fx.Drive()
    term = model.term(drive)
    y = model.initial_state(drive, jnp.zeros(()), Start(joints={"joint1": jnp.asarray(0.6)}))
    before, stations = float(energy(term, y)), jnp.array([0.0, 1.0])
    observe = jax.jit(lambda y: model.observe(0.0, y, drive, stations).frames)
    (ball,) = model.layout.coordinates.balls
    gap, norm, drift, turned, condition = 0.0, 0.0, 0.0, 0.0, []
    for k in range(20):
        start = np.asarray(y.mech.q)
        y, _, good = run(
            term, fx.DiscreteGradient(), y, jnp.asarray(DT), jnp.asarray(round(5.0 / DT))
        )
        assert good
        frames = np.asarray(observe(y))  # position, then quaternion, of base and tip of both links
        # A revolute joint: the base of the second link stands on the tip of the first, and its axis
        # (y) is the same in both.
        gap = max(
            gap,
            np.max(np.abs(frames[1, 0, :3] - frames[0, 1, :3])),
            _axis_gap(frames[1, 0, 3:], frames[0, 1, 3:]),
        )
        gap = max(gap, np.max(np.abs(frames[0, 0, :3])))
        norm = max(norm, abs(np.linalg.norm(y.mech.q[ball.q_start : ball.q_start + 4]) - 1))
        drift = max(drift, abs(float(energy(term, y)) - before))
        turned = max(turned, float(np.max(np.abs(np.asarray(y.mech.q) - start))))
        if k % 5 == 0:
            condition.append(check_well_posed(term, y.mech.q, y.mech.v))
    assert turned > 0.3
    record_number(
        "two links, spherical and revolute joint, 100 s: gap of the joints [m, rad]", gap, 1e-8
    )
    record_number("the same: norm of the quaternion - 1", norm, 1e-12)
    record_number("the same: energy drift [J]", drift, 1e-9)
    assert all(condition)
    record_number(
        "the same: largest condition number of M_sys, scaled",
        max(c.condition for c in condition),
        1e6,
    )


def _axis_gap(a, b):
    """Between the y axes of two orientations."""

    def y_axis(quaternion):
        w, x, y, z = quaternion
        return np.array([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)])

    return float(np.max(np.abs(y_axis(a) - y_axis(b))))
