"""One case's TOML file: for each cell variant, which span of releases has which content file."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import tomli_w
import tomllib

from conformance.golden.errors import GoldenError
from conformance.golden.layout import CONTENT_NAME, SUFFIXES
from conformance.golden.spans import Span, parse, version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT = 1
"""Version of the layout; a file of another version is tainted."""

_REMEDY = "restore it from version control, or delete it and accept again"

Spans = tuple[Span[str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The goldens of one case.

    Attributes:
        case: Case id.
        variants: Spans of content file names by cell variant, disjoint and in order.
        tainted: Whether the file is of another format, and its spans unknown.
    """

    case: str
    variants: Mapping[str, Spans] = field(default_factory=dict)
    tainted: bool = False


def dumps(document: Document) -> str:
    """Return a document as TOML, variants and spans in order.

    Args:
        document: The document.

    Returns:
        The file's text; spans are grouped by artifact, oldest first.
    """
    tables: dict[str, Any] = {"format": FORMAT, "case": document.case}
    for variant, spans in sorted(document.variants.items()):
        tables[variant] = {
            artifact: {str(span): span.content for span in mine}
            for artifact in SUFFIXES
            if (mine := [span for span in spans if span.content.startswith(f"{artifact}-")])
        }
    return tomli_w.dumps(tables)


def loads(text: str, file: Path) -> Document:
    """Return the document a TOML text holds.

    Args:
        text: Content of the file.
        file: Where it comes from, for messages.

    Returns:
        The document; tainted when the text is of another format.

    Raises:
        GoldenError: If the text is no TOML, a span or a content name is malformed, or spans
            overlap.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GoldenError.of(file, f"no TOML ({error})", "a golden file", _REMEDY) from None
    case = str(tables.pop("case", ""))
    format_ = tables.pop("format", None)
    if format_ != FORMAT:
        return Document(case=case, tainted=True)
    if not tables:
        raise GoldenError.of(file, "holds no golden", "one or more", _REMEDY)
    variants = {name: _spans(table, f"[{name}]", file) for name, table in tables.items()}
    return Document(case=case, variants=variants)


def _spans(table: object, where: str, file: Path) -> Spans:
    if not isinstance(table, dict):
        raise GoldenError.of(file, f"{where} is {table!r}", "a table of artifacts", _REMEDY)
    spans = []
    for artifact, contents in table.items():
        if artifact not in SUFFIXES or not isinstance(contents, dict):
            wanted = f"a table {', '.join(SUFFIXES)}"
            raise GoldenError.of(file, f"{where} has {artifact!r}", wanted, _REMEDY)
        spans += [_span(key, name, artifact, file) for key, name in contents.items()]
    spans.sort(key=lambda span: version(span.first))
    for one, other in pairwise(spans):
        if other.first in one:
            raise GoldenError.of(
                file, f"{where} spans {one} and {other} overlap", "disjoint spans", _REMEDY
            )
    return tuple(spans)


def _span(key: str, name: object, artifact: str, file: Path) -> Span[str]:
    matched = CONTENT_NAME.fullmatch(name) if isinstance(name, str) else None
    if matched is None or matched[1] != artifact:
        wanted = f"{artifact}-<8 hex digits>{SUFFIXES[artifact]}"
        raise GoldenError.of(file, f"{key!r} names {name!r}", wanted, _REMEDY)
    try:
        return parse(key, matched[0])
    except ValueError as error:
        raise GoldenError.of(file, str(error), "first..last, PEP 440 versions", _REMEDY) from None
