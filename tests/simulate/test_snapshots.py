"""`traj[i]`, `traj.at(t)` and what notebooks show."""

import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.robot._home import home_lines
from tests._sample import sample_drive, sample_model, sample_trajectory


def test_outputs_by_index():
    traj = sample_trajectory()
    assert len(traj) == 6 and isinstance(traj[-1], fx.Snapshot)
    np.testing.assert_array_equal(traj[2].frames, traj.frames[2])
    np.testing.assert_array_equal(traj[-1].q, traj.q[-1])
    assert [float(x.q[0]) for x in traj] == traj.q[:, 0].tolist()
    with pytest.raises(IndexError, match="output 6; expected one of 6"):
        traj[6]
    with pytest.raises(TypeError, match="slice fields instead"):
        traj[1:3]


@pytest.mark.slow
def test_between_outputs():
    """Halving the output interval divides the error of cubic values by 16, of linear ones by 4."""
    fine = fx.simulate(sample_model(), sample_drive(), jnp.linspace(0, 0.1, 41), substeps=2)
    errors = []
    for every in (8, 4):
        coarse = jax.tree.map(lambda x, e=every: x, fine)
        pick = lambda x, e=every: x[::e] if x.ndim and x.shape[0] == 41 else x
        coarse = jax.tree.map(pick, coarse)
        times = fine.ts[every // 2 :: every][:-1]
        got = jax.vmap(coarse.at)(times)
        want = jax.tree.map(lambda *x: jnp.stack(x), *[fine.at(t) for t in times])
        errors.append([float(jnp.max(jnp.abs(got.q - want.q)))])
        errors[-1] += [float(jnp.max(jnp.abs(got.frames - want.frames)))]
        norms = jnp.linalg.norm(got.frames[..., 3:], axis=-1)
        np.testing.assert_allclose(norms, 1.0, rtol=1e-12)
    ratio = np.array(errors[0]) / np.array(errors[1])
    assert ratio[0] > 6 and ratio[1] > 3, errors
    assert errors[1][0] < 1e-4


def test_at_outputs_is_exact_and_outside_is_refused():
    traj = sample_trajectory()
    for i, t in enumerate(traj.ts):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15),
            traj.at(t),
            traj[i],
        )
    for t in (-1e-3, 0.1001, float("nan")):
        with pytest.raises(ValueError, match="expected one time from 0 to 0.1 s"):
            traj.at(t)
    assert np.all(np.isnan(jax.vmap(traj.at)(jnp.array([-1.0, 2.0])).q))
    slope = jax.grad(lambda t: traj.at(t).q[1])
    np.testing.assert_allclose(slope(traj.ts[2]), traj.qd[2, 1], rtol=1e-9)


def test_next_to_a_failure():
    traj = sample_trajectory()
    cut = lambda x: x.at[3:].set(jnp.nan) if x.ndim and x.shape[0] == 6 else x
    ts = traj.ts
    failed = jax.tree.map(cut, traj)
    failed = type(traj)(**{**failed.__getstate__(), "ts": ts})
    assert np.all(np.isfinite(failed.at(ts[2]).q))
    assert np.all(np.isnan(failed.at(0.5 * (ts[2] + ts[3])).q))


def svgs(html):
    return [
        ElementTree.fromstring("<svg" + part.split("</svg>")[0] + "</svg>")
        for part in html.split("<svg")[1:]
    ]


def test_notebooks_show_text_and_pictures():
    traj = sample_trajectory()
    html = traj._repr_html_()
    assert len(svgs(html)) == 2 and "shoulder" in html and "status ok" in html
    robot = fx.load_robot("two-link")
    assert len(svgs(robot._repr_html_())) == 1
    model = sample_model()
    hold = {n: fx.PD(20.0, 1.0, fx.constant(0.0)) for n in ("shoulder", "elbow")}
    linear = fx.linearise(model, fx.Drive(joints=hold))
    assert "inputs: shoulder [N m], elbow [N m]" in str(linear)
    assert len(svgs(linear._repr_html_())) == 1
    found = fx.modes(model, fx.Drive(joints=hold))
    assert len(svgs(found._repr_html_())) <= 1 and "<pre" in found._repr_html_()


def test_text_is_escaped():
    robot = fx.load_robot("two-link")
    bad = type(robot)(**{**vars(robot), "name": "<script>alert(1)</script>&"})
    assert "<script>" not in bad._repr_html_() and "&lt;script&gt;" in bad._repr_html_()


def test_picture_has_the_links_where_the_model_has_them():
    for name in ("two-link", "rigid-3r", "my-rpb"):
        robot = fx.load_robot(name)
        model = fx.RigidArm().bind(robot)
        y = model.initial_state(fx.Drive(), 0.0, fx.Start())
        s = jnp.array([0.0, 1.0])
        frames = model.outputs(0.0, y, fx.Drive(), s, None, frozenset({"frames"}))["frames"]
        lines = home_lines(robot)
        for i, link in enumerate(robot.links):
            ends = lines[link.name][[0, -1]]
            np.testing.assert_allclose(frames[i, :, :3], ends, atol=1e-12, err_msg=name)
