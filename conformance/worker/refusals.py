"""What XLA logs when it refuses; apart from what needs jax, for the orchestrator reads it too."""

from __future__ import annotations

import re

_FLAGS = re.compile(r"Unknown flags? in XLA_FLAGS: .*|Couldn't interpret value .* for flag .*")


def refused_flags(said: str) -> str:
    """Return what XLA says of flags that it does not know or cannot read, empty when nothing.

    Args:
        said: Standard error of a process.
    """
    match = _FLAGS.search(said)
    return " ".join(match.group().rstrip(". ").split()) if match else ""
