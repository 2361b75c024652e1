"""Finds the command, reads its arguments, prints its result or one paragraph about what is wrong."""

import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from flexjax import __version__

# command: (module, one line about it). `flexjax --help` prints this table and imports nothing else.
COMMANDS = {
    "demo": (
        "flexjax.cli.demo._demo",
        "a tour: one arm in every formulation, ends with a report to open",
    ),
    "simulate": (
        "flexjax.cli._simulate",
        "simulate a robot and save the run, figures, the 3D page",
    ),
    "compare": (
        "flexjax.cli._compare",
        "the same robot in every formulation that can hold it, as a report",
    ),
    "modes": ("flexjax.cli._modes", "natural frequencies and damping of a robot"),
    "identify": (
        "flexjax.cli._identify",
        "numbers of a robot from measured data, with their uncertainty",
    ),
    "view": ("flexjax.cli._view", "saved runs as one 3D page"),
    "describe": (
        "flexjax.cli._describe",
        "a robot in tables: parts, masses, stiffness, who can hold it",
    ),
    "examples": (
        "flexjax.cli._examples",
        "the robots that ship with flexjax; copy one to start from",
    ),
    "schema": ("flexjax.cli._schema", "the JSON schema of robot files"),
    "reproduce": ("flexjax.cli._reproduce", "run the experiments of one of the papers"),
}
EXAMPLES = """examples:
  flexjax demo
  flexjax examples --copy two-link arm.toml
  flexjax describe arm.toml
  flexjax simulate arm.toml --motion shoulder=quintic:0:1:0.5 --end 1 --save run.nc arm.html
  flexjax modes two-link
  flexjax identify arm.toml run.csv --free 'joints.*.stiffness' --report fit.html
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
        print(
            f"flexjax: {name!r} is no command. {hint} `flexjax --help` lists them.", file=sys.stderr
        )
        return 2
    module = import_module(COMMANDS[name][0])
    import tyro

    try:
        args = tyro.cli(module.Args, prog=f"flexjax {name}", description=module.__doc__, args=rest)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    return run_command(name, module, args)


def run_command(name: str, module: Any, args: Any) -> int:
    """Run a command whose arguments are read, and tell its result (a text and data) or its fault."""
    as_json = getattr(args, "json", False)
    try:
        from flexjax.cli._common import warnings_kept

        with warnings_kept():
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
        print(json.dumps(data, indent=1) if as_json else text)
    except BrokenPipeError:  # `flexjax ... | head`
        sys.stderr.close()
    return code


def _is_internal(error: BaseException) -> bool:
    """Faults of the compiler or of jax's types are ours, not the user's: they keep their traceback."""
    return type(error).__module__.split(".")[0] in ("jax", "jaxlib", "equinox")


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}" for name, (_, about) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: flexjax COMMAND [arguments]",
            "",
            "Simulation of flexible-link robots with exact gradients. `flexjax COMMAND --help` says more about each.",
            "",
            *lines,
            "",
            EXAMPLES,
            "",
            "A robot is a TOML file or the name of an example. --json prints results for machines, FLEXJAX_TRACEBACK=1 where an error arose.",
            "Completion in the shell: flexjax --completion bash > ~/.local/share/bash-completion/completions/flexjax (or zsh, tcsh)",
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
