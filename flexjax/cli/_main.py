"""Dispatches to a command and prints its result or its error."""

import json
import math
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from flexjax import __version__

# command: (module, summary). `flexjax --help` prints this table and imports nothing else.
COMMANDS = {
    "demo": (
        "flexjax.cli.demo._demo",
        "take a tour: one arm in every formulation, with checks and a report",
    ),
    "new": (
        "flexjax.cli.robot._new",
        "write a robot file with comments, from a few questions or options",
    ),
    "check": ("flexjax.cli.robot._check", "report every fault of robot files, with its line"),
    "simulate": (
        "flexjax.cli._simulate",
        "simulate a robot; save the trajectory, figures or a 3D page",
    ),
    "compare": (
        "flexjax.cli._compare",
        "simulate a robot in every formulation that supports it; write a report",
    ),
    "modes": (
        "flexjax.cli._modes",
        "compute natural frequencies, damping ratios and mode shapes",
    ),
    "identify": (
        "flexjax.cli.study._identify",
        "estimate robot parameters from measured data, with confidence intervals",
    ),
    "design": (
        "flexjax.cli._design",
        "propose an experiment whose recording says much about free parameters, within limits",
    ),
    "optimise": (
        "flexjax.cli.study._optimise",
        "find a move without vibration, robust over uncertain parameters, within limits",
    ),
    "sweep": (
        "flexjax.cli.study._sweep",
        "simulate a robot for many values of its parameters; continue after an interruption",
    ),
    "bench": ("flexjax.cli._bench", "time batches on a processor or a GPU"),
    "plot": ("flexjax.cli.show._plot", "draw figures of saved trajectories"),
    "view": ("flexjax.cli.show._view", "show saved trajectories in a 3D page"),
    "describe": (
        "flexjax.cli.robot._describe",
        "print links, joints, masses, natural frequencies and supported formulations",
    ),
    "examples": ("flexjax.cli.robot._examples", "list the example robots, or copy one to a file"),
    "schema": ("flexjax.cli.robot._schema", "print the JSON schema of robot files"),
    "reproduce": ("flexjax.cli.study._reproduce", "run the experiments of a paper"),
}
EXAMPLES = """examples:
  flexjax demo
  flexjax new my-arm.toml --lengths 0.5 0.4 --payload 0.2
  flexjax check my-arm.toml
  flexjax examples --copy two-link arm.toml
  flexjax describe arm.toml
  flexjax simulate arm.toml --motion shoulder=quintic:0:1:0.5 --end 1 --save run.nc arm.html
  flexjax modes two-link
  flexjax identify arm.toml run.csv --free 'joints.*.stiffness' --report fit.html
  flexjax plot run.nc tip joints --out figs
  flexjax view run.nc --out again.html"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if argv else 2
    if argv[0] in ("--version", "-V"):
        print(f"flexjax {__version__}")
        return 0
    if argv[0] == "--completion":
        return _completion(argv[1:])
    name, *rest = argv
    if name not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"The commands are {', '.join(COMMANDS)}."
        message = f"flexjax: unknown command {name!r}. {hint} `flexjax --help` describes them."
        print(message, file=sys.stderr)
        return 2
    module = import_module(COMMANDS[name][0])
    import tyro

    try:
        args = tyro.cli(module.Args, prog=f"flexjax {name}", description=module.__doc__, args=rest)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    return run_command(name, module, args)


def run_command(name: str, module: Any, args: Any) -> int:
    """Run a command with parsed arguments, and print its result or its error."""
    as_json = getattr(args, "json", False)
    try:
        from flexjax.cli._common import collect_warnings

        with collect_warnings():
            text, data, code = module.run(args)
    except KeyboardInterrupt:
        print(f"flexjax {name}: interrupted", file=sys.stderr)
        return 130
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        if os.environ.get("FLEXJAX_TRACEBACK"):
            raise
        if _is_internal(error):
            raise
        print(f"flexjax {name}: {error}", file=sys.stderr)
        if as_json:
            print(json.dumps({"error": str(error)}))
        return 1
    try:
        print(json.dumps(_strict(data), indent=1, allow_nan=False) if as_json else text)
    except BrokenPipeError:  # `flexjax ... | head`
        sys.stderr.close()
    return code


def _is_internal(error: BaseException) -> bool:
    """Whether an error of jax or equinox escaped: a fault of flexjax, shown with its traceback."""
    return type(error).__module__.split(".")[0] in ("jax", "jaxlib", "equinox")


def _strict(data: Any) -> Any:
    """The data with null for numbers that are not finite: JSON has none."""
    if isinstance(data, dict):
        return {key: _strict(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_strict(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}" for name, (_, about) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: flexjax COMMAND [arguments]",
            "",
            "Differentiable simulation of flexible-link robots.",
            "`flexjax COMMAND --help` lists the options of a command.",
            "",
            *lines,
            "",
            EXAMPLES,
            "",
            "A robot is the path of a TOML file or the name of an example.",
            "Options with one meaning in every command: --formulation NAME:OPTIONS, --end and --dt",
            "in s, --out for the page or the folder that a command writes, --save for results,",
            "--report for a page with tables and figures, --json to print the result as JSON.",
            "Exit codes: 0 success; 1 an error or a negative result (`check` found a fault, a",
            "script of `reproduce` or a check of `demo` failed); 2 wrong usage; 130 interrupted.",
            "FLEXJAX_TRACEBACK=1 shows the traceback of an error.",
            "Shell completion (bash, zsh or tcsh):",
            "  flexjax --completion bash > ~/.local/share/bash-completion/completions/flexjax",
        ]
    )


def _completion(shells: list[str]) -> int:
    """Print the completion script of a shell."""
    import tyro

    if len(shells) != 1 or shells[0] not in ("bash", "zsh", "tcsh"):
        print(
            f"flexjax: --completion {' '.join(shells)}; expected one of bash, zsh, tcsh.",
            file=sys.stderr,
        )
        return 2
    commands = {name: import_module(module).Args for name, (module, _) in COMMANDS.items()}
    try:
        tyro.extras.subcommand_cli_from_dict(
            commands, prog="flexjax", args=["--tyro-print-completion", shells[0]]
        )
    except SystemExit as stop:
        return stop.code or 0 if isinstance(stop.code, int | None) else 2
    return 0
