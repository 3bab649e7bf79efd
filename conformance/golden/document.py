"""One case's TOML file: for each cell variant, which span of releases has which content file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import tomli_w
import tomllib

from conformance.golden.errors import GoldenError
from conformance.golden.layout import (
    AS_OWN,
    CONTENT_NAME,
    FINGERPRINT,
    STRUCTURE,
    SUFFIXES,
    track_of,
)
from conformance.golden.spans import Span, parse, version
from conformance.ir.graph import CROSS_LOWERED, IRS, kind_of_artifact

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1
"""Version of the layout; a file of another version is tainted."""

DOCUMENT_REMEDY = "restore it from version control, or delete it and accept again"

Spans = tuple[Span[str], ...]
Tracks = Mapping[str, Spans]
"""Spans by track, see `layout.track_of`."""

_ARTIFACTS = (*SUFFIXES, *CROSS_LOWERED, *(f"{ir}{STRUCTURE}" for ir in IRS))


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenDocument:
    """The goldens of one case.

    Attributes:
        case: Case id.
        variants: By cell variant and track, spans of content file names or of fingerprints,
            disjoint and in order.
        tainted: Whether the file is of another format, and its spans unknown.
    """

    case: str
    variants: Mapping[str, Tracks] = field(default_factory=dict)
    tainted: bool = False

    def contents(self) -> set[str]:
        """Return the content files that the document names."""
        return {
            span.content
            for tracks in self.variants.values()
            for track, spans in tracks.items()
            for span in spans
            if not track.endswith(STRUCTURE) and span.content != AS_OWN
        }


def dumps(document: GoldenDocument) -> str:
    """Return a document as TOML, variants and spans in order.

    Args:
        document: The document.

    Returns:
        The file's text; spans are grouped by artifact, oldest first.
    """
    tables: dict[str, Any] = {"format": FORMAT, "case": document.case}
    for variant, tracks in sorted(document.variants.items()):
        tables[variant] = {
            artifact: {str(span): span.content for span in mine}
            for artifact in _ARTIFACTS
            if (mine := [s for s in tracks.get(track_of(artifact), ()) if _is_of(s, artifact)])
        }
    return tomli_w.dumps(tables)


def _is_of(span: Span[str], artifact: str) -> bool:
    if artifact in CROSS_LOWERED or artifact.endswith(STRUCTURE):
        return True
    return span.content.startswith(f"{artifact}-")


def loads(text: str, file: Path) -> GoldenDocument:
    """Return the document a TOML text holds.

    Args:
        text: Content of the file.
        file: Where it comes from, for messages.

    Returns:
        The document; tainted when the text is of another format.

    Raises:
        GoldenError: If the text is empty, no TOML or without a format, a span or a content name
            is malformed, or spans overlap.
    """
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise GoldenError.of(file, f"no TOML ({error})", "a golden file", DOCUMENT_REMEDY) from None
    case = str(tables.pop("case", ""))
    format_ = tables.pop("format", None)
    if not isinstance(format_, int):
        found = "is empty" if not text.strip() else f"has format {format_!r}"
        raise GoldenError.of(file, found, "a golden file", DOCUMENT_REMEDY)
    if format_ != FORMAT:
        return GoldenDocument(case=case, tainted=True)
    if not tables:
        raise GoldenError.of(file, "holds no golden", "one or more", DOCUMENT_REMEDY)
    variants = {name: _tracks(table, f"[{name}]", file) for name, table in tables.items()}
    return GoldenDocument(case=case, variants=variants)


def _tracks(table: object, where: str, file: Path) -> Tracks:
    if not isinstance(table, dict):
        raise GoldenError.of(file, f"{where} is {table!r}", "a table of artifacts", DOCUMENT_REMEDY)
    tracks: dict[str, list[Span[str]]] = {}
    for artifact, contents in table.items():
        if artifact not in _ARTIFACTS or not isinstance(contents, dict):
            wanted = f"a table {', '.join(_ARTIFACTS)}"
            raise GoldenError.of(file, f"{where} has {artifact!r}", wanted, DOCUMENT_REMEDY)
        spans = tracks.setdefault(track_of(artifact), [])
        spans += [_span(key, name, artifact, file) for key, name in contents.items()]
    return {track: _disjoint(spans, where, file) for track, spans in tracks.items()}


def _disjoint(spans: list[Span[str]], where: str, file: Path) -> Spans:
    spans.sort(key=lambda span: version(span.first))
    for one, other in pairwise(spans):
        if other.first in one:
            raise GoldenError.of(
                file, f"{where} spans {one} and {other} overlap", "disjoint spans", DOCUMENT_REMEDY
            )
    return tuple(spans)


def _span(key: str, name: object, artifact: str, file: Path) -> Span[str]:
    if not isinstance(name, str) or not _names_content(name, artifact):
        raise GoldenError.of(file, f"{key!r} names {name!r}", _wanted(artifact), DOCUMENT_REMEDY)
    try:
        return parse(key, name)
    except ValueError as error:
        raise GoldenError.of(
            file, str(error), "first..last, PEP 440 versions", DOCUMENT_REMEDY
        ) from None


def _names_content(name: str, artifact: str) -> bool:
    if artifact.endswith(STRUCTURE):
        return FINGERPRINT.fullmatch(name) is not None
    if artifact in CROSS_LOWERED and name == AS_OWN:
        return True
    matched = CONTENT_NAME.fullmatch(name)
    return matched is not None and matched[1] == kind_of_artifact(artifact)


def _wanted(artifact: str) -> str:
    if artifact.endswith(STRUCTURE):
        return "a version and 24 hex digits"
    kind = kind_of_artifact(artifact)
    file = f"{kind}-<32 hex digits>{SUFFIXES[kind]}"
    return f"{file}, or {AS_OWN}" if artifact in CROSS_LOWERED else file
