"""GPUs as XLA describes them, and the topologies they can be put together in."""

from __future__ import annotations

import re
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.cells.suggest import did_you_mean
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET_CONFIGS: Final = Path(__file__).parent / "target_configs"
_LAYOUT = re.compile(r"[1-9]\d*x[1-9]\d*x[1-9]\d*")


@cache
def gpu_names(kind: str) -> tuple[str, ...]:
    """Return the names of the GPUs that can be compiled for.

    Args:
        kind: `cuda` or `rocm`.
    """
    wanted = f'platform_name: "{kind.upper()}"'
    files = sorted(TARGET_CONFIGS.glob("*.txtpb"))
    return tuple(file.stem for file in files if wanted in file.read_text(encoding="utf-8"))


def gpu_topology(kind: str, model: str, layout: str) -> tuple[Mapping[str, Any], int]:
    """Return what XLA must be told of some GPUs, and how many there are.

    Args:
        kind: `cuda` or `rocm`.
        model: Name of a GPU, e.g. `h100`.
        layout: Partitions, hosts in each and devices of each, e.g. `1x1x4`.

    Returns:
        Arguments of `get_topology_desc`, and the number of devices.

    Raises:
        UsageError: If the GPU is unknown, or that is no topology.
    """
    where = f"platform '{kind}:{model}:{layout}'"
    known = gpu_names(kind)
    if model not in known:
        raise UsageError(
            f"{where}: unknown GPU {model!r}{did_you_mean(model, known)}; "
            f"expected one of {', '.join(known)}"
        )
    if not _LAYOUT.fullmatch(layout):
        raise UsageError(
            f"{where}: {layout!r} is no topology of GPUs; expected PARTITIONSxHOSTSxDEVICES, "
            "e.g. 1x1x4: four devices on one host"
        )
    text = (TARGET_CONFIGS / f"{model}.txtpb").read_text(encoding="utf-8")
    asked = {
        "platform": kind,
        "topology_name": model,
        "target_config": text,
        "topology": layout,
    }
    return asked, prod(map(int, layout.split("x")))
