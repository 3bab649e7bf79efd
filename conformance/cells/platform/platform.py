"""A platform by its name: what it is compiled for or run on, and what that takes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from conformance.cells.platform.gpus import gpu_devices, gpu_topology
from conformance.cells.platform.tpus import tpu_topology
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMS: Final = (
    "cpu, cpu-mpN, tpu:GENERATION:TOPOLOGY, cuda:GPU:TOPOLOGY, rocm:GPU:TOPOLOGY, gpu, tpu"
)
COMPILED_FOR: Final = frozenset({"tpu", "cuda", "rocm"})
"""Kinds whose platforms name a model and a topology."""
NO_ROCM: Final = (
    "no release compiles for ROCm without hardware: its plugin links to an installed ROCm and "
    "starts only where there is an AMD GPU"
)
REAL: Final = frozenset({"gpu", "tpu"})
"""Accelerators that a host has or has not."""
DEFAULT_CPU_DEVICES: Final = 8
_PROCESSES = re.compile(r"cpu-mp([1-9]\d{0,3})")
_TPU_ENVIRONMENT: Final = {
    # Nothing is asked of a metadata server, written to /tmp, or locked against a second process.
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_LOG_DIR": "disabled",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
_GPU_ENVIRONMENT: Final = {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}
# What is measured on a device that is not there cannot be; nothing is chosen by it.
_GPU_FLAGS: Final = ("--xla_gpu_autotune_level=0",)
_REAL_ENVIRONMENT: Final = {
    "gpu": {"JAX_PLATFORMS": "cuda,cpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    "tpu": {"JAX_PLATFORMS": "tpu,cpu", "TPU_LOG_DIR": "disabled"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A platform.

    Attributes:
        name: As cells are given it, e.g. `tpu:v5e:2x2`.
        kind: `cpu`, `tpu`, `cuda`, `rocm` or `gpu`.
        packages: What must be installed for it beside jax: `tpu`, `cuda`, `gpu`; empty for
            nothing.
        devices: How many devices it has, None where a cell says so.
        processes: Processes a job takes.
        topology: For compile-only platforms the arguments of
            `jax.experimental.topologies.get_topology_desc`, else empty.
        environment: Environment variables of its workers.
        xla_flags: XLA flags of its jobs.
        refused: Why no environment can be made for it, empty when one can.
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
        """Whether it is an accelerator that this host has or has not."""
        return self.name in REAL


@cache
def get_platform(name: str) -> Platform:
    """Return the platform of a name.

    Args:
        name: `cpu`; `cpu-mp2`, two processes; `tpu:v5e:2x2`, `cuda:h100:1x1x4`,
            compile-only; `rocm:mi300x:1x1x4`, refused with a reason; `gpu` and `tpu`, what
            the host has.

    Raises:
        UsageError: If there is none of that name.
    """
    if name == "cpu":
        return Platform(name=name, kind="cpu")
    if match := _PROCESSES.fullmatch(name):
        return Platform(name=name, kind="cpu", processes=int(match[1]))
    if name in REAL:
        return Platform(name=name, kind=name, packages=name, environment=_REAL_ENVIRONMENT[name])
    kind, *parts = name.split(":")
    if kind not in COMPILED_FOR or len(parts) != 2:  # noqa: PLR2004 - a model and its topology
        raise UsageError(f"platform {name!r}: expected one of {FORMS}, e.g. tpu:v5e:2x2")
    return _compile_only(name, kind, *parts)


def _compile_only(name: str, kind: str, model: str, layout: str) -> Platform:
    if kind == "rocm":
        return Platform(name=name, kind=kind, devices=gpu_devices(name, layout), refused=NO_ROCM)
    if kind == "tpu":
        topology, devices = tpu_topology(model, layout)
    else:
        topology, devices = gpu_topology(model, layout)
    return Platform(
        name=name,
        kind=kind,
        packages=kind,
        devices=devices,
        topology=topology,
        environment=_TPU_ENVIRONMENT if kind == "tpu" else _GPU_ENVIRONMENT,
        xla_flags=() if kind == "tpu" else _GPU_FLAGS,
    )
