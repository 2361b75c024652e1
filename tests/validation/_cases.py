"""The cases of the page, in its order."""

from tests.validation import _beams, _frequencies, _motions, _statics
from tests.validation._row import Case

_LIGHT = ("TransferMatrix",)
CASES = {
    "frequencies": Case(
        "Frequencies at rest",
        "A slender beam on a revolute joint, which is locked (clamped) or free (pinned); with a "
        "mass of half the beam's at the tip, and with a hub.",
        "the frequency",
        _frequencies.at_rest,
        _beams.beam,
        quick=_LIGHT,
    ),
    "rotating": Case(
        "Rotating beam",
        "First frequency in the plane of rotation, about steady rotation of the joint; `fx.modes` "
        "at the `fx.equilibrium` of the rotating drive.",
        "the frequency",
        _frequencies.rotating,
        _beams.beam,
    ),
    "elastica": Case(
        "Elastica",
        "Tip of a cantilever under a dead transverse force. Formulations whose energy is cut off "
        "at some order in the slope leave their range here: at $PL^2/EI = 1$ the tip is 30 % of "
        "the length off and rotated by 26 degrees, at 10 by 81 % and 82 degrees.",
        "the length",
        _statics.elastica,
        _beams.beam,
        quick=_LIGHT,
    ),
    "roll-up": Case(
        "Roll-up",
        "A moment at the end bends the cantilever into an arc of a circle.",
        "the length",
        _statics.roll_up,
        _beams.beam,
    ),
    "heavy": Case(
        "Heavy elastica",
        "A cantilever that bends under its own weight.",
        "the length",
        _statics.heavy,
        _beams.beam,
    ),
    "bend": Case(
        "Bend of 45 degrees",
        "An arc clamped at one end, under a force of 300 across its plane: bending and torsion in "
        "space.",
        "the length of the arc",
        _statics.bend_of_45,
        _beams.bend,
    ),
    "spin-up": Case(
        "Spin-up",
        "A beam of 10 m that is brought to 6 rad/s in 15 s. Steps of 10 ms; at 2.5, 5, 7.5 and "
        "10 s.",
        "the largest deflection, 0.559 m",
        _motions.spin_up,
        _beams.spin_up,
    ),
    "extending": Case(
        "Extending beam",
        "A beam that vibrates while a guide pays it out, from 5 m on. Steps of 2.5 ms; to 2 s.",
        "the first deflection, 0.05 m",
        _motions.extending,
        _beams.boom,
    ),
    "right-angle": Case(
        "Right-angle cantilever",
        "Two soft beams of 10 at a right angle, clamped at one end; a force across their plane at "
        "the corner rises to 50 in 1 s and falls to 0 in another. Steps of 20 ms; to 4 s.",
        "the length of a beam",
        _motions.right_angle,
        _beams.right_angle,
    ),
    "flying": Case(
        "Flying beam",
        "A free beam (10 m, very soft) under a force and a moment at one end until 2.5 s, and "
        "without afterwards. Steps of 10 ms; to 3.5 s.",
        "the length",
        _motions.flying,
        _beams.flying,
    ),
    "pendulum": Case(
        "Pendulum",
        "A rigid rod released from the horizontal; 250 steps in each quarter of the exact period.",
        "1 rad",
        _motions.pendulum,
        _beams.pendulum,
        quick=("RigidArm",),
        elastic=False,
    ),
    "four-bar": Case(
        "Four-bar",
        "A crank-rocker of rigid links, whose crank rotates once at a constant rate.",
        "1 rad",
        _motions.four_bar,
        _beams.four_bar,
        elastic=False,
    ),
    "slider-crank": Case(
        "Slider-crank",
        "Rigid crank and rod; the crank rotates once at a constant rate.",
        "1 m",
        _motions.slider_crank,
        _beams.slider_crank,
        elastic=False,
    ),
}
