"""Make the sample modules: `python generate.py --platform cpu|tpu|cuda --out DIR [PROGRAM...]`.

It runs inside an environment with jax (TPU: `jax[tpu]`; CUDA: jax with its CUDA plugin and nvcc),
on any machine: TPU and CUDA modules are compiled for a topology, no device is needed. For each
program it writes

    DIR/<platform>/<release>/<program>.hlo        what `Compiled.as_text()` says
    DIR/<platform>/<release>/<program>.full.hlo   the same with large constants
    DIR/<platform>/<release>/<program>.generic    StableHLO in MLIR's generic form
    DIR/<platform>/<release>/<program>.jaxpr.txt  the jaxpr

A program that fails on a release is reported and left out; one that ends the process too.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
SOURCE = "/src/programs.py"
AGAIN = """
with open({0!r}) as source:
    code = compile(source.read(), "/src/generate.py", "exec")
exec(code, {{**globals(), "__file__": {0!r}}})
"""
"""Runs this file under a neutral name, because names of files get into modules, also encoded."""
CHIP = """
gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 84978434048
  shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 }
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
platform_name: "CUDA"
device_description_str: "NVIDIA H100 80GB HBM3"
"""
"""An H100 as XLA describes it (a GpuTargetConfigProto)."""


def say(text: str) -> None:
    """Write a line at once: the process may end any time."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def settings(platform: str, dump: Path) -> dict[str, str]:
    """Return the environment variables under which a platform is compiled for."""
    flags = {"cpu": "--xla_force_host_platform_device_count=4"}
    flags["big"] = "--xla_force_host_platform_device_count=8"
    flags["cuda"] = (
        "--xla_gpu_autotune_level=0 --xla_dump_hlo_as_text --xla_dump_large_constants "
        f"--xla_dump_to={dump}"
    )
    more = {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": flags.get(platform, ""),
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    if platform == "tpu":
        more |= {"TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost"}
        more |= {"TPU_ACCELERATOR_TYPE": "v5litepod-4"}
    if platform == "cuda":
        more |= {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}
    return more


def devices(platform: str) -> Any:
    """Return the devices to compile for."""
    import jax  # noqa: PLC0415 - its settings come from the environment

    if platform in {"cpu", "big"}:
        return jax.devices()
    from jax.experimental import topologies  # noqa: PLC0415

    if platform == "tpu":
        found = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2")
    else:
        found = topologies.get_topology_desc(
            platform="cuda", topology_name="h100", target_config=CHIP, topology="1x1x4"
        )
    return found.devices


def programs() -> dict[str, Any]:
    """Return the namespace of the programs, whose file is a neutral one."""
    source = (HERE / "programs.py").read_text(encoding="utf-8")
    module = type(sys)("programs")
    sys.modules["programs"] = module
    exec(compile(source, SOURCE, "exec"), module.__dict__)  # noqa: S102 - our own file
    return module.__dict__


def full_text(compiled: Any) -> str:
    """Return the optimised module with its large constants."""
    for name in ("jaxlib.xla_extension", "jaxlib._jax", "jaxlib._hlo"):
        try:
            options = importlib.import_module(name).HloPrintOptions()
        except (ImportError, AttributeError):
            continue
        options.print_large_constants = True
        return str(compiled.runtime_executable().hlo_modules()[0].to_string(options))
    raise RuntimeError("no HloPrintOptions in this release, expected them in jaxlib")


def dumped(dump: Path) -> str:
    """Return the last optimised module that XLA wrote down, for releases that return none."""
    found = sorted(dump.glob("*after_optimizations.txt"), key=lambda f: f.stat().st_mtime)
    return found[-1].read_text(encoding="utf-8")


def texts(built: Any, dump: Path) -> Iterator[tuple[str, str]]:
    """Yield what a program looks like at each stage, with the file ending, until one fails."""
    import jax  # noqa: PLC0415

    traced = jax.jit(built.function, **built.jit).trace(*built.args)
    lowered = traced.lower()
    stable = lowered.compiler_ir("stablehlo").operation
    yield "jaxpr.txt", str(traced.jaxpr)
    yield (
        "generic",
        stable.get_asm(
            print_generic_op_form=True, large_elements_limit=None, enable_debug_info=True
        ),
    )
    compiled = lowered.compile()
    text = compiled.as_text()
    if text is None:
        yield "hlo", dumped(dump)
    else:
        yield "hlo", text
        yield "full.hlo", full_text(compiled)


def scrubbed(text: str) -> str:
    """Return a text without the paths of this environment."""
    import jax  # noqa: PLC0415

    packages = Path(jax.__file__).parents[1]
    places = {str(packages): "/packages", str(packages.resolve()): "/packages", sys.prefix: "/env"}
    for place, neutral in places.items():
        text = text.replace(place, neutral)
    return text if text.endswith("\n") else text + "\n"


def write_all(platform: str, out: Path, names: list[str], dump: Path) -> None:
    """Write the files of some programs, saying before each one which."""
    import jax  # noqa: PLC0415

    known = programs()
    place = known["Place"](platform=platform, devices=devices(platform))
    folder = out / platform / jax.__version__
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        say(f"start {name}")
        try:
            for ending, text in texts(known["PROGRAMS"][name](place), dump):
                (folder / f"{name}.{ending}").write_text(scrubbed(text), encoding="utf-8")
        except Exception as error:  # noqa: BLE001 - the next program must have its turn
            say(f"left out {name}: {type(error).__name__}: {str(error)[:200]!r}")
    say("end")


def run_all(platform: str, out: Path, names: list[str]) -> None:
    """Write the files in a process of its own; start another after one that died."""
    while names:
        with tempfile.TemporaryDirectory() as dump:
            command = [sys.executable, "-c", AGAIN.format(__file__)]
            command += ["--platform", platform, "--out", str(out)]
            env = {**os.environ, **settings(platform, Path(dump)), "SAMPLES_DUMP": dump}
            done = subprocess.run(
                [*command, *names], env=env, stdout=subprocess.PIPE, text=True, check=False
            )
        lines = done.stdout.splitlines()
        say("\n".join(line for line in lines if line.startswith("left out")))
        if "end" in lines:
            return
        begun = [line.split()[1] for line in lines if line.startswith("start")]
        if not begun:
            raise SystemExit(f"nothing was made for {platform}: exit status {done.returncode}")
        say(f"left out {begun[-1]}: the process ended with {done.returncode}")
        names = names[names.index(begun[-1]) + 1 :]


def main() -> None:
    """Read the command line and make the samples."""
    parser = argparse.ArgumentParser(description="Make the sample modules.")
    parser.add_argument("--platform", choices=("cpu", "tpu", "cuda", "big"), required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("names", nargs="*", metavar="PROGRAM")
    given = parser.parse_args()
    dump = os.environ.get("SAMPLES_DUMP")
    if dump is not None:
        write_all(given.platform, given.out, given.names, Path(dump))
        return
    only: dict[str, tuple[str, ...]] = programs()["ONLY"]
    names = given.names or [name for name, where in only.items() if given.platform in where]
    run_all(given.platform, given.out, names)


if __name__ == "__main__":
    main()
