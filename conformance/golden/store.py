"""Reading goldens: the entry that applies to a case, cell variant and release."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.files import MALFORMED, describe_os_error
from conformance.golden.contents import Content, decode, decode_facts
from conformance.golden.document import DOCUMENT_REMEDY, GoldenDocument, loads
from conformance.golden.errors import GoldenError
from conformance.golden.layout import (
    AS_OWN,
    ENDING,
    STRUCTURE,
    content_names,
    file_name,
    folder_of,
)
from conformance.golden.spans import lookup
from conformance.ir.graph import CROSS_LOWERED, IRS, IrSyntaxError
from conformance.ir.normal.forms import VERSION
from conformance.ir.normal.text import head_of
from conformance.model.codec import CorruptValueError
from conformance.model.golden import GoldenEntry, GoldenIr

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from conformance.golden.document import Tracks
    from conformance.model.case import Case

T = TypeVar("T")
_IRS = (*IRS, *CROSS_LOWERED)

_REMEDY = "restore it from version control or regenerate it with conformance accept"


class GoldenStore:
    """The goldens below a folder of cases, read once and kept; safe to share between threads."""

    def __init__(self, case_folder: Path) -> None:
        self.root = case_folder
        self._lock = threading.Lock()
        self._documents: dict[Path, GoldenDocument | None] = {}
        self._contents: dict[Path, Any] = {}

    def lookup(self, case: Case, platform_variant: str, release: str) -> GoldenEntry | None:
        """Return the golden that applies to a case in a cell.

        Args:
            case: The case.
            platform_variant: Key of the cell variant, see `layout.variant_name`.
            release: The cell's jax release.

        Returns:
            The entry of the span the release lies in, else of the nearest older one (`exact` is
            then False); None when nothing is recorded. An entry of another format or normal
            form is tainted and empty.

        Raises:
            GoldenError: If a file is corrupt, missing or does not hash to its name.
        """
        document = self.document(case)
        if document is None:
            return None
        if document.tainted:
            return GoldenEntry(span="", exact=False, tainted=True)
        tracks = document.variants.get(platform_variant, {})
        found = lookup(tracks.get(ENDING, ()), release)
        if found is None:
            return None
        folder = folder_of(self.root, case)
        content = self.content(folder / found.span.content)
        if content.tainted:
            return GoldenEntry(span=str(found.span), exact=found.exact, tainted=True)
        return GoldenEntry(
            span=str(found.span),
            exact=found.exact,
            value=content.value,
            error=content.error,
            facts=self._facts(folder, tracks, release) if content.error is None else {},
            ir={
                ir: golden
                for ir in _IRS
                if ir in tracks and (golden := self._ir(folder, tracks, ir, release))
            },
        )

    def _facts(self, folder: Path, tracks: Tracks, release: str) -> Mapping[str, Any]:
        found = lookup(tracks.get("facts", ()), release)
        return self.facts(folder / found.span.content) if found is not None else {}

    def _ir(self, folder: Path, tracks: Tracks, ir: str, release: str) -> GoldenIr | None:
        found = lookup(tracks.get(ir, ()), release)
        if found is not None and found.span.content == AS_OWN:
            found = lookup(tracks.get(AS_OWN, ()), release)
        if found is None:
            return None
        text = self.text(folder / found.span.content)
        head = head_of(text)
        if head.version != VERSION:
            return None
        structure = lookup(tracks.get(f"{ir}{STRUCTURE}", ()), release)
        version, _, hashed = structure.span.content.partition(":") if structure else ("", "", "")
        return GoldenIr(
            neutral=head.fingerprint,
            structure=hashed if version == str(VERSION) else "",
            text=text,
        )

    def document(self, case: Case) -> GoldenDocument | None:
        """Return the spans recorded for a case, None when there is no file.

        Args:
            case: The case.

        Returns:
            Its document.

        Raises:
            GoldenError: If the file is corrupt or of another case.
        """
        file = folder_of(self.root, case) / file_name(case.id)
        with self._lock:
            if file not in self._documents:
                self._documents[file] = _read_document(file, case.id)
            return self._documents[file]

    def content(self, file: Path) -> Content:
        """Return the ending in a file named after its hash.

        Args:
            file: The file.

        Returns:
            Its content.

        Raises:
            GoldenError: If it is missing, edited or corrupt.
        """
        return self._read(file, lambda data: decode(file.name.partition("-")[0], data))

    def facts(self, file: Path) -> Mapping[str, Any]:
        """Return the facts in a file named after its hash, none if by another normal form.

        Raises:
            GoldenError: If it is missing, edited or corrupt.
        """
        return self._read(file, decode_facts)

    def text(self, file: Path) -> str:
        """Return the text of an IR in a file named after its hash.

        Raises:
            GoldenError: If it is missing, edited or corrupt.
        """
        return self._read(file, _text_of_ir)

    def _read(self, file: Path, decoder: Callable[[bytes], T]) -> T:
        with self._lock:
            if file not in self._contents:
                self._contents[file] = _read_content(file, decoder)
            return self._contents[file]  # type: ignore[no-any-return] # what the decoder made


def _read_document(file: Path, case_id: str) -> GoldenDocument | None:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        found = f"cannot be read: {describe_os_error(error)}"
        raise GoldenError.of(file, found, "a golden file", DOCUMENT_REMEDY) from None
    except UnicodeDecodeError as error:
        found = f"no UTF-8 ({error})"
        raise GoldenError.of(file, found, "a golden file", DOCUMENT_REMEDY) from None
    document = loads(text, file)
    if document.case != case_id and not document.tainted:
        raise GoldenError.of(file, f"case {document.case!r}", f"case {case_id!r}", DOCUMENT_REMEDY)
    return document


def _text_of_ir(data: bytes) -> str:
    text = data.decode()
    head_of(text)
    return text


def _read_content(file: Path, decoder: Callable[[bytes], T]) -> T:
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise GoldenError.of(file, "is missing", "the content a golden names", _REMEDY) from None
    except OSError as error:
        said = f"cannot be read: {describe_os_error(error)}"
        raise GoldenError.of(file, said, "the content a golden names", _REMEDY) from None
    artifact = file.name.partition("-")[0]
    names = content_names(artifact, data)
    if file.name not in names:
        found = f"content hashes to {names[0]}"
        raise GoldenError.of(
            file, found, "content as its name says; goldens are not edited by hand", _REMEDY
        )
    try:
        return decoder(data)
    except (*MALFORMED, TypeError, CorruptValueError, IrSyntaxError) as error:
        raise GoldenError.of(file, str(error), f"a recorded {artifact}", _REMEDY) from None
