"""Versions of a standard: those that a suite can test, and the version that a release claims."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from packaging.version import Version

from conformance.cache_folder import CacheFolder
from conformance.cells.child_processes import CHILD_PROCESSES
from conformance.errors import InfrastructureError, UsageError
from conformance.files import MALFORMED, describe_os_error
from conformance.scratch import temporary_folder
from conformance.wording import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.suites.catalogue.definition import NamedSuite

CLAIMED: Final = "claimed"
"""Selects the version that a release claims to implement."""
ALL: Final = "all"
"""Selects every version from the oldest to the claimed one."""
FOLDER: Final = "claims"
"""Folder of claimed versions within the cache."""
TIMEOUT: Final = 300.0
"""Seconds that the import of a release may take."""
_SCRIPT: Final = """\
import importlib, json, sys
module, _, attribute = sys.argv[1].partition(":")
claimed = getattr(importlib.import_module(module), attribute, "")
print(json.dumps(str(claimed)))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standards:
    """The versions of a standard, and the selected one.

    Attributes:
        versions: The versions that the suite knows, the oldest first.
        variable: Environment variable that selects the version in the suite.
        claim: Attribute with the version that a release claims, `module:attribute`.
        requested: A version, CLAIMED or ALL.
    """

    versions: tuple[str, ...]
    variable: str
    claim: str
    requested: str = CLAIMED

    def find_version(self, claimed: str) -> str:
        """Return the version that a cell is held against.

        Args:
            claimed: The version that its release claims, empty if it claims none, which counts as
                the oldest.
        """
        return self.requested if self.requested in self.versions else claimed or self.versions[0]

    def explain_refusal(self, claimed: str) -> str:
        """Return why a cell is not held against the selected version, empty if it is.

        Args:
            claimed: The version that its release claims, empty if it claims none.
        """
        oldest = self.versions[0]
        if self.requested not in self.versions or not _is_newer(self.requested, claimed or oldest):
            return ""
        claim = f"claims {claimed}" if claimed else f"claims no version, which counts as {oldest}"
        return f"is not held against {self.requested} of the standard: its release {claim}"


def select_standards(suite: NamedSuite, requested: str) -> Standards | None:
    """Return the versions of its standard that a suite tests, None if it has no standard.

    Args:
        suite: Suite with the versions in its definition.
        requested: A version, CLAIMED or ALL.

    Raises:
        UsageError: If the suite has no standard, or does not know the version.
    """
    definition = suite.definition
    if not definition.standards:
        if requested != CLAIMED:
            raise UsageError(f"--standard {requested}: {suite.name} is not about a standard")
        return None
    if requested not in {*definition.standards, CLAIMED, ALL}:
        raise UsageError(
            f"--standard {requested}: {suite.name} knows no such version"
            f"{did_you_mean(requested, definition.standards)}; "
            f"expected {CLAIMED}, {ALL} or one of {', '.join(definition.standards)}"
        )
    return Standards(
        versions=definition.standards,
        variable=definition.standard,
        claim=definition.claim,
        requested=requested,
    )


def _is_newer(version: str, other: str) -> bool:
    try:
        return Version(version) > Version(other)
    except ValueError:
        # Versions of a standard may be names, e.g. `draft`.
        return version > other


def read_claim(python: Path, variables: Mapping[str, str], claim: str) -> str:
    """Return the version that the release in an environment claims, empty for none.

    Args:
        python: Interpreter of the environment.
        variables: Environment variables.
        claim: Attribute with the version, `module:attribute`.

    Raises:
        InfrastructureError: If the module cannot be imported in the environment.
    """
    try:
        # Python imports modules of the working directory first, so it must be empty.
        with temporary_folder("claims") as scratch:
            done = CHILD_PROCESSES.run(
                # Not -I: the packages of an overlay are on PYTHONPATH.
                [python, "-s", "-c", _SCRIPT, claim],
                cwd=scratch,
                env=variables,
                timeout=TIMEOUT,
            )
    except subprocess.TimeoutExpired:
        raise InfrastructureError(f"{claim}: is not known within {TIMEOUT:g} s") from None
    except OSError as error:
        raise InfrastructureError(f"{python}: does not run: {describe_os_error(error)}") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise InfrastructureError(f"{claim}: cannot be read: {last}")
    # Only the last line: importing a package may print something.
    return msgspec.json.decode(done.stdout.strip().splitlines()[-1], type=str)


class ClaimCache:
    """The versions that cells claim, stored below the cache folder.

    Args:
        cache: Cache folder.
    """

    def __init__(self, cache: Path) -> None:
        self._entries = CacheFolder(cache / FOLDER)

    def load(self, cell_hash: str, claim: str) -> str | None:
        """Return the version that a cell claims, None if it is not stored.

        Args:
            cell_hash: Hash of the whole cell, empty if the cell may change.
            claim: Attribute with the version.
        """
        content = self._entries.read(self._locate(cell_hash, claim)) if cell_hash else None
        try:
            return None if content is None else msgspec.json.decode(content, type=str)
        except MALFORMED:  # written by another version
            return None

    def save(self, cell_hash: str, claim: str, claimed: str) -> None:
        """Store the version that a cell claims, unless the cell may change."""
        if cell_hash:
            self._entries.write(self._locate(cell_hash, claim), msgspec.json.encode(claimed))

    def _locate(self, cell_hash: str, claim: str) -> Path:
        digest = hashlib.sha256(f"{cell_hash}\0{claim}".encode()).hexdigest()[:32]
        return self._entries.folder / f"{digest}.json"
