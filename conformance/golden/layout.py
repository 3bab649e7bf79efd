"""Where goldens lie: `<cases>/<family>/golden/<topic>/<case>.toml`, contents beside it."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from conformance.ir.graph import kind_of_artifact

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from conformance.model.case import Case

SUFFIXES: Final = {
    "value": ".safetensors",
    "error": ".txt",
    "ok": ".txt",
    "facts": ".json",
    "jaxpr": ".txt",
    "stablehlo": ".txt",
    "hlo": ".txt",
}
"""File suffix by what a content file holds, in the order of the TOML file."""

ENDING: Final = "ending"
ENDINGS: Final = frozenset({"value", "error", "ok"})
"""Artifacts that say how a job ended: one of them for each release."""

STRUCTURE: Final = "-structure"
"""Behind the name of an IR: its fingerprints, which stand in the TOML file itself."""

AS_OWN: Final = "stablehlo"
"""In the place of a content: a cross-lowered StableHLO does the same work as the cell's own."""

CONTENT_NAME: Final = re.compile(
    rf"({'|'.join(SUFFIXES)})-([0-9a-f]{{8}}|[0-9a-f]{{32}})\.(safetensors|txt|json)"
)
FINGERPRINT: Final = re.compile(r"(\d+):([0-9a-f]{24})")
"""A fingerprint behind the version of its normal form."""

_MAX_STEM = 120
_DIGITS: Final = 32
"""Hex digits of the hash in the name of a content: no two contents share 128 bits."""
_SHORT: Final = 8
"""Hex digits in older names, which are valid for as long as the content is the same."""


def folder_of(cases: Path, case: Case) -> Path:
    """Return the folder of a topic's goldens.

    Args:
        cases: Folder that holds the families.
        case: The case.

    Returns:
        Folder of its TOML file and contents; it need not exist.
    """
    return cases / case.family / "golden" / case.topic


def file_name(case_id: str) -> str:
    """Return the name of a case's TOML file, safe on any file system.

    Args:
        case_id: `family/name` or `family/name[param]`.

    Returns:
        `name.toml` or `name@param.toml`, anything unsafe percent-encoded; names differ when ids
        do, and long ones end in a hash.
    """
    name, bracket, param = case_id.partition("[")
    stem = quote(name.rpartition("/")[2], safe="")
    if bracket:
        stem += "@" + quote(param.removesuffix("]"), safe="=,+")
    if len(stem) > _MAX_STEM:
        stem = f"{stem[:_MAX_STEM]}~{_digest(case_id.encode())}"
    return f"{stem}.toml"


def content_names(artifact: str, content: bytes) -> tuple[str, str]:
    """Return the names that a content file may have: what it holds, hash of the bytes, suffix.

    A StableHLO is the same file for whichever platform it is.

    Returns:
        The name of a new file, with 128 bits of the hash; and the one that earlier versions gave,
        with 32 bits. Another content may have the short one: compare the content before it is used.
    """
    kind = kind_of_artifact(artifact)
    digest = hashlib.sha256(content).hexdigest()
    new, old = (f"{kind}-{digest[:digits]}{SUFFIXES[kind]}" for digits in (_DIGITS, _SHORT))
    return new, old


def track_of(artifact: str) -> str:
    """Return what an artifact is recorded as: `ending`, or its own name.

    The spans of a track are disjoint: a release has one ending, one set of facts, one text of
    each IR, and of StableHLO one for each platform.

    Args:
        artifact: An artifact, or an IR's name with `STRUCTURE` behind it.
    """
    return ENDING if artifact in ENDINGS else artifact


def variant_name(platform: str, labels: Iterable[str] = ()) -> str:
    """Return the key of a cell variant's table.

    Args:
        platform: The cell's platform.
        labels: What sets the cell apart from a plain one, e.g. `x64` or `config=a`.

    Returns:
        `cpu`, or `cpu x64` for a cell that is not plain.
    """
    return " ".join([platform, *sorted(labels)])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_SHORT]
