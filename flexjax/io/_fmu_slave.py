"""The program inside an FMU of flexjax: it runs compiled steps, and needs jax but not flexjax.

``flexjax.to_fmu`` copies this file into the FMU. It is no part of the package at run time.
"""

import base64
import json
from pathlib import Path

import jax
import jax.export
import numpy as np
from pythonfmu3 import (
    DefaultExperiment,
    Float64,
    Fmi3Causality,
    Fmi3Initial,
    Fmi3Slave,
    Fmi3Status,
    Fmi3StepResult,
    Fmi3Variability,
    Unit,
)

PROGRAMS = ("setup", "reset", "step")


class Arm(Fmi3Slave):
    """One instance: parameters, inputs, the state as arrays, and outputs."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.folder = Path(str(self.resources))
        about = json.loads((self.folder / "flexjax.json").read_text(encoding="utf-8"))
        self.about = about
        self.modelName = about["name"]
        self.description = about["description"]
        self.version = about["version"]
        self.default_experiment = DefaultExperiment(start_time=0.0, step_size=about["dt"])
        self.programs = None
        self.model = self.state = None
        self.values = [v["start"] for v in about["parameters"]]
        self.inputs = [0.0] * len(about["inputs"])
        self.outputs = [float("nan")] * len(about["outputs"])
        self.begin = 0.0
        self.register_units([Unit(name, **base) for name, base in about["units"].items()])
        self.time = 0.0
        self.register_variable(
            Float64(
                "time",
                causality=Fmi3Causality.independent,
                variability=Fmi3Variability.continuous,
                description="time",
                unit="s",
                getter=lambda: self.time,
            ),
            nested=False,
        )
        for group, where, options in (
            (
                "parameters",
                "values",
                {"causality": Fmi3Causality.parameter, "variability": Fmi3Variability.fixed},
            ),
            ("inputs", "inputs", {"causality": Fmi3Causality.input}),
            (
                "outputs",
                "outputs",
                {"causality": Fmi3Causality.output, "initial": Fmi3Initial.calculated},
            ),
        ):
            for k, v in enumerate(about[group]):
                self._register(v, where, k, options)

    def _register(self, v, where, k, options):
        if "variability" not in options:
            options = {**options, "variability": Fmi3Variability.continuous}

        def setter(value):
            getattr(self, where)[k] = value

        variable = Float64(
            v["name"],
            description=v["description"],
            unit=v["unit"],
            getter=lambda: getattr(self, where)[k],
            setter=None if where == "outputs" else setter,
            **options,
        )
        self.register_variable(variable, nested=False)

    def _call(self, name, *arguments):
        """Run an exported program in its precision, whatever the settings of this process are."""
        dtype = np.dtype(self.about["dtype"])
        with jax.enable_x64(dtype == np.float64):
            if self.programs is None:
                self.programs = {
                    key: jax.jit(
                        jax.export.deserialize(
                            bytearray((self.folder / f"{key}.program").read_bytes())
                        ).call
                    )
                    for key in PROGRAMS
                }
            return self.programs[name](*arguments)

    def _array(self, value):
        return np.asarray(value, self.about["dtype"])

    def setup_experiment(self, start_time):
        self.begin = start_time

    def exit_initialization_mode(self):
        self.model = self._call("setup", self._array(self.values))
        self.state, seen, status = self._call(
            "reset",
            self.model,
            self._array(self.values),
            self._array(self.inputs),
            self._array(self.begin),
        )
        self._report(seen, status, self.begin)

    def do_step(self, current_time, step_size):
        if self.state is None:
            self.exit_initialization_mode()
        count = max(1, int(np.ceil(step_size / self.about["dt"] * (1 - 1e-9))))
        h = step_size / count
        for k in range(count):
            t = current_time + k * h
            self.state, seen, status = self._call(
                "step",
                self.model,
                self.state,
                self._array(self.inputs),
                self._array(t),
                self._array(h),
            )
            if int(status):
                break
        return self._report(seen, status, current_time + step_size)

    def _report(self, seen, status, t):
        self.outputs, self.time = np.asarray(seen, float).tolist(), t
        if not int(status):
            return Fmi3StepResult(status=Fmi3Status.ok)
        self.log(
            f"{self.about['name']}: the step before t = {t:g} s failed (status {int(status)} of "
            "flexjax.Status); use smaller steps, or check the inputs.",
            Fmi3Status.error,
        )
        return Fmi3StepResult(status=Fmi3Status.error)

    def _get_fmu_state(self):
        return {
            "values": list(self.values),
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "begin": self.begin,
            "time": self.time,
            "arrays": [
                None if part is None else [_text(x) for x in part]
                for part in (self.model, self.state)
            ],
        }

    def _set_fmu_state(self, state):
        self.values, self.inputs = list(state["values"]), list(state["inputs"])
        self.outputs, self.begin = list(state["outputs"]), state["begin"]
        self.time = state["time"]
        self.model, self.state = (
            None if part is None else [_array(x) for x in part] for part in state["arrays"]
        )


def _text(x):
    x = np.asarray(x)
    return [x.dtype.str, list(x.shape), base64.b64encode(x.tobytes()).decode()]


def _array(text):
    dtype, shape, content = text
    return np.frombuffer(base64.b64decode(content), dtype).reshape(shape)
