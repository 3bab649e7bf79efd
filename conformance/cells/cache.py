"""The cache folder: environments and locks that can be made again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import platformdirs

from conformance.errors import InfrastructureError
from conformance.files import said_by

VARIABLE = "CONFORMANCE_CACHE"


def cache_location() -> Path:
    """Return the cache folder, which may not exist: `$CONFORMANCE_CACHE`, else the user's."""
    chosen = os.environ.get(VARIABLE)
    root = Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("jax-conformance")
    return root.absolute()


def cache_root() -> Path:
    """Return the cache folder, made if need be.

    Raises:
        InfrastructureError: If files cannot be written there.
    """
    root = cache_location()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root) as probe:
            probe.write(b"x")
    except OSError as error:
        raise InfrastructureError(
            f"cache {root}: cannot be written: {said_by(error)}; "
            f"set {VARIABLE} to a folder that can be"
        ) from error
    return root
