"""Drives that cannot be are refused before anything is compiled: in Python, in files and on the
command line with the same words."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import flexjax as fx
from flexjax.cli._main import main

TS = jnp.linspace(0.0, 0.1, 3)
WRENCH = fx.constant([0.0, -1.0, 0.0, 0.0, 0.0, 0.0])
ROBOT = fx.load_robot("two-link")
QUINTIC = fx.quintic(0.0, 1.0, 1.0)


@pytest.fixture(scope="module")
def model():
    return fx.RigidArm().bind(ROBOT)


def pd(**given) -> fx.PD:
    return fx.PD(**{"kp": 5.0, "kd": 0.1, "reference": QUINTIC} | given)


def broken(drive: fx.Drive, where) -> fx.Drive:
    """The drive with NaN in one of its leaves, past every check at construction."""
    return eqx.tree_at(where, drive, replace_fn=lambda x: x * jnp.nan)


MOVED = fx.Drive(joints={"shoulder": fx.Motion(QUINTIC), "elbow": pd()})
RECORDED = fx.recorded([0.0, 0.1, 0.2], [0.0, 1.0, 2.0])

# name: (how the drive is made, what the message has)
BAD = {
    "load beyond the tip": (
        lambda: fx.Drive(loads=[fx.Load("fore", WRENCH, s=2)]),
        "s: 2.0; expected a position on the link, from 0 (base) to 1 (tip)",
    ),
    "load before the base": (
        lambda: fx.Drive(loads=[fx.Load("fore", WRENCH, s=-3)]),
        "s: -3.0; expected a position on the link, from 0 (base) to 1 (tip)",
    ),
    "load at NaN": (
        lambda: fx.Drive(loads=[fx.Load("fore", WRENCH, s=jnp.nan)]),
        "s: nan; expected a position on the link, from 0 (base) to 1 (tip)",
    ),
    "load of three numbers": (
        lambda: fx.Drive(loads=[fx.Load("fore", fx.constant([0.0, -1.0, 0.0]))]),
        "drive.loads.0.wrench: a signal of shape (3,); expected shape (6,)",
    ),
    "load without a signal": (
        lambda: fx.Drive(loads=[fx.Load("fore", 3.0)]),
        "drive.loads.0.wrench: float; expected a signal",
    ),
    "load on several positions": (
        lambda: fx.Drive(loads=[fx.Load("fore", WRENCH, s=[0.5, 1.0])]),
        "drive.loads.0.s: numbers of shape (2,); expected one number",
    ),
    "negative limit": (
        lambda: fx.Drive(joints={"elbow": pd(limit=-1.0)}),
        "limit: -1.0; expected a positive effort",
    ),
    "limit zero": (
        lambda: fx.Drive(joints={"elbow": pd(limit=0.0)}),
        "limit: 0.0; expected a positive effort",
    ),
    "times replaced by others out of order": (
        lambda: eqx.tree_at(
            lambda d: d.joints["elbow"].signal.signals[0].times,
            fx.Drive(joints={"elbow": fx.Effort(fx.stack([fx.bang_bang(1.0, [0.0, 1.0])]))}),
            jnp.array([1.0, 0.5]),
        ),
        "drive.joints.elbow.signal.signals.0.times: [1.0, 0.5]; expected increasing times",
    ),
    "vector gain": (
        lambda: fx.Drive(joints={"elbow": pd(kp=[1.0, 2.0])}),
        "drive.joints.elbow.kp: numbers of shape (2,); expected one number",
    ),
    "vector motion": (
        lambda: fx.Drive(joints={"elbow": fx.Motion(fx.constant([1.0, 2.0]))}),
        "drive.joints.elbow.signal: a signal of shape (2,); expected shape ()",
    ),
    "vector effort": (
        lambda: fx.Drive(joints={"elbow": fx.Effort(fx.constant([1.0, 2.0, 3.0]))}),
        "drive.joints.elbow.signal: a signal of shape (3,); expected shape ()",
    ),
    "vector reference": (
        lambda: fx.Drive(joints={"elbow": pd(reference=fx.constant([1.0, 2.0]))}),
        "drive.joints.elbow.reference: a signal of shape (2,); expected shape ()",
    ),
    "a number for a motion": (
        lambda: fx.Drive(joints={"elbow": fx.Motion(0.3)}),
        "drive.joints.elbow.signal: float; expected a signal",
    ),
    "sum of unequal vectors": (
        lambda: fx.Drive(
            loads=[fx.Load("fore", fx.constant([1.0, 2.0]) + fx.constant([1.0, 2.0, 3.0]))]
        ),
        "drive.loads.0.wrench: cannot be evaluated",
    ),
    "NaN gain": (
        lambda: fx.Drive(joints={"elbow": pd(kp=jnp.nan)}),
        "kp: nan; expected a finite number",
    ),
    "NaN leaf of a motion": (
        lambda: broken(MOVED, lambda d: d.joints["shoulder"].signal.end),
        "drive.joints.shoulder.signal.end: nan; expected a finite number",
    ),
    "NaN in a record": (
        lambda: eqx.tree_at(
            lambda d: d.joints["elbow"].signal.values,
            fx.Drive(joints={"elbow": fx.Effort(RECORDED)}),
            jnp.array([0.0, 1.0, jnp.nan]),
        ),
        "drive.joints.elbow.signal.values.2: nan; expected a finite number",
    ),
    "NaN parameter of a controller": (
        lambda: fx.Drive(joints={"elbow": fx.Feedback(lambda t, q, qd, p: p["k"], {"k": jnp.nan})}),
        "drive.joints.elbow.params.k: nan; expected a finite number",
    ),
    "sampling period": (
        lambda: fx.Drive(joints={"elbow": fx.Sampled(lambda t, q, qd, p: 0.0, period=0.0)}),
        "period: 0.0; expected a positive time in seconds",
    ),
    "delay in samples": (
        lambda: fx.Drive(
            joints={"elbow": fx.Sampled(lambda t, q, qd, p: 0.0, period=0.1, delay=-1)}
        ),
        "delay: -1; expected a whole number of samples",
    ),
    "base in the plane": (
        lambda: fx.Drive(base=fx.Base(translation=fx.constant([1.0, 0.0]))),
        "drive.base.translation: a signal of shape (2,); expected shape (3,)",
    ),
    "base angle": (
        lambda: fx.Drive(base=fx.Base(angle=fx.constant([1.0, 0.0]))),
        "drive.base.angle: a signal of shape (2,); expected shape ()",
    ),
    "base axis": (
        lambda: fx.Drive(base=fx.Base(angle=QUINTIC, axis=(0.0, 0.0, 0.0))),
        "axis: [0.0, 0.0, 0.0]; expected a direction",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_drives_are_refused(model, case):
    make, said = BAD[case]
    for use in (
        lambda d: fx.simulate(model, d, TS),
        lambda d: fx.equilibrium(model, d),
        lambda d: fx.modes(model, drive=d),
        lambda d: fx.linearise(model, d),
    ):
        with pytest.raises(ValueError) as error:
            use(make())
        assert said in str(error.value)


def test_what_is_sound_passes(model):
    sound = fx.Drive(
        joints={"shoulder": fx.Motion(fx.stack([QUINTIC])), "elbow": pd(limit=jnp.inf)},
        loads=(fx.Load("fore", WRENCH, s=0.0), fx.Load("upper", WRENCH, s=1.0)),
        base=fx.Base(translation=fx.constant([0.0, 0.0, 0.0])),
    )
    sound.check(ROBOT)
    # A batch is made outside of vmap, and simulated one by one inside it.
    batch = fx.Drive(joints={"elbow": pd(kp=jnp.array([4.0, 5.0]), limit=jnp.array([2.0, 3.0]))})
    axes = jax.tree.map(lambda x: 0 if x.ndim else None, batch)
    jax.eval_shape(jax.vmap(lambda d: fx.simulate(model, d, TS, dt=0.05).tip, (axes,)), batch)


FILES = {
    "negative limit": (
        "[joints.elbow]\npd = { kp = 5.0, kd = 0.1, limit = -1.0, "
        "reference = { constant = { value = 0.0 } } }",
        "joints.elbow.pd.limit: -1.0; expected a positive effort",
    ),
    "vector gain": (
        "[joints.elbow]\npd = { kp = [5.0, 1.0], kd = 0.1, "
        "reference = { constant = { value = 0.0 } } }",
        "joints.elbow.pd.kp: numbers of shape (2,); expected one number",
    ),
    "NaN gain": (
        "[joints.elbow]\npd = { kp = nan, kd = 0.1, reference = { constant = { value = 0.0 } } }",
        "joints.elbow.pd.kp: nan; expected a finite number",
    ),
    "load beyond the tip": (
        '[[loads]]\nlink = "fore"\ns = 2.0\n'
        "wrench = { constant = { value = [0.0, -1.0, 0.0, 0.0, 0.0, 0.0] } }",
        "loads.0.s: 2.0; expected a position on the link, from 0 (base) to 1 (tip)",
    ),
    "load of three numbers": (
        '[[loads]]\nlink = "fore"\nwrench = { constant = { value = [0.0, -1.0, 0.0] } }',
        "loads.0.wrench: a signal of shape (3,); expected shape (6,)",
    ),
    "no list of loads": ('[loads]\nlink = "fore"', "loads: {'link': 'fore'}; expected a list"),
    "text for a position": (
        '[[loads]]\nlink = "fore"\ns = "tip"\n'
        "wrench = { constant = { value = [0.0, -1.0, 0.0, 0.0, 0.0, 0.0] } }",
        "loads.0.s: 'tip'; expected one number",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_bad_files_are_refused_with_the_same_words(case, tmp_path, capsys):
    text, said = FILES[case]
    path = tmp_path / "drive.toml"
    path.write_text(text)
    with pytest.raises(ValueError) as error:
        fx.load_drive(path)
    assert said in str(error.value)
    assert main(["simulate", "two-link", "--drive", str(path), "--end", "0.1"]) != 0
    assert said in capsys.readouterr().err


def test_a_vector_motion_on_the_command_line_is_refused(capsys):
    args = ["simulate", "two-link", "--motion", "elbow=constant:1,2", "--end", "0.1"]
    assert main(args) != 0
    said = "drive.joints.elbow.signal: a signal of shape (2,); expected shape ()"
    assert said in capsys.readouterr().err
