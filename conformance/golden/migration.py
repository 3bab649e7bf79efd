"""Conversion of goldens of format 1, whose contents were named after their hashes.

Format 1 had `<topic>/<case>.toml`, and in the folder of the topic contents such as
`value-<hash>.safetensors`, shared between cases. The spans and everything that they record stay
the same.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import tomllib

from conformance.files import describe_os_error
from conformance.golden.cleanup import remove_files
from conformance.golden.contents import Content, encode
from conformance.golden.document import GoldenDocument, GoldenError, dumps
from conformance.golden.layout import (
    AS_OWN,
    DOCUMENT,
    EXACT,
    OK,
    assign_file_names,
    compute_content_id,
    get_content_file,
    get_golden_folder,
    get_track,
)
from conformance.golden.spans import Span, parse_span, parse_version
from conformance.golden.writing import write_goldens
from conformance.ir.graph import kind_of_artifact
from conformance.model.value import CorruptValueError, decode_value

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from conformance.model.case import Case

_FORMAT: Final = 1
_EXACT: Final = "-structure"
"""Suffix of an artifact with fingerprints of the exact form in format 1."""
_NAME: Final = re.compile(r"([a-z]+)-([0-9a-f]{8}|[0-9a-f]{32})\.(?:safetensors|txt|json)")
_REMEDY: Final = "restore it from version control"


@dataclass(slots=True)
class _Conversion:
    """The conversion of one document, with the bytes of its contents by id."""

    file: Path
    data: dict[str, bytes] = field(default_factory=dict)
    old_files: set[Path] = field(default_factory=set)

    def convert_span(self, artifact: str, key: str, name: str) -> Span[str]:
        if artifact.endswith(EXACT) or name == AS_OWN:
            return parse_span(key, name)
        matched = _NAME.fullmatch(name)
        if matched is None or matched[1] != kind_of_artifact(artifact):
            raise GoldenError.of(self.file, f"{key!r} names {name!r}", "a content", _REMEDY)
        return parse_span(
            key, self._convert_content(artifact, self.file.with_name(name), matched[2])
        )

    def _convert_content(self, artifact: str, file: Path, digest: str) -> str:
        self.old_files.add(file)
        if artifact == OK:
            return OK
        try:
            data = file.read_bytes()
        except OSError as error:
            found = f"cannot be read: {describe_os_error(error)}"
            raise GoldenError.of(file, found, "a content that a golden names", _REMEDY) from None
        # Names of format 1 have 8 or 32 digits of the hash.
        if not (actual := hashlib.sha256(data).hexdigest()).startswith(digest):
            raise GoldenError.of(file, f"content hashes to {actual[:32]}", digest, _REMEDY)
        large = False
        if artifact == "value":
            try:
                # Only values have another encoding; errors, facts and IRs keep their bytes.
                data, large = encode(Content(value=decode_value(data)))
            except CorruptValueError as error:
                raise GoldenError.of(file, str(error), "a value", _REMEDY) from None
        content = compute_content_id(artifact, data, large=large)
        self.data[content] = data
        return content


def find_old_documents(cases: Iterable[Case]) -> dict[str, Path]:
    """Return the documents of format 1 of some cases, by case id."""
    found = {case.id: _get_old_document(case) for case in cases}
    return {case: document for case, document in found.items() if document.exists()}


def _get_old_document(case: Case) -> Path:
    folder = get_golden_folder(case.families, case)
    return folder.with_name(f"{folder.name}.toml")


def migrate_goldens(cases: Iterable[Case]) -> tuple[int, tuple[Path, ...]]:
    """Convert the goldens of format 1 of some cases, and remove the files of that format.

    Interrupted at any moment, it can be repeated: the old files are removed after all cases are
    converted.

    Args:
        cases: The cases, with the folders that their goldens are in.

    Returns:
        The number of cases converted, and the files removed.

    Raises:
        GoldenError: If a document or a content is malformed. Nothing is written or removed then.
        InfrastructureError: If the disk refuses.
    """
    contents: dict[Path, bytes] = {}
    documents: dict[Path, str] = {}
    old_files: set[Path] = set()
    for case in cases:
        folder, old = get_golden_folder(case.families, case), _get_old_document(case)
        if not old.exists():
            continue
        conversion = _Conversion(old)
        document = _convert_document(conversion, case.id)
        old_files |= {old, *conversion.old_files}
        if (folder / DOCUMENT).exists():  # converted by a run that was interrupted
            continue
        documents[folder / DOCUMENT] = dumps(document)
        for content, name in document.files.items():
            contents[get_content_file(folder, name)] = conversion.data[content]
    write_goldens(contents, documents)
    # Contents of format 1 are shared between the cases of a topic, some of which may not be
    # selected.
    still_named = _find_contents_of_other_cases(old_files)
    removed = tuple(sorted(old_files - still_named))
    remove_files(removed)
    return len(documents), removed


def _find_contents_of_other_cases(old_files: set[Path]) -> set[Path]:
    """Return the contents that documents of format 1 of other cases name."""
    topics = {file.parent for file in old_files}
    others = {file for topic in topics for file in topic.glob("*.toml")} - old_files
    return {
        file.with_name(name)
        for file in others
        # By text and not by TOML: also a broken document keeps the files that it names.
        for name in _NAME_IN_TEXT.findall(file.read_text(encoding="utf-8", errors="replace"))
    }


_NAME_IN_TEXT: Final = re.compile(r'"([a-z]+-[0-9a-f]{8,32}\.(?:safetensors|txt|json))"')


def _convert_document(conversion: _Conversion, case_id: str) -> GoldenDocument:
    file = conversion.file
    try:
        tables: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        found = (tables.pop("format", None), tables.pop("case", None))
    except (ValueError, RecursionError) as error:
        raise GoldenError.of(file, f"no TOML ({error})", "a golden file", _REMEDY) from None
    if found != (_FORMAT, case_id):
        got, expected = (f"format {f} of case {c!r}" for f, c in (found, (_FORMAT, case_id)))
        raise GoldenError.of(file, got, expected, _REMEDY)
    variants: dict[str, dict[str, tuple[Span[str], ...]]] = {}
    try:
        for variant, table in tables.items():
            tracks: dict[str, list[Span[str]]] = {}
            for old_artifact, spans in table.items():
                artifact = re.sub(f"{_EXACT}$", EXACT, old_artifact)
                tracks.setdefault(get_track(artifact), []).extend(
                    conversion.convert_span(artifact, key, name) for key, name in spans.items()
                )
            variants[variant] = {
                track: tuple(sorted(spans, key=lambda span: parse_version(span.first)))
                for track, spans in tracks.items()
            }
    except (ValueError, AttributeError, TypeError) as error:
        raise GoldenError.of(file, str(error), "tables of spans", _REMEDY) from None
    files = assign_file_names(variants, {})
    return GoldenDocument(case=case_id, variants=variants, files=files)
