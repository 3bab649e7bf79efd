"""GPUs as XLA describes them, and the topologies they can be put together in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import UsageError
from conformance.wording import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET_CONFIGS: Final = Path(__file__).parent / "target_configs"
_LAYOUT = re.compile(r"[1-9]\d{0,3}x[1-9]\d{0,3}x[1-9]\d{0,3}")
_MEMORY = re.compile(r"^\s*device_memory_size: (\d+)$", re.MULTILINE)
_DESCRIPTION = re.compile(r'^device_description_str: "(.*)"$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU.

    Attributes:
        name: As platforms are given it, e.g. `h100`.
        description: As CUDA names it.
        memory: Its memory in bytes.
        target_config: A GpuTargetConfigProto as text, of fields that every release knows.
    """

    name: str
    description: str
    memory: int
    target_config: str


@cache
def gpus() -> Mapping[str, Gpu]:
    """Return the GPUs that can be compiled for, by name."""
    return {file.stem: _read(file) for file in sorted(TARGET_CONFIGS.glob("*.txtpb"))}


def _read(file: Path) -> Gpu:
    text = file.read_text(encoding="utf-8")
    memory, description = _MEMORY.search(text), _DESCRIPTION.search(text)
    assert memory is not None  # noqa: S101 - our own data
    assert description is not None  # noqa: S101
    return Gpu(
        name=file.stem, description=description[1], memory=int(memory[1]), target_config=text
    )


def gpu_topology(model: str, layout: str) -> tuple[Mapping[str, Any], int]:
    """Return what XLA must be told of some GPUs, and how many there are.

    Args:
        model: Name of a GPU, e.g. `h100`.
        layout: Partitions, hosts in each and devices of each, e.g. `1x1x4`.

    Returns:
        Arguments of `get_topology_desc`, and the number of devices.

    Raises:
        UsageError: If the GPU is unknown, or that is no topology.
    """
    name = f"cuda:{model}:{layout}"
    known = gpus()
    if model not in known:
        raise UsageError(
            f"platform {name!r}: unknown GPU {model!r}{did_you_mean(model, known)}; "
            f"expected one of {', '.join(known)}"
        )
    asked = {
        "platform": "cuda",
        "topology_name": model,
        "target_config": known[model].target_config,
        "topology": layout,
    }
    return asked, gpu_devices(name, layout)


def gpu_devices(name: str, layout: str) -> int:
    """Return how many GPUs a topology has.

    Args:
        name: Name of the platform, for messages.
        layout: Partitions, hosts in each and devices of each.

    Raises:
        UsageError: If that is no topology.
    """
    if not _LAYOUT.fullmatch(layout):
        raise UsageError(
            f"platform {name!r}: {layout!r} is no topology of GPUs; expected "
            "PARTITIONSxHOSTSxDEVICES, e.g. 1x1x4: four devices on one host"
        )
    return prod(map(int, layout.split("x")))
