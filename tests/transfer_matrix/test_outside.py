"""The free three-link arm beside Exudyn's ANCF cable, both refined in space and time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import three_link


@pytest.mark.slow
def test_three_links_against_exudyn(record_number):
    pytest.importorskip("exudyn")
    robot, zero = three_link.arm(), jnp.asarray(0.0)

    def limit(coarse, fine):
        # Both codes are of second order in time and at least that in space: halve both and
        # extrapolate.
        return fine + (fine - coarse) / 3

    ours = [
        np.asarray(jax.jit(three_link.flexjax_tip(n, steps))(robot, zero))
        for n, steps in ((20, 800), (40, 1600))
    ]
    theirs = [three_link.exudyn_tip(n, steps)[0] for n, steps in ((8, 800), (16, 1600))]
    record_number(
        "three-link tip against Exudyn, both extrapolated [m]",
        np.linalg.norm(limit(*ours) - limit(*theirs)),
        1e-5,
    )
