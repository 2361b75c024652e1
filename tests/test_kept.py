"""Traced programs on disk: kept for what they depend on, and never for anything else."""

import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import pytest

import flexjax as fx
from flexjax import _compile, _configure, _kept, _structure, _types
from flexjax.formulation import _base
from flexjax.robot._paths import PathInfo
from flexjax.simulate import _assemble, _run
from flexjax.simulate._arguments import Run
from tests.contract_cases import CONTRACTS, each, pendulum

OPTIONS = _compile.compiler_options()


def same_bits(a, b) -> bool:
    leaves = [[np.asarray(x).tobytes() for x in jtu.tree_leaves(tree)] for tree in (a, b)]
    return leaves[0] == leaves[1] and jtu.tree_structure(a) == jtu.tree_structure(b)


class Foreign(eqx.Module):
    """A class outside the package."""

    x: jax.Array


@dataclasses.dataclass(frozen=True)
class Static:
    x: object


@pytest.mark.parametrize(
    "value",
    [
        (1, True, None, "a", 0.1, -0.0, [1.0], {"b": (), "a": 3}),
        np.dtype("f4"),
        (fx.RigidArm, _structure.write, fx.Newmark()),
        PathInfo(1.0, "m"),
        fx.Material(E=1.0, nu=0.3, rho=1.0),
        fx.load_robot("two-link"),
    ],
)
def test_structure_is_read_as_it_was_written(value):
    text = json.dumps(_structure.write(value))
    again = _structure.read(json.loads(text))
    assert json.dumps(_structure.write(again)) == text
    assert jtu.tree_structure(again) == jtu.tree_structure(value)


def test_values_that_only_look_equal_are_written_apart():
    values = (0.0, -0.0, 0, False, None, "0", (0,), [0], 1e-3, np.float64(1e-3), jnp.float32(0))
    assert len({json.dumps(_structure.write(x, leaves=False)) for x in values[:-1]}) == 10
    weak, strong = (_structure.write(x) for x in (jnp.asarray(1.0), jnp.ones(())))
    assert weak != strong


@pytest.mark.parametrize(
    "value",
    [
        lambda x: x,
        test_values_that_only_look_equal_are_written_apart,
        Foreign(jnp.ones(2)),
        Static(1),
        fx.Feedback(lambda t, q, qd: -q),
        object(),
        jax.random.key(0),
        np.array([object()]),
    ],
)
def test_what_is_not_known_by_name_or_value_is_refused(value):
    with pytest.raises(_structure.NotWritable):
        _structure.write({"here": [value]})


def test_a_jax_array_in_a_static_field_is_refused():
    with pytest.raises(_structure.NotWritable, match="static field"):
        _structure.write(jnp.ones(2), leaves=False)


def double(tree, factor=2):
    count.append(1)
    return {"y": factor * tree["x"], "same": "text", "none": None}


count: list[int] = []


def found(folder, *args, options=None, **kwargs):
    """The result of a program in what is as good as a new process, and whether it was traced."""
    count.clear()
    call = _kept.Programs(double, options).find(folder, (args, kwargs))
    return (None if call is None else call()), len(count)


def test_a_program_is_traced_once_for_all_processes(tmp_path):
    x = {"x": jnp.arange(3.0)}
    first, traced = found(tmp_path, x)
    assert traced == 1 and len(list(tmp_path.iterdir())) == 1
    again, traced = found(tmp_path, {"x": x["x"]})
    assert traced == 0 and same_bits(first, again) and again["same"] == "text"
    other, traced = found(tmp_path, {"x": x["x"] + 1.0})
    assert traced == 0 and jnp.array_equal(other["y"], 2 * (x["x"] + 1.0))
    programs = _kept.Programs(double, None)
    for _ in range(3):
        programs.find(tmp_path, ((x,), {}))
    assert len(programs._found) == 1


@pytest.mark.parametrize(
    "change", ["shape", "dtype", "static", "setting", "source", "version", "options"]
)
def test_a_program_is_kept_for_all_that_it_depends_on(tmp_path, monkeypatch, change):
    x, kwargs, options = {"x": jnp.arange(3.0)}, {}, None
    found(tmp_path, x)
    if change == "shape":
        x = {"x": jnp.arange(4.0)}
    elif change == "dtype":
        x = {"x": jnp.arange(3.0, dtype=jnp.float32)}
    elif change == "static":
        kwargs = {"factor": 3}
    elif change == "source":
        monkeypatch.setattr(_kept, "source_hash", lambda: "another")
    elif change == "version":
        monkeypatch.setattr(_kept, "versions", lambda: {"jax": "another"})
    elif change == "options":
        options = {"xla_cpu_enable_fast_math": False}
    if change == "setting":
        with jax.default_matmul_precision("float32"):
            _, traced = found(tmp_path, x)
    else:
        _, traced = found(tmp_path, x, options=options, **kwargs)
    assert traced == 1 and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("damage", ["empty", "cut", "changed", "text", "other"])
def test_a_damaged_file_is_replaced(tmp_path, damage):
    x = {"x": jnp.arange(3.0)}
    good, _ = found(tmp_path, x)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    if damage == "other":  # a good file of another program, under this name
        found(tmp_path, {"x": jnp.arange(4.0)})
        (other,) = set(tmp_path.iterdir()) - {path}
        bad = other.read_bytes()
    else:
        middle = len(content) // 2
        flipped = bytes([content[middle] ^ 1])
        bad = {
            "empty": b"",
            "cut": content[:middle],
            "changed": content[:middle] + flipped + content[middle + 1 :],
            "text": b"flexjax program 1\nnothing",
        }[damage]
    path.write_bytes(bad)
    again, traced = found(tmp_path, x)
    assert traced == 1 and same_bits(good, again)
    assert path.read_bytes() != bad and found(tmp_path, x)[1] == 0


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path):
    folder = tmp_path / "missing"
    with pytest.warns(UserWarning, match="could not be kept"):
        out, _ = found(folder, {"x": jnp.arange(3.0)})
    assert jnp.array_equal(out["y"], jnp.array([0.0, 2.0, 4.0]))


def printing(x):
    jax.debug.print("{}", x)
    return x


def calling(x):
    return jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def weak(x):
    return 1.0 + 0 * jnp.sum(x).astype(int)


@pytest.mark.parametrize("fn", [printing, calling, weak])
def test_programs_that_do_more_than_compute_are_not_kept(tmp_path, fn):
    call = _kept.Programs(fn, None).find(tmp_path, ((jnp.ones(2),), {}))
    assert same_bits(call(), fn(jnp.ones(2))) and not list(tmp_path.iterdir())
    assert call().weak_type == fn(jnp.ones(2)).weak_type


def foreign(x):
    count.append(1)
    return Foreign(2 * x)


def test_a_program_that_cannot_be_kept_is_traced_once(tmp_path):
    count.clear()
    call = _kept.Programs(foreign, OPTIONS).find(tmp_path, ((jnp.ones(2),), {}))
    assert same_bits(call(), Foreign(2 * jnp.ones(2))) and len(count) == 1
    assert not list(tmp_path.iterdir())


def test_not_under_settings_that_watch_a_run(tmp_path):
    with jax.debug_nans(True):
        assert found(tmp_path, {"x": jnp.ones(2)}) == (None, 0)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder of kept programs that the process has not read."""
    monkeypatch.setattr(_configure, "_traced", [tmp_path])
    forget(monkeypatch)
    return tmp_path


def forget(monkeypatch):
    """Drop the programs that this process has read, as a new process would."""
    for program in (_run._integrate, _assemble._outputs, _base._build):
        monkeypatch.setitem(program._stores, False, _kept.Programs(program._fn, OPTIONS))


def cube(x):
    return x**3


def test_only_functions_of_the_package_and_only_at_the_outermost_level(kept, monkeypatch):
    """A function of a user may change between two processes; jax differentiates no kept program."""
    own = _compile.filter_jit(cube)
    assert own(jnp.ones(())) == 1.0 and not list(kept.iterdir())

    def made():
        scale = 2.0
        return _compile.filter_jit(lambda x: scale * x)

    assert made()(jnp.ones(())) == 2.0 and not list(kept.iterdir())
    monkeypatch.setattr(cube, "__module__", "flexjax._types")
    package = _compile.filter_jit(cube)
    monkeypatch.setattr(_types, "cube", package, raising=False)
    x = jnp.array(2.0, float)
    assert jax.grad(package)(x) == 12.0 and jax.hessian(package)(x) == 12.0
    assert jax.jvp(package, (x,), (x,)) == (8.0, 24.0) and jax.jit(package)(x) == 8.0
    assert jnp.array_equal(jax.vmap(package)(jnp.arange(2.0)), jnp.arange(2.0))
    assert fx.jit(package)(x) == 8.0 and not list(kept.iterdir())
    assert package(x) == 8.0 and len(list(kept.iterdir())) == 1


def refuse(*args, **kwargs):
    raise AssertionError("traced")


def simulated(formulation, robot, drive=None):
    model = formulation.bind(robot)
    traj = fx.simulate(model, drive, jnp.linspace(0.0, 4e-3, 3), dt=1e-3, throw=False)
    jtu.tree_leaves(traj)  # reads every output
    return traj


CASES = {"pendulum": (fx.RigidArm, pendulum, lambda: None)} | {
    name: (entry.quick.formulation, entry.quick.robot, entry.quick.drive)
    for name, entry in CONTRACTS.items()
}


@pytest.mark.parametrize("name", ["pendulum", *each(())])
def test_a_simulation_starts_without_tracing_and_has_the_same_bits(kept, monkeypatch, name):
    formulation, robot, drive = CASES[name]
    first = simulated(formulation(), robot(), drive())
    forget(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(_run, "march", refuse)
        patch.setattr(type(formulation()), "build", refuse)
        patch.setattr(_assemble, "choose_rows", refuse)
        again = simulated(formulation(), robot(), drive())
    monkeypatch.setattr(_configure, "_traced", [])
    assert same_bits(first, again)
    assert same_bits(again, simulated(formulation(), robot(), drive()))


def test_a_simulation_with_a_function_of_the_user_is_traced(kept):
    model = fx.RigidArm().bind(pendulum())
    ts, stations = jnp.linspace(0.0, 4e-3, 3), (jnp.linspace(0.0, 1.0, 3), True)
    drive = fx.Drive({"root": fx.Feedback(lambda t, q, qd, params: -q)})
    run = Run(model, drive, ts, model.default_solver(drive), fx.Start(), stations, 2)
    assert _run._integrate._programs.find(kept, ((run,), {})) is None
    assert len(list(kept.iterdir())) == 1  # the model
