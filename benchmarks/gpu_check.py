"""Programs for a GPU, judged by what the compiler emits: kernels, launches and memory for an A100.

    python -m benchmarks.gpu_check [--only TransferMatrix] [--runs 1024] [--steps 50] [--gradient]

No GPU is needed: XLA's CUDA plugin compiles for a described device. `make gpu-check` makes the
environment (several GB). Counted are, for one step of the metal link: kernels that run on the
device (a loop without a known count, Newton's, as 3 rounds), launches by the host (kernels outside
of CUDA graphs, one for each graph; an upper bound where the text shows no graphs), and calls back
to the host. Nothing here has run on a GPU.
"""

import argparse
import os
import re
import time

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["JAX_PLATFORMS"] = "cpu"

A100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 167936 threads_per_core_limit: 2048 core_count: 108 fpus_per_core: 64
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 2039000000000 l2_cache_size: 41943040 clock_rate_ghz: 1.41
  device_memory_size: 85899345920 shared_memory_per_block_optin: 166912
  cuda_compute_capability { major: 8 } registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  driver_version: "12.9.0"
  runtime_version: "12.9.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 8 }
runtime_version { major: 12 minor: 9 patch: 0 }
device_description_str: "NVIDIA A100-SXM4-80GB"
"""
# Kernels and launches per step that are wanted.
WANTED = {
    "TransferMatrix": 80,
    "FiniteElement": 120,
    "PortHamiltonian": 250,
    "ScrewSynthesis": 150,
    "MovingBeam": 250,
}
NEWTON = 3
FREE = {
    "parameter",
    "tuple",
    "get-tuple-element",
    "bitcast",
    "constant",
    "after-all",
    "while",
    "call",
    "conditional",
    "opt-barrier",
    "partition-id",
    "replica-id",
}


def _canonical_platform():
    """jax asks for a running backend of the platform's name; without a device there is none."""
    from jax._src import xla_bridge

    real = xla_bridge.canonicalize_platform
    xla_bridge.canonicalize_platform = lambda p: "cuda" if p in ("cuda", "gpu") else real(p)


def compile_for_a100(fn, shapes):
    """The compiled program of ``fn``, and the seconds that lowering and compiling took."""
    import jax
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    from flexjax._compile import GPU_OPTIONS

    topology = topologies.get_topology_desc(platform="cuda", target_config=A100, topology="1x1x1")
    place = SingleDeviceSharding(topology.devices[0])
    given = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place) for x in shapes]
    begin = time.perf_counter()
    lowered = jax.jit(fn).trace(*given).lower(lowering_platforms=("cuda",))
    options = {**GPU_OPTIONS, "xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
    return lowered.compile(compiler_options=options), time.perf_counter() - begin


class Program:
    """The computations of an optimised program, by name: (opcode, rest of the line) of each."""

    def __init__(self, text: str):
        self.parts: dict[str, list[tuple[str, str]]] = {}
        self.entry, name = "", None
        for line in text.splitlines():
            head = re.match(r"(ENTRY )?%?([\w.\-]+)\s+\(.*\{\s*$", line)
            if head and not line.startswith(" "):
                name = head[2]
                self.parts[name] = []
                self.entry = name if head[1] else self.entry
            elif name is not None and " = " in line:
                opcode = _opcode(line)
                if opcode:
                    self.parts[name].append((opcode, line))

    def count(self, name: str, graph: bool = False) -> tuple[float, float]:
        """(kernels, launches by the host) of one evaluation; ``graph``: inside a CUDA graph."""
        kernels = launches = 0.0
        for opcode, line in self.parts[name]:
            if opcode == "while":
                body, condition = (_called(line, key) for key in ("body", "condition"))
                rounds = _trips(line)
                inner = [self.count(part, graph) for part in (body, condition)]
                kernels += rounds * sum(k for k, _ in inner)
                launches += rounds * sum(n for _, n in inner)
            elif opcode == "call":
                target = _called(line, "to_apply")
                captured = "command_buffer" in target
                k, n = self.count(target, graph or captured)
                kernels, launches = kernels + k, launches + (1 if captured and not graph else n)
            elif opcode == "conditional":
                branches = re.findall(r"%([\w.\-]+)", line.split("branch_computations=")[-1]) or [
                    _called(line, "true_computation"),
                    _called(line, "false_computation"),
                ]
                found = [self.count(b, graph) for b in branches if b in self.parts]
                kernels += max(k for k, _ in found)
                launches += max(n for _, n in found)
            elif opcode not in FREE:
                kernels += 1
                launches += 0 if graph else 1
        return kernels, launches

    def callbacks(self) -> int:
        return sum("callback" in line for part in self.parts.values() for _, line in part)

    def time_loop(self, steps: int) -> str:
        """The body of the loop over the steps."""
        for part in self.parts.values():
            for opcode, line in part:
                if opcode == "while" and _trips(line) == steps:
                    return _called(line, "body")
        raise ValueError(f"no loop of {steps} rounds in the program")


def _opcode(line: str) -> str:
    rest = line.split(" = ", 1)[1]
    if rest.startswith("("):
        depth = 0
        for k, c in enumerate(rest):
            depth += (c == "(") - (c == ")")
            if depth == 0:
                rest = rest[k + 1 :]
                break
    else:
        rest = rest.partition(" ")[2]
    found = re.match(r"\s*([\w\-]+)\(", rest)
    return found[1] if found else ""


def _called(line: str, key: str) -> str:
    found = re.search(rf"{key}=%?([\w.\-]+)", line)
    return found[1] if found else ""


def _trips(line: str) -> int:
    found = re.search(r'"known_trip_count":\{"n":"(\d+)"', line)
    return int(found[1]) if found else NEWTON


def check(name: str, runs: int, steps: int, gradient: bool) -> None:
    """Compile one formulation and print a row."""
    import jax
    import jax.numpy as jnp

    from benchmarks.sweep import Problem

    problem = Problem(name, steps)

    def values(rows):
        return jax.vmap(problem.task.run)(rows).outputs["end"]

    def slopes(rows):
        loss = lambda row: jnp.sum(problem.task.run(row).outputs["end"])
        return jax.vmap(jax.grad(loss))(rows)

    shape = jax.ShapeDtypeStruct((runs, 2), jnp.asarray(0.0).dtype)
    for what, fn in {"values": values, **({"gradient": slopes} if gradient else {})}.items():
        compiled, seconds = compile_for_a100(fn, [shape])
        program = Program(compiled.as_text())
        kernels, launches = program.count(program.time_loop(steps))
        whole = program.count(program.entry)[1]
        memory = compiled.memory_analysis().temp_size_in_bytes / runs
        wanted = f" (wanted {WANTED[name]})" if what == "values" and name in WANTED else ""
        captured = any("command_buffer" in part for part in program.parts)
        # This compiler may form graphs after the text that is counted here: then every kernel
        # counts as a launch.
        bound = "" if captured else "at most "
        print(
            f"{name:16} {what:8} {kernels:6.0f} kernels per step{wanted}, {bound}"
            f"{min(launches, whole / steps):.2f} launches per step (wanted 1), "
            f"{program.callbacks()} callbacks, {memory / 1e3:.1f} kB per run, "
            f"compiled in {seconds:.0f} s",
            flush=True,
        )


def main(argv: list[str] | None = None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", default=list(WANTED), help="names of formulations")
    parser.add_argument("--runs", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--gradient", action="store_true", help="reverse-mode gradients too")
    parser.add_argument("--single", action="store_true", help="single precision")
    args = parser.parse_args(argv)

    import jax

    jax.config.update("jax_enable_x64", not args.single)
    _canonical_platform()
    for name in args.only:
        check(name, args.runs, args.steps, args.gradient)


if __name__ == "__main__":
    main()
