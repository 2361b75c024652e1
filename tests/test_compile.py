"""fx.jit, fx.grad and fx.value_and_grad, and the settings of fx.configure."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import flexjax as fx
from flexjax import _compile
from flexjax._configure import _prune

ROOT = Path(__file__).resolve().parent.parent


def cube(x, scale=1.0):
    return scale * x**3


def test_transformations_are_those_of_jax():
    assert fx.jit(cube)(2.0) == 8.0
    assert fx.jit(static_argnames="scale")(cube)(2.0, scale=2.0) == 16.0
    assert fx.grad(cube)(2.0) == 12.0
    assert fx.grad(cube, 1)(2.0, 1.0) == 8.0
    value, (slope, by_scale) = fx.value_and_grad(cube, (0, 1))(2.0, 1.0)
    assert (value, slope, by_scale) == (8.0, 12.0, 8.0)
    pair = fx.value_and_grad(lambda x: (cube(x), x), has_aux=True)(2.0)
    assert pair == ((8.0, 2.0), 12.0)


def test_they_work_under_other_transformations():
    """jax takes compiler options at the outermost level only."""
    inner = fx.jit(cube)
    assert jax.jit(inner)(2.0) == 8.0
    assert jax.grad(inner)(2.0) == 12.0
    assert jax.hessian(fx.jit(inner))(2.0) == 12.0
    assert fx.grad(fx.grad(inner))(2.0) == 12.0
    assert jnp.array_equal(jax.vmap(fx.grad(inner))(jnp.arange(2.0)), jnp.array([0.0, 3.0]))
    assert jax.jvp(inner, (2.0,), (1.0,)) == (8.0, 12.0)

    def closed(x):
        return fx.jit(lambda: cube(x))()  # no tracer among its arguments

    assert jax.grad(closed)(2.0) == 12.0


def test_python_collects_no_garbage_while_it_traces():
    """And afterwards again, if it did before; calls in calls and failures included."""
    seen = []

    def traced(x):
        seen.append(gc.isenabled())
        if x.ndim:
            raise ValueError("a vector")
        return 2 * x

    inner = fx.jit(traced)
    outer = fx.jit(lambda x: inner(x) + 1)
    assert gc.isenabled() and outer(1.0) == 3.0 and gc.isenabled()
    with pytest.raises(ValueError, match="a vector"):
        inner(jnp.ones(2))
    assert gc.isenabled()
    gc.disable()
    try:
        inner(jnp.float32(1.0))
        assert not gc.isenabled()  # the choice of the program around it
    finally:
        gc.enable()
    assert seen == [False] * 3


def test_options_reach_the_compiler(monkeypatch):
    seen = []

    def spy(fn, **options):
        seen.append(options.get("compiler_options"))
        return jax.jit(fn, **options)

    known = _compile.compiler_options()
    assert known == _compile.COMPILER_OPTIONS
    program = _compile.Compiled(spy, cube, {})
    assert jax.jit(program)(2.0) == 8.0 and seen == [None]
    assert program(2.0) == 8.0 and seen == [None, known]
    assert "optimization_level" not in program.lower(2.0).as_text()


def test_an_option_that_xla_does_not_know_is_left_out(monkeypatch):
    monkeypatch.setattr(_compile, "COMPILER_OPTIONS", {"xla_no_such_option": True})
    _compile._known_options.cache_clear()
    try:
        assert _compile.compiler_options() is None
        assert fx.jit(lambda x: 2 * x)(1.0) == 2.0
    finally:
        _compile._known_options.cache_clear()


def test_programs_compiled_quickly():
    """A setting, which also counts for functions that were compiled before it changed."""
    program = fx.jit(cube)
    assert program(2.0) == 8.0
    fx.configure(threads=None, cache=False, quick=True)
    try:
        assert _compile.compiler_options()["xla_backend_optimization_level"] == 0
        assert program(2.0) == 8.0 and len(program._made) == 2
    finally:
        fx.configure(threads=None, cache=False)
    assert "xla_backend_optimization_level" not in _compile.compiler_options()
    assert program(2.0) == 8.0 and len(program._made) == 2


def test_one_program_for_changed_values():
    traced = []
    program = fx.jit(lambda x: traced.append(1) or 2 * x)
    assert program(1.0) == 2.0 and program(3.0) == 6.0 and len(traced) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads: 0; expected a whole number"),
        ({"devices": 1.5}, "devices: 1.5; expected a whole number"),
        ({"threads": True}, "threads: True; expected"),
        ({"cache_size": -1}, "cache_size: -1; expected a number of bytes"),
        ({"threads": None, "cache": __file__}, "cannot be used"),
    ],
)
def test_configure_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        fx.configure(**options)


def _python(code: str, **env) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "PJRT_"))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**kept, **env},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_configure_before_and_after_the_client(tmp_path):
    """Threads, devices and programs on disk; a second process reads them and prints nothing."""
    code = """
import os, warnings
import flexjax as fx
fx.configure(devices=2)
import jax
assert len(jax.devices()) == 2 and os.environ["PJRT_NPROC"] == "1"
fx.configure(devices=2)  # the same again
fx.configure(threads=None)
try:
    fx.configure(threads=2)
except RuntimeError as error:
    assert "directly after the imports" in str(error), error
else:
    raise AssertionError("too late, and not refused")
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
assert jax.jit(lambda x: 2 * x)(1.0) == 2.0
"""
    for _ in range(2):
        assert _python(code, XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path)) == ""
    assert any(tmp_path.rglob("*-cache"))


def test_programs_in_a_cache_of_the_user_are_read_without_messages(tmp_path):
    """XLA would report features of the processor whenever it reads a program with AVX-512."""
    code = """
import os, platform
import flexjax as fx
fx.configure()
import jax
assert jax.jit(lambda x: 2 * x)(1.0) == 2.0
flags = os.environ.get("XLA_FLAGS", "")
assert "xla_cpu_max_isa" in flags or platform.machine() not in ("x86_64", "AMD64"), flags
"""
    own = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    for _ in range(2):
        assert _python(code, **own) == ""
    assert any(tmp_path.rglob("*-cache"))


def test_a_cache_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "flexjax").write_text("no folder")
    code = "import flexjax as fx; fx.configure()"
    out = _python(code, XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path))
    assert "cannot be used" in out and "Traceback" not in out


def test_the_cache_has_a_limit(tmp_path):
    for i in range(4):
        (tmp_path / f"{i}-cache").write_bytes(b"x" * 100)
        os.utime(tmp_path / f"{i}-cache", (i, i))
    _prune([tmp_path], 250)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["2-cache", "3-cache"]
