"""The options of runs on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The options of runs on a cluster.

    Attributes:
        scheduler: Address of its scheduler, empty for a cluster on this machine.
        slots: Jobs at the same time in a cluster on this machine.
        cache: Cache folder of the run.
        shared_cache: URL of the shared cache that the run writes, empty for none.
        spawn: Whether each job gets a fresh interpreter.
        require_platform: Whether a missing accelerator is a fault of the host.
        host_hash: Hash of the hosts whose results are cached, see `find_host_hash`.
    """

    scheduler: str
    slots: int
    cache: Path
    shared_cache: str = ""
    spawn: bool = False
    require_platform: bool = False
    host_hash: str = ""
