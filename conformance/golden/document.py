"""The document of a case's goldens: a content for each cell variant and span of releases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import tomli_w
import tomllib

from conformance.errors import ConformanceError
from conformance.golden.layout import (
    AS_OWN,
    EXACT,
    FINGERPRINT,
    LARGE_FOLDER,
    OK,
    SUFFIXES,
    get_track,
    has_file,
    is_file_name,
    is_large,
)
from conformance.golden.spans import Span, parse_span, parse_version
from conformance.ir.graph import CROSS_LOWERED, IRS, kind_of_artifact

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = 2
"""Version of the layout; a document of another version is tainted."""

DOCUMENT_REMEDY: Final = "restore it from version control, or delete it and accept again"

Spans = tuple[Span[str], ...]
Tracks = Mapping[str, Spans]
"""Spans of content ids by track, see `layout.get_track`."""

_ARTIFACTS: Final = (*SUFFIXES, *CROSS_LOWERED, *(f"{ir}{EXACT}" for ir in IRS))
_CONTENTS: Final = "contents"
_DIGEST: Final = re.compile("[0-9a-f]{32}")
_LARGE_PREFIX: Final = f"../{LARGE_FOLDER}/"


class GoldenError(ConformanceError):
    """A golden file that cannot be trusted: corrupt, missing or edited by hand."""

    @classmethod
    def of(cls, file: Path, found: str, expected: str, remedy: str) -> GoldenError:
        """Return an error with the file, its content, the expectation and the remedy.

        Args:
            file: The faulty file.
            found: Description of its content.
            expected: Description of the expected content.
            remedy: Instruction that repairs it.

        Returns:
            The error, to be raised.
        """
        return cls(f"{file}: {found}, expected {expected}; {remedy}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenDocument:
    """The goldens of one case.

    Attributes:
        case: Case id.
        variants: By cell variant and track, spans of content ids or of fingerprints, disjoint and
            in order.
        files: File of each content by its id, relative to the folder of the case.
        tainted: True for a document of another format; its spans are unknown.
    """

    case: str
    variants: Mapping[str, Tracks] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    tainted: bool = False

    def contents(self) -> set[str]:
        """Return the ids of the contents that have a file."""
        return {
            span.content
            for tracks in self.variants.values()
            for track, spans in tracks.items()
            for span in spans
            if has_file(track, span.content)
        }


def dumps(document: GoldenDocument) -> str:
    """Render a document as TOML, variants and spans in order.

    Args:
        document: The goldens of a case, with a file for each content.

    Returns:
        The text; spans are grouped by artifact, oldest first.
    """
    tables: dict[str, Any] = {"format": FORMAT, "case": document.case}
    for variant, tracks in sorted(document.variants.items()):
        tables[variant] = {
            artifact: {str(span): document.files.get(span.content, span.content) for span in mine}
            for artifact in _ARTIFACTS
            if (mine := [s for s in tracks.get(get_track(artifact), ()) if _is_of(s, artifact)])
        }
    # Last, so that a reviewer first reads which releases change. The digests let an interrupted
    # write be completed, and an edit by hand be noticed.
    tables[_CONTENTS] = {
        name: content.partition("-")[2]
        for content, name in sorted(document.files.items(), key=lambda item: item[1])
        if not is_large(content)
    }
    return tomli_w.dumps(tables)


def _is_of(span: Span[str], artifact: str) -> bool:
    if artifact in CROSS_LOWERED or artifact.endswith(EXACT):
        return True
    return span.content.partition("-")[0] == artifact


def loads(text: str, file: Path) -> GoldenDocument:
    """Parse a document.

    Args:
        text: Content of the file.
        file: Path of the document, for messages.

    Returns:
        The document; tainted when the text has another format.

    Raises:
        GoldenError: If the text is empty, no TOML or without a format, a span or a file name is
            malformed, or spans overlap.
    """
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise GoldenError.of(file, f"no TOML ({error})", "a golden file", DOCUMENT_REMEDY) from None
    case = str(tables.pop("case", ""))
    # Before everything else: another format may have other tables, which are no error.
    format_ = tables.pop("format", None)
    if not isinstance(format_, int):
        found = "is empty" if not text.strip() else f"has format {format_!r}"
        raise GoldenError.of(file, found, "a golden file", DOCUMENT_REMEDY)
    if format_ != FORMAT:
        return GoldenDocument(case=case, tainted=True)
    contents = _parse_contents(tables.pop(_CONTENTS, {}), file)
    # An emptied file must be an error: a case without goldens would count as new, and conform.
    if not tables:
        raise GoldenError.of(file, "holds no golden", "at least one", DOCUMENT_REMEDY)
    reader = _TableReader(file, contents)
    variants = {name: reader.read_tracks(table, f"[{name}]") for name, table in tables.items()}
    return GoldenDocument(case=case, variants=variants, files=reader.files)


def _parse_contents(table: object, file: Path) -> dict[str, str]:
    """Return the content ids by file name."""
    found = {}
    for name, digest in table.items() if isinstance(table, dict) else [("", table)]:
        if not is_file_name(name) or not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            got = f"[{_CONTENTS}] has {name!r} = {digest!r}"
            raise GoldenError.of(file, got, "a file name and 32 hex digits", DOCUMENT_REMEDY)
        # A content id has the kind of its artifact; the StableHLO of all platforms is of one kind.
        found[name] = f"{kind_of_artifact(name.partition('.')[0].rstrip('~'))}-{digest}"
    return found


class _TableReader:
    """Parser of the tables of a document, which collects the files that they name."""

    def __init__(self, file: Path, contents: Mapping[str, str]) -> None:
        self._file = file
        self._contents = contents
        self.files: dict[str, str] = {}

    def read_tracks(self, table: object, where: str) -> Tracks:
        if not isinstance(table, dict):
            raise self._make_error(f"{where} is {table!r}", "a table of artifacts")
        tracks: dict[str, list[Span[str]]] = {}
        for artifact, contents in table.items():
            if artifact not in _ARTIFACTS or not isinstance(contents, dict):
                raise self._make_error(
                    f"{where} has {artifact!r}", f"a table {', '.join(_ARTIFACTS)}"
                )
            spans = tracks.setdefault(get_track(artifact), [])
            spans += [self._read_span(key, name, artifact) for key, name in contents.items()]
        return {track: self._check_disjoint(spans, where) for track, spans in tracks.items()}

    def _check_disjoint(self, spans: list[Span[str]], where: str) -> Spans:
        # Keys of a TOML table may be in any order after a merge by hand.
        spans.sort(key=lambda span: parse_version(span.first))
        for older, newer in pairwise(spans):
            if newer.first in older:
                raise self._make_error(
                    f"{where} spans {older} and {newer} overlap", "disjoint spans"
                )
        return tuple(spans)

    def _read_span(self, key: str, name: object, artifact: str) -> Span[str]:
        content = self._find_content(name, artifact) if isinstance(name, str) else None
        if content is None:
            raise self._make_error(f"{key!r} names {name!r}", _describe_expected(artifact))
        if content != name:
            self.files[content] = str(name)
        try:
            return parse_span(key, content)
        except ValueError as error:
            raise self._make_error(str(error), "first..last, PEP 440 versions") from None

    def _find_content(self, name: str, artifact: str) -> str | None:
        """Return the content id that a name in a table refers to, None if it is invalid."""
        if artifact.endswith(EXACT):
            return name if FINGERPRINT.fullmatch(name) else None
        if (artifact == OK and name == OK) or (artifact in CROSS_LOWERED and name == AS_OWN):
            return name
        # Only this path may leave the folder: documents of a pull request are untrusted input.
        if artifact == "value" and name.startswith(_LARGE_PREFIX):
            content = name.removeprefix(_LARGE_PREFIX)
            return content if is_large(content) else None
        # A name without a digest in [contents] has no identity, and is refused by its empty kind.
        content = self._contents.get(name, "")
        return content if content.partition("-")[0] == kind_of_artifact(artifact) else None

    def _make_error(self, found: str, expected: str) -> GoldenError:
        return GoldenError.of(self._file, found, expected, DOCUMENT_REMEDY)


def _describe_expected(artifact: str) -> str:
    if artifact.endswith(EXACT):
        return "a version and 24 hex digits"
    if artifact == OK:
        return OK
    kind = kind_of_artifact(artifact)
    file = f"a file of [{_CONTENTS}] such as {kind}{SUFFIXES[kind]}"
    return f"{file}, or {AS_OWN}" if artifact in CROSS_LOWERED else file
