"""Made-up records of libraries."""

from __future__ import annotations

from typing import Any

from conformance.ecosystem.outcome import Failure, LibraryOutcome, LibraryRecord, VersionPolicy

OK = LibraryOutcome.OK
TESTS = LibraryOutcome.TESTS_FAIL
IMPORTS = LibraryOutcome.IMPORT_FAILS
RELEASE, BOUNDS = VersionPolicy.RELEASE, VersionPolicy.BOUNDS


def record(
    library: str, jax: str, version: str = "1.0", error: str = "", **fields: Any
) -> LibraryRecord:
    """Return the record of a library that works, or whose import ends with an error."""
    failures = (Failure(test="import", error=error),) if error else ()
    made = {
        "library": library, "jax": jax, "version": version, "policy": RELEASE,
        "outcome": IMPORTS if error else OK, "failures": failures, "cell": f"jax{jax}-{library}",
    }  # fmt: skip
    return LibraryRecord(**{**made, **fields})
