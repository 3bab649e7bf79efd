"""Platforms that cells are compiled for or run on, by name: `cpu`, `tpu:v5e:2x2`, `gpu` ..."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import UsageError
from conformance.wording import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMS: Final = (
    "cpu, cpu-mpN, tpu:GENERATION:TOPOLOGY, cuda:GPU:TOPOLOGY, rocm:GPU:TOPOLOGY, gpu, tpu"
)
NO_ROCM: Final = (
    "no release compiles for ROCm without hardware: its plugin links to an installed ROCm and "
    "starts only where there is an AMD GPU"
)
REAL: Final = frozenset({"gpu", "tpu"})
"""Platforms that need an accelerator in the host."""
DEFAULT_CPU_DEVICES: Final = 8
TARGET_CONFIGS: Final = Path(__file__).parent / "target_configs"
_PROCESSES = re.compile(r"cpu-mp([1-9]\d{0,3})")
_COMPILE_ONLY = re.compile(r"(tpu|cuda|rocm):([^:]*):([^:]*)")
_TPU_LAYOUT = re.compile(r"[1-9]\d{0,3}(x[1-9]\d{0,3}){1,2}")
_GPU_LAYOUT = re.compile(r"[1-9]\d{0,3}(x[1-9]\d{0,3}){2}")
_TPU_ENVIRONMENT: Final = {
    # libtpu would otherwise query a metadata server, write logs to /tmp, and lock the host against
    # a second process that loads it.
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_LOG_DIR": "disabled",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
# jax would otherwise refuse the plugin without the CUDA libraries: a compile-only cell installs
# only those that XLA calls, see `conformance.cells.lock_resolution`.
_GPU_ENVIRONMENT: Final = {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}
# Autotuning measures kernels on a device, and there is none.
_GPU_FLAGS: Final = ("--xla_gpu_autotune_level=0",)
_REAL_ENVIRONMENT: Final = {
    "gpu": {"JAX_PLATFORMS": "cuda,cpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    "tpu": {"JAX_PLATFORMS": "tpu,cpu", "TPU_LOG_DIR": "disabled"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A platform.

    Attributes:
        name: Name as used in cells, e.g. `tpu:v5e:2x2`.
        kind: `cpu`, `tpu`, `cuda`, `rocm` or `gpu`.
        packages: Packages to install in addition to jax: `tpu`, `cuda`, `gpu`; empty for none.
        devices: Number of devices, None if the cell decides.
        processes: Number of processes of a job.
        topology: Arguments of `jax.experimental.topologies.get_topology_desc` for a compile-only
            platform, else empty.
        environment: Environment variables of its workers.
        xla_flags: XLA flags of its jobs.
        refused: Reason why no environment can be created for it, empty if it can.
    """

    name: str
    kind: str
    packages: str = ""
    devices: int | None = None
    processes: int = 1
    topology: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    xla_flags: tuple[str, ...] = ()
    refused: str = ""

    @property
    def compile_only(self) -> bool:
        """Whether programs are compiled for it and never run."""
        return bool(self.topology)

    @property
    def real(self) -> bool:
        """Whether it needs an accelerator in the host."""
        return self.name in REAL


@cache
def get_platform(name: str) -> Platform:
    """Return the platform with a name.

    Args:
        name: `cpu`; `cpu-mp2` (two processes); `tpu:v5e:2x2` and `cuda:h100:1x1x4` (compile-only);
            `rocm:mi300x:1x1x4` (refused with a reason); `gpu` and `tpu` (the host's accelerators).

    Raises:
        UsageError: If there is no platform with that name.
    """
    if name == "cpu":
        return Platform(name=name, kind="cpu")
    if match := _PROCESSES.fullmatch(name):
        return Platform(name=name, kind="cpu", processes=int(match[1]))
    if name in REAL:
        return Platform(name=name, kind=name, packages=name, environment=_REAL_ENVIRONMENT[name])
    match = _COMPILE_ONLY.fullmatch(name)
    if match is None:
        raise UsageError(f"platform {name!r}: expected one of {FORMS}, e.g. tpu:v5e:2x2")
    kind, model, layout = match.groups()
    if kind == "rocm":
        devices = count_gpus(name, layout)
        return Platform(name=name, kind=kind, devices=devices, refused=NO_ROCM)
    resolve = resolve_tpu_topology if kind == "tpu" else resolve_gpu_topology
    # Checked here, before anything is installed: a plugin reports a wrong topology much later.
    topology, devices = resolve(model, layout)
    return Platform(
        name=name,
        kind=kind,
        packages=kind,
        devices=devices,
        topology=topology,
        environment=_TPU_ENVIRONMENT if kind == "tpu" else _GPU_ENVIRONMENT,
        xla_flags=() if kind == "tpu" else _GPU_FLAGS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU that can be compiled for.

    Attributes:
        name: Name as used in platforms, e.g. `h100`.
        description: Name as reported by CUDA.
        memory: Memory in bytes.
        target_config: A GpuTargetConfigProto as text, with fields that every release knows.
    """

    name: str
    description: str
    memory: int
    target_config: str


@cache
def load_gpus() -> Mapping[str, Gpu]:
    """Return the GPUs that can be compiled for, by name."""
    gpus = {}
    for file in sorted(TARGET_CONFIGS.glob("*.txtpb")):
        text = file.read_text(encoding="utf-8")
        # Text of protobuf, read without its library, which the orchestrator does not have.
        (memory,) = re.findall(r"^\s*device_memory_size: (\d+)$", text, re.MULTILINE)
        (description,) = re.findall(r'^device_description_str: "(.*)"$', text, re.MULTILINE)
        gpus[file.stem] = Gpu(
            name=file.stem, description=description, memory=int(memory), target_config=text
        )
    return gpus


def resolve_gpu_topology(model: str, layout: str) -> tuple[Mapping[str, Any], int]:
    """Return the description of a GPU topology for XLA, and its number of devices.

    Args:
        model: Name of a GPU, e.g. `h100`.
        layout: Number of partitions, of hosts per partition and of devices per host, e.g. `1x1x4`.

    Returns:
        Arguments of `get_topology_desc`, and the number of devices.

    Raises:
        UsageError: If the GPU is unknown or the layout is not valid.
    """
    name = f"cuda:{model}:{layout}"
    known = load_gpus()
    if model not in known:
        raise UsageError(
            f"platform {name!r}: unknown GPU {model!r}{did_you_mean(model, known)}; "
            f"expected one of {', '.join(known)}"
        )
    arguments = {
        "platform": "cuda",
        "topology_name": model,
        "target_config": known[model].target_config,
        "topology": layout,
    }
    return arguments, count_gpus(name, layout)


def count_gpus(name: str, layout: str) -> int:
    """Return the number of GPUs in a topology.

    Args:
        name: Name of the platform, for messages.
        layout: Number of partitions, of hosts per partition and of devices per host.

    Raises:
        UsageError: If the layout is not valid.
    """
    if not _GPU_LAYOUT.fullmatch(layout):
        raise UsageError(
            f"platform {name!r}: {layout!r} is no topology of GPUs; expected "
            "PARTITIONSxHOSTSxDEVICES, e.g. 1x1x4: four devices on one host"
        )
    return prod(map(int, layout.split("x")))


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuGeneration:
    """A generation of TPUs.

    Attributes:
        name: Name as used by libtpu.
        axes: Number of axes of its interconnect: 2 for a torus of chips in a plane, 3 in space.
        largest: Longest axis of a slice, in chips.
        devices: Number of devices that jax sees per chip.
        options: Options with which libtpu has the same devices as jax on the hardware.
        examples: Common topologies: one chip, one host, slices.
    """

    name: str
    axes: int
    largest: int
    devices: int
    options: Mapping[str, Any] = field(default_factory=dict)
    examples: tuple[str, ...]


_IN_SPACE: Final = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "8x8x8")
_IN_A_PLANE: Final = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
# Axes and sizes are those of cloud.google.com/tpu/docs (system architecture). The devices per chip
# were queried from libtpu 0.0.11 and 0.0.50: both accept every example, except that the older one
# does not know tpu7x.
TPU_GENERATIONS: Final = {
    generation.name: generation
    for generation in (
        TpuGeneration(
            name="v2", axes=2, largest=16, devices=2, examples=("2x2", "4x4", "8x8", "16x16")
        ),
        TpuGeneration(
            name="v3", axes=2, largest=32, devices=2,
            examples=("2x2", "4x4", "8x8", "16x16", "32x32"),
        ),
        TpuGeneration(
            name="v4", axes=3, largest=16, devices=1, examples=_IN_SPACE,
            options={"chip_config_name": "megacore"},
        ),
        TpuGeneration(name="v5e", axes=2, largest=16, devices=1, examples=_IN_A_PLANE),
        TpuGeneration(name="v5p", axes=3, largest=28, devices=1, examples=_IN_SPACE),
        TpuGeneration(name="v6e", axes=2, largest=16, devices=1, examples=_IN_A_PLANE),
        TpuGeneration(
            name="tpu7x", axes=3, largest=24, devices=2, examples=("1x1x1", *_IN_SPACE)
        ),
    )
}  # fmt: skip
_CHIPS_OF_HOST: Final = (2, 2, 1)
"""Chips of a host along each axis, in every generation."""
_SHORT_AXES: Final = frozenset({1, 2})
_CUBE: Final = 4
"""Chips along an axis of the block that larger slices consist of."""


def resolve_tpu_topology(model: str, layout: str) -> tuple[Mapping[str, Any], int]:
    """Return the description of a TPU topology for libtpu, and its number of devices.

    Args:
        model: Name of a generation, e.g. `v5e`.
        layout: Number of chips along each axis, e.g. `2x2` or `4x4x4`.

    Returns:
        Arguments of `get_topology_desc`, and the number of devices.

    Raises:
        UsageError: If the generation is unknown or does not have that topology.
    """
    where = f"platform 'tpu:{model}:{layout}'"
    generation = TPU_GENERATIONS.get(model)
    if generation is None:
        raise UsageError(
            f"{where}: unknown TPU generation {model!r}{did_you_mean(model, TPU_GENERATIONS)}; "
            f"expected one of {', '.join(TPU_GENERATIONS)}"
        )
    problem = f"{where}: {model} has no topology {layout}"
    examples = f"expected e.g. {', '.join(generation.examples)}"
    if not _TPU_LAYOUT.fullmatch(layout):
        raise UsageError(f"{problem}; {examples}")
    sizes = [int(size) for size in layout.split("x")]
    if len(sizes) != generation.axes:
        raise UsageError(f"{problem}: its chips lie along {generation.axes} axes; {examples}")
    if max(sizes) > generation.largest:
        raise UsageError(f"{problem}: an axis has 1 to {generation.largest} chips; {examples}")
    # A single chip is not a part of a host with four: libtpu needs the smaller bounds.
    is_single_chip = layout in generation.examples and prod(sizes) == 1
    host = (1, 1, 1) if is_single_chip else _CHIPS_OF_HOST
    if any(size % chips for size, chips in zip(sizes, host, strict=False)):
        raise UsageError(f"{problem}: its hosts have 2x2 chips each; {examples}")
    if any(size not in _SHORT_AXES and size % _CUBE for size in sizes):
        raise UsageError(f"{problem}: an axis has 1, 2 or a multiple of 4 chips; {examples}")
    arguments: dict[str, Any] = {"platform": "tpu", "topology_name": f"{model}:{layout}"}
    arguments |= generation.options
    if is_single_chip:
        arguments["chips_per_host_bounds"] = list(host)
    return arguments, prod(sizes) * generation.devices
