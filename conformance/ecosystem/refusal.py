"""The requirement that forbids an installation, from the proof of the resolver."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 200
"""Characters of a reason."""
_PREFIX: Final = re.compile(r"^no environment satisfies it: ")
_NO_WHEELS: Final = re.compile(r"(?:all versions of )?(\S+) ha(?:s|ve) no usable wheels")


def shorten_refusal(reason: str, library: str) -> str:
    """Return the premise of a resolver's proof that is about a library.

    Args:
        reason: Premises of the proof, joined by `and`; any other reason stays as it is.
        library: Name of the library.
    """
    text = _PREFIX.sub("", " ".join(reason.split()))
    if (without := _NO_WHEELS.search(text)) is not None:
        # A fact about the index, not about a requirement: cells build nothing from source.
        return f"no wheels of {without[1]}, which it requires"
    for premise in re.split(r",? and (?=\S+? depends on )|, we can conclude.*", text):
        if " depends on " in premise and premise.startswith(library):
            text = premise
            break
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
