"""Time batches of a simple arm on a device, and print what is worth reporting.

Every formulation simulates an elastic link that is released under gravity, in batches of growing
size, in double and in single precision. The programs have been compiled for an A100 but never run
on a GPU: please report the printed text in an issue.

Examples:

  flexjax bench --batches 16 64 --steps 50
  flexjax bench --device gpu --batches 1024 16384
"""

import dataclasses
import time
from typing import Annotated, Any

from tyro import conf

from flexjax._registry import REGISTRY, check_formulation_name
from flexjax.cli import _check, _common


@dataclasses.dataclass
class Args:
    """Time batches on a device."""

    device: str = "cpu"
    """cpu or gpu"""
    batches: tuple[int, ...] = (64, 256, 1024)
    """numbers of runs that are computed at once"""
    steps: int = 200
    """time steps of each run"""
    formulation: Annotated[tuple[str, ...], conf.arg(aliases=["--only"])] = ()
    """names of formulations; by default all"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    for name in args.formulation:
        check_formulation_name(name)
    if args.device not in ("cpu", "gpu"):
        raise ValueError(f"device: {args.device!r}; expected cpu or gpu.")
    _check.check_numbers("batches", tuple(map(float, args.batches)), "at least 1 run")
    _check.check_numbers("steps", (args.steps,), "at least 1 step")
    _common.start_jax()
    import jax

    try:
        device = jax.devices(args.device)[0]
    except RuntimeError:
        raise ValueError(
            f"device: jax finds no {args.device} here; install jax[cuda12] for an NVIDIA GPU."
        ) from None
    from flexjax._structure import versions

    found = ", ".join(f"{k} {v}" for k, v in versions().items())
    lines, rows = [f"{device.device_kind} ({device.platform}); {found}"], []
    with jax.default_device(device):
        for name in args.formulation or REGISTRY:
            for row in _measure(name, args, device):
                rows.append(row)
                lines.append(_line(row))
                _common.log(lines[-1])
    return "\n".join(lines), {"device": device.device_kind, "rows": rows}, 0


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['formulation']:16} {row['runs']:6} runs: first call {row['first']:6.1f} s, then "
        f"{1e3 * row['seconds'] / row['runs']:8.4f} ms per run, "
        f"{row['steps_per_second'] / 1e6:8.3f} million steps/s; single precision "
        f"{1e3 * row['seconds_single'] / row['runs']:8.4f} ms, tip differs by "
        f"{row['single_error']:.1e} m"
    )


def _measure(name: str, args: Args, device: Any):
    import numpy as np

    for runs in args.batches:
        first, seconds, tip = _timed(name, runs, args.steps, device)
        _, single, tip_single = _timed(name, runs, args.steps, device, single=True)
        yield {
            "formulation": name,
            "runs": runs,
            "first": first,
            "seconds": seconds,
            "steps_per_second": runs * args.steps / seconds,
            "seconds_single": single,
            "single_error": float(np.nanmax(np.abs(tip - tip_single))),
        }


def _timed(name: str, runs: int, steps: int, device: Any, single: bool = False):
    """Seconds of the first call and of a later one, and the tips at the end."""
    import jax.numpy as jnp
    import numpy as np

    from flexjax.formulation import formulation
    from flexjax.robot import load_robot
    from flexjax.study.sweep._design import grid
    from flexjax.study.sweep._execute import run_chunk
    from flexjax.study.sweep._sweep import make_task

    robot = load_robot("metal-link")
    path = f"links.{robot.links[0].name}.material.E"
    material = robot.links[0].material
    assert material is not None  # of this example
    modulus = float(material.E)
    model = formulation(name)().bind(robot, dtype=jnp.float32 if single else None)
    ts = np.array([0.0, 1e-3 * steps])
    task = make_task(model, grid({path: [modulus]}), ts=ts, outputs={"end": _end})
    rows = modulus * np.linspace(0.9, 1.1, runs)[:, None]
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        found = run_chunk(task, rows, runs, [device])
        times.append(time.perf_counter() - begin)
    return times[0], min(times[1:]), np.asarray(found.outputs["end"], float)


def _end(traj: Any) -> Any:
    return traj.tip[-1]
