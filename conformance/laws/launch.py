"""The settings of a law in the request of a job, and the command that starts its example server."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from conformance.cache_folder import cache_location
from conformance.corpus.project import PACKAGE, hash_code
from conformance.errors import UsageError

if TYPE_CHECKING:
    from conformance.model.case import Case

CONVERSATIONS: Final = "conversations"
"""Folder of the cache with conversations of jobs and example servers."""
_SCRIPT: Final = (
    "import sys; sys.path[0] = sys.argv[1]; "
    "from conformance.laws.example_server import main; main()"
)
"""Runs the server from the folder of this package, without the working directory on the path."""


def make_law(case: Case) -> dict[str, Any]:
    """Return the settings of a case with `given` in the request of its job.

    Args:
        case: The case.

    Returns:
        Everything that decides which examples are drawn, apart from the strategies, and the
        tolerance of the case: the data are part of the cache key of the job.

    Raises:
        UsageError: If Hypothesis is not installed.
    """
    return {
        "examples": case.examples,
        # Other cases draw other examples, and a case draws the same ones in every cell.
        "seed": int.from_bytes(hashlib.sha256(case.id.encode()).digest()[:8], "big"),
        "hypothesis": find_hypothesis(),
        "server": _hash_server(),
        "rtol": case.rtol,
        "atol": case.atol,
    }


@cache
def find_hypothesis() -> str:
    """Return the installed release of Hypothesis.

    Raises:
        UsageError: If it is not installed.
    """
    try:
        return metadata.version("hypothesis")
    except metadata.PackageNotFoundError:
        raise UsageError(
            f"Hypothesis is not installed in {sys.prefix}, expected it there: cases with given= "
            "draw their inputs with it; pip install hypothesis"
        ) from None


@cache
def _hash_server() -> str:
    return hash_code(sorted(PACKAGE.glob("laws/*.py")))


def add_server(request: dict[str, Any]) -> dict[str, Any]:
    """Add the command of the example server, and the folder of conversations with it, to a request.

    They are added to the request of a job with a law when it is sent, and are no part of the cache
    key: they name folders of the host. The server runs in the environment of the harness.

    Args:
        request: The request, which is changed.
    """
    if "law" in request:
        command = [sys.executable, "-s", "-c", _SCRIPT, str(PACKAGE.parent)]
        folder = cache_location() / CONVERSATIONS
        request["law"] |= {"command": command, "conversations": str(folder)}
    return request
