"""Wrong robot files: each gives one RobotError with path, value and what was expected, before any
array is made.
"""

import pytest

from flexjax.robot import RobotError
from flexjax.robot.files import _load
from flexjax.robot.files._load import load_robot, robot_from_toml

GOOD = """
schema = 1
name = "arm"
gravity = [0.0, -9.81, 0.0]
planar = true

[[links]]
name = "upper"
length = 0.8
section = { shape = "tube", diameter = 0.02, wall = 0.002 }
material = { E = 70e9, nu = 0.33, rho = 2700.0 }
damping = { strain_rate = 1e-4 }

[[links]]
name = "fore"
length = 0.5
pieces = [
{fraction = 0.4, section = {shape = "rectangle", width = 0.02, height = 0.005}, material = "steel"},
    { fraction = 0.6, constants = { EA = 1e6, EIy = 10.0, EIz = 10.0, GJ = 5.0, rhoA = 0.5 } },
]

[[links]]
name = "hand"
length = 0.1
rigid = true
body = { mass = 0.2, com = [0.05, 0.0, 0.0], inertia = [1e-4, 1e-4, 1e-4, 0.0, 0.0, 0.0] }

[[joints]]
name = "shoulder"
type = "revolute"
parent = "ground"
child = "upper"
axis = [0, 0, 1]
stiffness = 400.0
damping = 0.1
friction = { coulomb = 0.2, v_eps = 0.01 }
hub = { mass = 0.1, inertia = 1e-3 }
motor = { rotor = 1e-5, gear = 50.0 }
stops = { lower = -2.0, upper = 2.0, stiffness = 1e4 }

[[joints]]
name = "elbow"
type = "revolute"
parent = "upper"
child = "fore"
rotation = [0.0, 0.0, 0.5]
home = 0.3

[[joints]]
name = "wrist"
type = "fixed"
parent = "fore"
child = "hand"

[[payloads]]
name = "tool"
link = "hand"
mass = 0.2
s = 1.0

[[sensors]]
name = "angle"
kind = "encoder"
on = "elbow"

[[sensors]]
name = "gauge"
kind = "strain_gauge"
on = "upper"
s = 0.1
"""

# (what is wrong, text of the good file, text put in its place, path in the message, part of what it
# says)
CASES = [
    (
        "negative length",
        "length = 0.8",
        "length = -0.8",
        "links.upper.length = -0.8",
        "expected zero or a positive number",
    ),
    (
        "zero length",
        "length = 0.8",
        "length = 0",
        "links.upper.length = 0.0",
        "expected a positive number",
    ),
    ("NaN", "length = 0.8", "length = nan", "links.upper.length = nan", "expected a finite number"),
    (
        "infinite modulus",
        "E = 70e9",
        "E = inf",
        "links.upper.material.E = inf",
        "expected a finite number",
    ),
    (
        "text for a number",
        "length = 0.8",
        'length = "0.8"',
        "links.upper.length = '0.8'",
        "expected a number",
    ),
    (
        "true for a number",
        "length = 0.8",
        "length = true",
        "links.upper.length = True",
        "expected a number",
    ),
    (
        "table for a number",
        "length = 0.8",
        "length = { m = 0.8 }",
        "links.upper.length",
        "expected a number",
    ),
    ("missing length", "length = 0.8\n", "", "links.upper.length = missing", "the length in m"),
    (
        "missing material",
        "material = { E = 70e9, nu = 0.33, rho = 2700.0 }\n",
        "",
        "links.upper.material = missing",
        "or one of the names aluminium",
    ),
    (
        "unknown material",
        'material = "steel"',
        'material = "unobtainium"',
        "links.fore.pieces.0.material",
        "one of alum",
    ),
    ("missing density", ", rho = 2700.0", "", "links.upper.material.rho = missing", "the density"),
    ("no nu, no G", "nu = 0.33, ", "", "links.upper.material = missing", "exactly one of nu and G"),
    (
        "nu and G",
        "nu = 0.33",
        "nu = 0.33, G = 26e9",
        "links.upper.material = 'nu and G'",
        "exactly one of nu and G",
    ),
    ("Poisson's ratio", "nu = 0.33", "nu = 0.5", "links.upper.material.nu = 0.5", "below 0.5"),
    (
        "negative density",
        "rho = 2700.0",
        "rho = -2700.0",
        "links.upper.material.rho",
        "a positive number",
    ),
    (
        "thick wall",
        "wall = 0.002",
        "wall = 0.01",
        "links.upper.section.wall = 0.01",
        "less than half the diameter",
    ),
    (
        "unknown shape",
        '"tube"',
        '"tuba"',
        "links.upper.section.shape = 'tuba'",
        "one of rectangle, circle, tube",
    ),
    (
        "missing size",
        "diameter = 0.02, ",
        "",
        "links.upper.section.diameter = missing",
        "expected a value",
    ),
    (
        "size of another shape",
        "wall = 0.002",
        "wall = 0.002, height = 1",
        "links.upper.section.height",
        "unknown key",
    ),
    (
        "unknown key",
        "length = 0.8",
        "lenght = 0.8",
        "links.upper.lenght = 0.8",
        "did you mean 'length'?",
    ),
    ("unknown top key", "gravity =", "gravitation =", "gravitation", "did you mean 'gravity'?"),
    (
        "unknown joint",
        'type = "fixed"',
        'type = "hinge"',
        "joints.wrist.type = 'hinge'",
        "one of revolute, fixed",
    ),
    (
        "parent that is no link",
        'parent = "upper"',
        'parent = "uper"',
        "joints.elbow.parent = 'uper'",
        "name of a link or ground",
    ),
    (
        "child that is no link",
        'child = "fore"',
        'child = "four"',
        "joints.elbow.child = 'four'",
        "name of a link (upper,",
    ),
    (
        "ground as child",
        'child = "hand"',
        'child = "ground"',
        "joints.wrist.child = 'ground'",
        "the name of a link",
    ),
    (
        "parent is child",
        'parent = "fore"',
        'parent = "hand"',
        "joints.wrist.child = 'hand'",
        "another link than the parent",
    ),
    (
        "two parents",
        'child = "hand"',
        'child = "fore"',
        "joints.wrist.child = 'fore'",
        "set loop = true",
    ),
    (
        "link without joint",
        'child = "hand"',
        'child = "fore"\nloop = true',
        "links.hand = missing",
        "child = 'hand'",
    ),
    (
        "cycle",
        'parent = "ground"',
        'parent = "fore"',
        "links.upper = 'upper <- fore <- upper'",
        "loop = true on one joint",
    ),
    (
        "same name twice",
        'name = "fore"',
        'name = "upper"',
        "links.1.name = 'upper'",
        "a name that is unique among the links",
    ),
    (
        "link called ground",
        'name = "hand"',
        'name = "ground"',
        "links.ground.name",
        "ground is the name of the fixed world",
    ),
    (
        "name with a dot",
        'name = "tool"',
        'name = "tool.1"',
        "payloads.tool.1.name",
        "no dot or star",
    ),
    ("empty name", 'name = "tool"', 'name = " "', "payloads. .name", "not empty"),
    (
        "degrees",
        "0.0, 0.5]",
        "0.0, 90.0]",
        "joints.elbow.rotation = [0.0, 0.0, 90.0]",
        "rad; [0.0, 0.0, 90.0] looks like degrees",
    ),
    ("home in degrees", "home = 0.3", "home = 45", "joints.elbow.home = 45", "write 0.785398"),
    (
        "stops in degrees",
        "upper = 2.0",
        "upper = 120.0",
        "joints.shoulder.stops.upper = 120.0",
        "looks like degrees",
    ),
    (
        "stops swapped",
        "lower = -2.0",
        "lower = 3.0",
        "joints.shoulder.stops.lower = 3.0",
        "less than upper (2)",
    ),
    (
        "stops on a fixed joint",
        'child = "hand"',
        'child = "hand"\nstops = { lower = 0, upper = 1, stiffness = 1 }',
        "joints.wrist.stops",
        "no end stops",
    ),
    (
        "spring in a fixed joint",
        'child = "hand"',
        'child = "hand"\nstiffness = 10.0',
        "joints.wrist.stiffness",
        "fixed joint",
    ),
    (
        "zero axis",
        "axis = [0, 0, 1]",
        "axis = [0, 0, 0]",
        "joints.shoulder.axis",
        "a vector other than zero",
    ),
    (
        "short axis",
        "axis = [0, 0, 1]",
        "axis = [0, 1]",
        "joints.shoulder.axis = [0, 1]",
        "a list of 3 numbers",
    ),
    (
        "number for an axis",
        "axis = [0, 0, 1]",
        "axis = 3",
        "joints.shoulder.axis = 3",
        "expected a list",
    ),
    (
        "planar with another axis",
        "axis = [0, 0, 1]",
        "axis = [0, 1, 0]",
        "joints.shoulder.axis",
        "an axis along z (planar = true)",
    ),
    (
        "planar and spherical",
        'type = "fixed"',
        'type = "spherical"',
        "joints.wrist.type",
        "moves in the plane",
    ),
    (
        "planar, turned out",
        "[0.0, 0.0, 0.5]",
        "[0.5, 0.0, 0.0]",
        "joints.elbow.rotation",
        "a rotation about z",
    ),
    (
        "universal without axis2",
        'type = "fixed"',
        'type = "universal"',
        "joints.wrist.axis2 = missing",
        "axis2 = [0, 1, 0]",
    ),
    (
        "axis2 on a revolute",
        "home = 0.3",
        "axis2 = [0, 1, 0]",
        "joints.elbow.axis2",
        "no second axis on a revolute",
    ),
    (
        "home of two",
        "home = 0.3",
        "home = [0.3, 0.1]",
        "joints.elbow.home = [0.3, 0.1]",
        "1 number for a revolute",
    ),
    (
        "negative stiffness",
        "stiffness = 400.0",
        "stiffness = -400.0",
        "joints.shoulder.stiffness",
        "N m/rad; check sign",
    ),
    (
        "negative damping",
        "damping = 0.1",
        "damping = -0.1",
        "joints.shoulder.damping = -0.1",
        "zero or a positive",
    ),
    (
        "negative friction",
        "coulomb = 0.2",
        "coulomb = -0.2",
        "joints.shoulder.friction.coulomb",
        "zero or a positive",
    ),
    (
        "negative hub",
        "inertia = 1e-3 }",
        "inertia = [1e-3, 1e-3, -1e-3] }",
        "joints.shoulder.hub.inertia",
        "in every place",
    ),
    (
        "hub of two",
        "inertia = 1e-3 }",
        "inertia = [1e-3, 1e-3] }",
        "joints.shoulder.hub.inertia",
        "3 numbers",
    ),
    ("zero gear", "gear = 50.0", "gear = 0", "joints.shoulder.motor.gear = 0", "other than zero"),
    (
        "tip of a tree joint",
        "home = 0.3",
        'child_at = "tip"',
        "joints.elbow.child_at = 'tip'",
        "loop = true",
    ),
    (
        "unknown child_at",
        "home = 0.3",
        'child_at = "middle"',
        "joints.elbow.child_at = 'middle'",
        "base or tip",
    ),
    ("loop as text", "home = 0.3", 'loop = "yes"', "joints.elbow.loop = 'yes'", "true or false"),
    (
        "fractions",
        "fraction = 0.6",
        "fraction = 0.5",
        "links.fore.pieces = 0.9",
        "fractions that sum to 1",
    ),
    (
        "piece without material",
        ', material = "steel"',
        "",
        "links.fore.pieces.0.material = missing",
        "a material for the section",
    ),
    (
        "section and constants",
        "damping = { strain",
        "constants = { EA = 1, EIy = 1, EIz = 1, GJ = 1, rhoA = 1 }\ndamping = { strain",
        "links.upper = 'section and constants'",
        "exactly one of section",
    ),
    (
        "nothing",
        "body = { mass = 0.2, com = [0.05, 0.0, 0.0], "
        "inertia = [1e-4, 1e-4, 1e-4, 0.0, 0.0, 0.0] }",
        "",
        "links.hand = missing",
        "exactly one of section",
    ),
    (
        "body that bends",
        "rigid = true",
        "rigid = false",
        "links.hand.rigid = False",
        "true for a link given by its body",
    ),
    (
        "body with damping",
        "rigid = true",
        "rigid = true\ndamping = { modal = 0.01 }",
        "links.hand.damping",
        "Remove damping",
    ),
    (
        "inertia",
        "[1e-4, 1e-4, 1e-4, 0.0",
        "[1e-4, 1e-4, 1e-4, 2e-4",
        "links.hand.body.inertia",
        "negative principal value",
    ),
    (
        "taper of two shapes",
        "damping = { strain",
        'section_end = { shape = "circle", diameter = 0.01 }\ndamping = { strain',
        "links.upper.section_end = 'circle'",
        "A taper keeps its shape",
    ),
    (
        "negative strain rate",
        "strain_rate = 1e-4",
        "strain_rate = -1e-4",
        "links.upper.damping.strain_rate",
        "zero or a positive",
    ),
    (
        "damping in per cent",
        "strain_rate = 1e-4",
        "modal = 2",
        "links.upper.damping.modal = 2",
        "not per cent",
    ),
    (
        "payload on nothing",
        'link = "hand"',
        'link = "foot"',
        "payloads.tool.link = 'foot'",
        "upper, fore, hand",
    ),
    (
        "negative payload",
        "mass = 0.2\ns",
        "mass = -0.2\ns",
        "payloads.tool.mass = -0.2",
        "zero or a positive number",
    ),
    (
        "station",
        "s = 1.0",
        "s = 1.2",
        "payloads.tool.s = 1.2",
        "a station from 0 (base) to 1 (tip)",
    ),
    ("unknown sensor", '"encoder"', '"encodr"', "sensors.angle.kind = 'encodr'", "one of encoder"),
    (
        "encoder on a link",
        'on = "elbow"',
        'on = "upper"',
        "sensors.angle.on = 'upper'",
        "the name of a joint",
    ),
    (
        "encoder on a weld",
        'on = "elbow"',
        'on = "wrist"',
        "sensors.angle.on = 'wrist'",
        "a joint with a coordinate",
    ),
    (
        "gauge on a rigid link",
        'on = "upper"',
        'on = "hand"',
        "sensors.gauge.on = 'hand'",
        "an elastic link",
    ),
    (
        "flex without span",
        '"strain_gauge"',
        '"flex"',
        "sensors.gauge.span = missing",
        "span = [0.0, 1.0]",
    ),
    (
        "span backwards",
        '"strain_gauge"',
        '"flex"\nspan = [0.9, 0.1]',
        "sensors.gauge.span",
        "in increasing order",
    ),
    ("gravity as number", "[0.0, -9.81, 0.0]", "-9.81", "gravity = -9.81", "expected a list"),
    (
        "gravity of two",
        "[0.0, -9.81, 0.0]",
        "[0.0, -9.81]",
        "gravity = [0.0, -9.81]",
        "a list of 3 numbers",
    ),
    ("no schema", "schema = 1\n", "", "schema = missing", "schema = 1 at the top"),
    ("schema of the future", "schema = 1", "schema = 2", "schema = 2", "expected 1, the version"),
    ("no name", 'name = "arm"\n', "", "name = missing", "expected a name"),
    ("planar as text", "planar = true", 'planar = "yes"', "planar = 'yes'", "true or false"),
    ("huge integer", "length = 0.8", "length = 1" + "0" * 400, "links.upper.length", "a number"),
    ("endless integer", "length = 0.8", "length = 1" + "0" * 5000, "is not valid TOML", "digits"),
    ("date", "length = 0.8", "length = 1979-05-27", "links.upper.length", "a number"),
    (
        "list for a type",
        'type = "fixed"',
        'type = ["fixed"]',
        "joints.wrist.type = ['fixed']",
        "expected text",
    ),
    (
        "list for a shape",
        '"tube"',
        '["tube"]',
        "links.upper.section.shape = ['tube']",
        "one of rectangle",
    ),
    (
        "list for a material",
        'material = "steel"',
        "material = []",
        "links.fore.pieces.0.material = []",
        "a table",
    ),
    ("nested gravity", "-9.81, 0.0]", "[-9.81], 0.0]", "gravity.1 = [-9.81]", "a number"),
    ("not TOML", "schema = 1", "schema =", "is not valid TOML", "line"),
    ("key twice", "length = 0.8", "length = 0.8\nlength = 0.9", "is not valid TOML", "overwrite"),
]


def nothing_is_built(*_):
    raise AssertionError("the arrays of a wrong robot were made")


def test_the_file_that_is_changed_is_good():
    robot = robot_from_toml(GOOD)
    assert robot.planar and robot.dofs == 2


@pytest.mark.parametrize(
    ("old", "new", "path", "says"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_wrong_file(old, new, path, says, monkeypatch):
    assert GOOD.count(old) >= 1
    monkeypatch.setattr(_load, "from_document", nothing_is_built)
    with pytest.raises(RobotError) as caught:
        robot_from_toml(GOOD.replace(old, new, 1))
    faults = [fault for fault in caught.value.faults if path in fault]
    assert faults, f"no fault at {path!r} in:\n{caught.value}"
    assert any(says in fault for fault in faults), f"{says!r} is not said in:\n{caught.value}"
    assert len(caught.value.faults) <= 3, (
        f"one mistake, one fault (and what follows from it):\n{caught.value}"
    )


def test_there_are_enough_cases():
    assert len(CASES) >= 45
    assert len({case[0] for case in CASES}) == len(CASES)


def test_all_faults_at_once():
    text = (
        GOOD.replace("length = 0.8", "lenght = 0.8")
        .replace("nu = 0.33", "nu = 0.7")
        .replace('"fixed"', '"hinge"')
    )
    with pytest.raises(RobotError) as caught:
        robot_from_toml(text.replace("s = 1.0", "s = nan"))
    message = "\n".join(caught.value.faults)
    for path in (
        "links.upper.length",
        "links.upper.lenght",
        "links.upper.material.nu",
        "joints.wrist.type",
        "payloads.tool.s",
    ):
        assert path in message
    assert str(caught.value).startswith("robot: 5 faults\n")


def test_missing_file_lists_the_examples(tmp_path):
    with pytest.raises(RobotError, match="did you mean 'metal-link'.*two-link"):
        load_robot("metal-lnk")
    with pytest.raises(RobotError, match="cannot be read"):
        load_robot(tmp_path / "absent.toml")
    with pytest.raises(RobotError, match="cannot be read"):
        load_robot(tmp_path)


def test_binary_file(tmp_path):
    path = tmp_path / "robot.toml"
    path.write_bytes(b"\xff\xfe\x00schema")
    with pytest.raises(RobotError, match="not UTF-8"):
        load_robot(path)


def test_words_that_people_try_lead_to_the_key():
    document = {
        "schema": 1,
        "name": "x",
        "links": [
            {
                "name": "a",
                "length": 1.0,
                "section": {"shape": "circle", "radius": 0.01},
                "material": "steel",
            }
        ],
        "joints": [
            {"name": "j", "type": "revolute", "parent": "ground", "child": "a", "angle": 0.3}
        ],
    }
    with pytest.raises(RobotError) as caught:
        _load.robot_from_dict(document)
    text = str(caught.value)
    hint = "did you mean home (the joint coordinate at the start) or rotation"
    assert f"joints.j.angle = 0.3: unknown key; {hint}" in text
    assert "radius = 0.01: unknown key; did you mean diameter (twice the radius)?" in text
