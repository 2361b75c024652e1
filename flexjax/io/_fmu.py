"""Writes a model as a unit for co-simulation (FMI 3), which Simulink, Modelica and others run.

The unit contains the compiled programs of ``jax.export``, so it needs jax but not flexjax.
"""

import dataclasses
import json
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.export
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Float

from flexjax import __version__
from flexjax._files import write_whole
from flexjax._types import is_traced
from flexjax.drive import Drive, Motion
from flexjax.drive.signal import polynomial, shift
from flexjax.formulation import AbstractModel, Start
from flexjax.io._dataset import dof_names, dof_units
from flexjax.robot import Robot, find_leaves, paths
from flexjax.robot._paths import Found
from flexjax.robot._units import effort_unit, sensor_unit
from flexjax.robot.parts._fault import no_such_joint
from flexjax.simulate import stepper
from flexjax.simulate._start import read_drive
from flexjax.simulate._stepper import Stepper, StepperState, advance, with_inputs

SLAVE = Path(__file__).with_name("_fmu_slave.py")
OBSERVED = ("q", "qd", "effort", "tip")
# Base units of FMI; another unit is written into the description.
UNITS: dict[str, dict[str, int]] = {
    "rad": {"rad": 1},
    "rad/s": {"rad": 1, "s": -1},
    "rad/s2": {"rad": 1, "s": -2},
    "m": {"m": 1},
    "m/s": {"m": 1, "s": -1},
    "m/s2": {"m": 1, "s": -2},
    "m2": {"m": 2},
    "m4": {"m": 4},
    "s": {"s": 1},
    "kg": {"kg": 1},
    "kg m2": {"kg": 1, "m": 2},
    "kg/m3": {"kg": 1, "m": -3},
    "N": {"kg": 1, "m": 1, "s": -2},
    "N m": {"kg": 1, "m": 2, "s": -2},
    "N/m": {"kg": 1, "s": -2},
    "N m/rad": {"kg": 1, "m": 2, "s": -2, "rad": -1},
    "N s/m": {"kg": 1, "s": -1},
    "N m s/rad": {"kg": 1, "m": 2, "s": -1, "rad": -1},
    "Pa": {"kg": 1, "m": -1, "s": -2},
}


def to_fmu(
    model: AbstractModel,
    path: str | os.PathLike[str],
    drive: Drive | None = None,
    dt: float = 1e-3,
    *,
    start: Start | dict | None = None,
    parameters: Sequence[str] = (),
    motions: Sequence[str] = (),
    solver: Any = None,
) -> Path:
    """Write a model as an FMU for co-simulation (FMI 3.0).

    The programs inside take the steps of :func:`stepper`, so their numbers are those of
    :func:`simulate`. The FMU runs where Python with jax is installed, of this version or newer;
    flexjax itself is not needed there. Names of joints and sensors become variables, with ``_`` in
    place of other characters:

    - inputs: ``effort.<joint>`` of joints that the drive leaves free, constant between two
      communication points; ``acceleration.<joint>`` of joints in ``motions``;
    - outputs: ``q.<joint>``, ``qd.<joint>``, ``drive_effort.<joint>``, ``tip.x``, ``.y``,
      ``.z``, and ``sensor.<name>`` without low-pass, delay and noise;
    - parameters: their paths.

    Arguments:
        model: a robot in a formulation; its parameters must not be traced.
        path: path of the file, which ends in ``.fmu``.
        drive: motions, controllers, loads and base; they are fixed in the FMU.
        dt: largest time step [s]. A communication step is divided into equal time steps.
        start: initial state; by default the robot's home, at rest.
        parameters: paths that may be set before a run, as in :func:`flexjax.paths`, with ``*``;
            ``drive....`` for the drive, ``start....`` for the start.
        motions: joints that follow an acceleration that is an input, as servo drives do.
        solver: as in :func:`simulate`.

    Returns:
        The path.

    Raises:
        ValueError: the path does not end in .fmu, or an argument does not fit the model.
        ImportError: pythonfmu3 is not installed.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("two-link"))
    >>> path = fx.to_fmu(model, "arm.fmu", dt=1e-3, parameters=["payloads.*.mass"])
    """
    builder = _builder()
    if Path(path).suffix != ".fmu":
        raise ValueError(f"path: {str(path)!r}; expected a name that ends in .fmu.")
    if any(is_traced(x) for x in jtu.tree_leaves((model, drive, start))):
        raise ValueError("to_fmu: traced parameters; call it outside jit, vmap and grad.")
    unit = _Unit.of(model, read_drive(drive, model.robot), dt, start, parameters, motions, solver)
    return write_whole(path, lambda part: _write(unit, part, builder))


def _builder() -> Any:
    try:
        from pythonfmu3 import FmuBuilder
    except ImportError as error:
        raise ImportError(
            "to_fmu needs pythonfmu3; install it with: pip install 'flexjax[fmi]'"
        ) from error
    return FmuBuilder


@dataclasses.dataclass(frozen=True)
class _Root:
    """A tree with parameters that the FMU may set, and the prefix of their paths."""

    prefix: str
    tree: Any
    found: list[Found]

    def filled(self, values: Array) -> Any:
        """The tree with other parameters."""
        tree = self.tree
        for found, value in zip(self.found, values, strict=True):
            leaf = found.leaf_in(tree)
            new = leaf.at[found.index].set(value) if found.index else jnp.asarray(value, leaf.dtype)
            tree = eqx.tree_at(found.leaf_in, tree, new)
        return tree


@dataclasses.dataclass(frozen=True)
class _Unit:
    """What the FMU contains; the functions are those that are exported."""

    model: AbstractModel
    dt: float
    solver: Any
    roots: tuple[_Root, _Root, _Root]  # robot, drive, start
    motions: tuple[str, ...]
    static: list[Any]  # of the stepper and its state, found while they are traced

    @classmethod
    def of(
        cls,
        model: AbstractModel,
        drive: Drive,
        dt: float,
        start: Start | dict | None,
        parameters: Sequence[str],
        motions: Sequence[str],
        solver: Any,
    ) -> "_Unit":
        robot = model.robot
        start = (
            Start() if start is None else Start(joints=start) if isinstance(start, dict) else start
        )
        if not isinstance(start, Start):
            raise ValueError(
                f"start: {type(start).__name__}; expected fx.Start or a dict of joint coordinates."
            )
        start.check(robot)
        if isinstance(parameters, str) or isinstance(motions, str):
            raise ValueError("parameters, motions: text; expected a list of texts.")
        _check_motions(motions, drive, robot)
        cast = lambda tree: jtu.tree_map(lambda x: jnp.asarray(x, robot.gravity.dtype), tree)
        trees = {"": robot, "drive.": drive, "start.": cast(start)}
        chosen: dict[str, list[Found]] = {prefix: [] for prefix in trees}
        for path in parameters:
            prefix = next((p for p in ("drive.", "start.") if path.startswith(p)), "")
            for found in find_leaves(trees[prefix], path.removeprefix(prefix)):
                chosen[prefix] += [c for c in found.components() if c not in chosen[prefix]]
        a, b, c = (_Root(prefix, tree, chosen[prefix]) for prefix, tree in trees.items())
        unit = cls(model, float(dt), solver, (a, b, c), tuple(motions), [])
        stepper(model, unit._drive(drive, start, 0.0), dt, solver=solver)  # refuses before tracing
        return unit

    # ---- the three programs ----------------------------------------------------------------------

    def setup(self, values: Float[Array, " n"]) -> list[Array]:
        """The arrays of a stepper with these parameters."""
        robot, drive, start = self._trees(values)
        model = self.model.rebind(robot) if self.roots[0].found else self.model
        observe = (*OBSERVED, "sensors") if robot.sensors else OBSERVED
        drive = self._drive(drive, start, 0.0)
        made = stepper(model, drive, self.dt, solver=self.solver, observe=observe)
        arrays, static = eqx.partition(made, eqx.is_array)
        return self._flat("stepper", arrays, static)

    def reset(self, arrays: list[Array], values: Array, inputs: Array, t0: Array):
        """State, outputs and status at the start."""
        step: Stepper = self._whole("stepper", arrays)
        _, _, start = self._trees(values)
        moved = self._moved(start)
        efforts, rates = inputs[: step.effort_size], inputs[step.effort_size :]
        step = eqx.tree_at(lambda s: s.drive, step, self._moving(step.drive, moved, rates, t0))
        state, seen = step.reset(self._without_motions(start), t0=t0, efforts=efforts)
        arrays, static = eqx.partition(state, eqx.is_array)
        return [*self._flat("state", arrays, static), moved], self._outputs(seen), state.status

    def step(self, arrays: list[Array], state: list[Array], inputs: Array, t: Array, h: Array):
        """State, outputs and status after a step of length h from t."""
        step: Stepper = self._whole("stepper", arrays)
        step = eqx.tree_at(lambda s: s.dt, step, h)
        *parts, moved = state
        before: StepperState = self._whole("state", parts)
        before = eqx.tree_at(lambda s: (s.k, s.t0), before, (jnp.zeros_like(before.k), t))
        efforts, rates = inputs[: step.effort_size], inputs[step.effort_size :]
        drive = self._moving(step.drive, moved, rates, t)
        drive = with_inputs(drive, step.model.robot, step.inputs, efforts)
        after, seen = advance(step, before, drive, new_efforts=inputs.shape[0] > 0)
        arrays, static = eqx.partition(after, eqx.is_array)
        place, speed = moved
        moved = jnp.stack([place + h * speed + 0.5 * h**2 * rates, speed + h * rates])
        return [*self._flat("state", arrays, static), moved], self._outputs(seen), after.status

    # ---- their parts -----------------------------------------------------------------------------

    def _trees(self, values: Float[Array, " n"]) -> tuple[Robot, Drive, Start]:
        parts, at = [], 0
        for root in self.roots:
            parts.append(root.filled(values[at : at + len(root.found)]))
            at += len(root.found)
        robot, drive, start = parts
        return robot, drive, start

    def _flat(self, name: str, arrays: Any, static: Any) -> list[Array]:
        """The arrays of a tree as a list; the rest of the tree is kept aside."""
        leaves, form = jtu.tree_flatten(arrays)
        kept = dict(self.static)
        if name not in kept:
            self.static.append((name, (form, static)))
        elif kept[name][0] != form:
            raise RuntimeError(f"to_fmu: the structure of the {name} changes in a step.")
        return leaves

    def _whole(self, name: str, leaves: list[Array]) -> Any:
        form, static = dict(self.static)[name]
        return eqx.combine(jtu.tree_unflatten(form, leaves), static)

    def _moved(self, start: Start) -> Float[Array, "2 k"]:
        """Coordinates and rates at the start of the joints that follow an input."""
        robot = self.model.robot
        joints = {j.name: j for j in robot.tree_joints}
        zero = jnp.zeros((), robot.gravity.dtype)

        def first(value: Any) -> Array:
            return zero if value is None else jnp.asarray(value, zero.dtype).reshape(-1)[0]

        places = [first(start.joints.get(n, joints[n].home)) for n in self.motions]
        rates = [first(start.rates.get(n)) for n in self.motions]
        if not places:
            return jnp.zeros((2, 0), zero.dtype)
        return jnp.stack([jnp.stack(places), jnp.stack(rates)])

    def _without_motions(self, start: Start) -> Start:
        joints, rates = (
            {name: x for name, x in given.items() if name not in self.motions}
            for given in (start.joints, start.rates)
        )
        return dataclasses.replace(start, joints=joints, rates=rates)

    def _drive(self, drive: Drive, start: Start, t: float) -> Drive:
        return self._moving(drive, self._moved(start), 0.0, t)

    def _moving(self, drive: Drive, moved: Any, rates: Any, t: Any) -> Drive:
        """The drive with joints that move under a constant acceleration from time t."""
        rates = jnp.broadcast_to(jnp.asarray(rates, moved.dtype), moved[0].shape)
        joints = dict(drive.joints)
        for k, name in enumerate(self.motions):
            row = jnp.stack([moved[0, k], moved[1, k], 0.5 * rates[k]])
            joints[name] = Motion(shift(polynomial(row), t))
        return dataclasses.replace(drive, joints=joints)

    def _outputs(self, seen: dict[str, Any]) -> Array:
        readings = seen.get("sensors", {})
        readings = [readings[sensor.name][None] for sensor in self.model.robot.sensors]
        parts = [*(seen[name] for name in OBSERVED), *readings]
        return jnp.concatenate(parts)

    # ---- its description -------------------------------------------------------------------------

    def variables(self) -> dict[str, list[dict[str, Any]]]:
        """Parameters, inputs and outputs, in the order of the programs' vectors."""
        robot = self.model.robot
        names, units = dof_names(robot), dof_units(robot)
        free = stepper(self.model, self._drive(self.roots[1].tree, self.roots[2].tree, 0.0)).inputs
        joints = {j.name: j for j in robot.tree_joints}
        inputs = [
            _variable(
                f"effort.{name}", effort_unit(joints[name.split(".")[0]]), "effort of a joint"
            )
            for name in names
            if name in free or name.rpartition(".")[0] in free
        ]
        by_name = dict(zip(names, units, strict=True))
        inputs += [
            _variable(f"acceleration.{n}", f"{by_name[n]}/s2", "acceleration of a driven joint")
            for n in self.motions
        ]
        outputs = []
        for kind, about, of in (
            ("q", "joint coordinate", lambda unit: unit),
            ("qd", "rate of a joint coordinate", lambda unit: f"{unit}/s"),
            ("drive_effort", "effort of the drive", lambda unit: "N m" if unit == "rad" else "N"),
        ):
            outputs += [
                _variable(f"{kind}.{n}", of(u), about) for n, u in zip(names, units, strict=True)
            ]
        outputs += [_variable(f"tip.{axis}", "m", "position of the tip") for axis in "xyz"]
        outputs += [
            _variable(f"sensor.{s.name}", sensor_unit(s, robot), f"reading of a {s.kind}")
            for s in robot.sensors
        ]
        found = {"parameters": self._parameters(), "inputs": inputs, "outputs": outputs}
        every = [v["name"] for group in found.values() for v in group]
        for name in every:
            if every.count(name) > 1:
                raise ValueError(
                    f"to_fmu: two variables are called {name!r}; expected names that differ in "
                    "letters, digits or underscores."
                )
        return found

    def _parameters(self) -> list[dict[str, Any]]:
        units = paths(self.model.robot)
        rows = []
        for root in self.roots:
            for found in root.found:
                path = f"{root.prefix}{found.path}"
                whole = units.get(".".join(path.split(".")[: len(found.steps)]))
                unit = "" if root.prefix else units[path].unit if path in units else ""
                unit = unit or ("" if whole is None else whole.unit)
                row = _variable(path, unit, "parameter")
                rows.append(row | {"start": float(np.asarray(found.part))})
        return rows


def _check_motions(motions: Sequence[str], drive: Drive, robot: Robot) -> None:
    joints = {j.name: j for j in robot.tree_joints}
    for name in motions:
        if name not in joints:
            raise ValueError(no_such_joint(f"motions.{name}", name, list(joints)))
        if joints[name].dofs != 1:
            raise ValueError(
                f"motions: {name!r}, a {joints[name].type} joint; expected joints with one "
                "coordinate."
            )
        if name in drive.joints:
            raise ValueError(
                f"motions: {name!r} is also driven by drive.joints.{name}; leave it out there."
            )


def _variable(name: str, unit: str, about: str) -> dict[str, Any]:
    clean = re.sub(r"[^\w.]", "_", name, flags=re.ASCII)
    clean = re.sub(r"\.(?=\d)", "._", clean)  # a part begins with a letter or an underscore
    text = f"{about}: {name}" + (f" [{unit}]" if unit and unit not in UNITS else "")
    return {"name": clean, "unit": unit if unit in UNITS else None, "description": text}


def _write(unit: _Unit, path: Path, builder: Any) -> None:
    """Export the programs, and pack them with their description."""
    robot = unit.model.robot
    dtype = robot.gravity.dtype
    found = unit.variables()
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    name = name if name[:1].isalpha() else f"arm_{name}"
    used = {v["unit"] for group in found.values() for v in group if v["unit"]} | {"s"}
    about = {
        "name": name,
        "description": f"{robot.name}, {type(unit.model.formulation).__name__} of flexjax",
        "version": __version__,
        "dt": unit.dt,
        "dtype": np.dtype(dtype).str,
        "units": {name: UNITS[name] for name in sorted(used)},
        **found,
    }
    with tempfile.TemporaryDirectory(prefix="flexjax-fmu-") as folder:
        place = Path(folder)
        # A process may run units of several versions.
        script = place / f"flexjax_fmu_{re.sub(r'[^0-9a-zA-Z]', '_', __version__)}.py"
        shutil.copyfile(SLAVE, script)
        files = [place / "flexjax.json"]
        files[0].write_text(json.dumps(about, indent=1), encoding="utf-8")
        files += _programs(unit, len(found["parameters"]), len(found["inputs"]), dtype, place)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            made = builder.build_FMU(
                script,
                place / "out",
                project_files=files,
                canGetAndSetFMUState="true",
                canSerializeFMUState="true",
            )
        shutil.move(made, path)


def _programs(unit: _Unit, parameters: int, inputs: int, dtype: Any, place: Path) -> list[Path]:
    """The three exported programs as files."""
    scalar = jax.ShapeDtypeStruct((), dtype)
    values, given = (jax.ShapeDtypeStruct((n,), dtype) for n in (parameters, inputs))
    files = []

    def export(name: str, fn: Callable, *arguments: Any) -> Any:
        program = jax.export.export(jax.jit(fn), platforms=["cpu"])(*arguments)
        files.append(place / f"{name}.program")
        files[-1].write_bytes(bytes(program.serialize()))
        return jtu.tree_unflatten(
            program.out_tree,
            [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in program.out_avals],
        )

    arrays = export("setup", unit.setup, values)
    state, _, _ = export("reset", unit.reset, arrays, values, given, scalar)
    export("step", unit.step, arrays, state, given, scalar, scalar)
    return files
