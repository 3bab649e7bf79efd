"""Which version of a standard a release claims to keep: asked of it in its own cell, once."""

from __future__ import annotations

import hashlib
import subprocess
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.cache_folder import CacheFolder
from conformance.cells.child_processes import CHILD_PROCESSES
from conformance.errors import InfrastructureError
from conformance.files import MALFORMED, describe_os_error
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FOLDER: Final = "claims"
"""Folder of the cache that keeps what was claimed."""
TIMEOUT: Final = 300.0
"""Seconds that a release may take to be imported."""
_ASK: Final = """\
import importlib, json, sys
module, _, attribute = sys.argv[1].partition(":")
claimed = getattr(importlib.import_module(module), attribute, "")
print(json.dumps(str(claimed)))
"""


def claimed_in(python: Path, variables: Mapping[str, str], claim: str) -> str:
    """Return what is claimed in an environment, empty where nothing is.

    Args:
        python: Its interpreter.
        variables: Environment variables.
        claim: Where it is said, `module:attribute`.

    Raises:
        InfrastructureError: If the module cannot be imported there.
    """
    # Where it runs is where it looks for modules first: in an empty folder.
    try:
        with temporary_folder("claims") as scratch:
            done = CHILD_PROCESSES.run(
                [python, "-s", "-c", _ASK, claim], cwd=scratch, env=variables,
                timeout=TIMEOUT,
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InfrastructureError(f"{claim}: is not known within {TIMEOUT:g} s") from None
    except OSError as error:
        raise InfrastructureError(f"{python}: does not run: {describe_os_error(error)}") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise InfrastructureError(f"{claim}: cannot be read: {last}")
    return msgspec.json.decode(done.stdout.strip().splitlines()[-1], type=str)


class Claims:
    """What cells claim, kept below the cache folder.

    Args:
        cache: Cache folder.
    """

    def __init__(self, cache: Path) -> None:
        self._entries = CacheFolder(cache / FOLDER)

    def known(self, cell_hash: str, claim: str) -> str | None:
        """Return what a cell claims, None if that is not known yet.

        Args:
            cell_hash: Hash of all that the cell is, empty where that may change.
            claim: Where it is said.
        """
        if not cell_hash:
            return None
        content = self._entries.read(self._path(cell_hash, claim))
        try:
            return None if content is None else msgspec.json.decode(content, type=str)
        except MALFORMED:  # written by another version
            return None

    def keep(self, cell_hash: str, claim: str, claimed: str) -> None:
        """Keep what a cell claims."""
        if cell_hash:
            self._entries.write(self._path(cell_hash, claim), msgspec.json.encode(claimed))

    def _path(self, cell_hash: str, claim: str) -> Path:
        digest = hashlib.sha256(f"{cell_hash}\0{claim}".encode()).hexdigest()[:32]
        return self._entries.folder / f"{digest}.json"
