"""Plans: sets of jobs, as they are kept."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import numpy as np
import zstandard

from conformance.engine.blobs import decompress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Jobs = NDArray[np.int64]

_STEP: Final = np.dtype("<u4")


def pack_jobs(jobs: Jobs) -> tuple[str, bytes]:
    """Return the key of a plan, and what is kept of it.

    Args:
        jobs: Ids of its jobs, ascending, from 1.
    """
    # Jobs that were first seen in one run follow one another: their differences are ones.
    steps = np.diff(jobs, prepend=0).astype(_STEP).tobytes()
    return hashlib.sha256(steps).hexdigest(), zstandard.compress(steps, 6)


def unpack_jobs(kept: bytes) -> Jobs:
    """Return the ids of the jobs of a plan, ascending.

    Args:
        kept: What is kept of it.
    """
    return np.cumsum(np.frombuffer(decompress(kept), _STEP), dtype=np.int64)
