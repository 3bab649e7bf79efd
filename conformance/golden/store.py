"""Reading goldens: the entry that applies to a case, cell variant and release."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from conformance.files import said_by
from conformance.golden.contents import Content, decode
from conformance.golden.document import Document, loads
from conformance.golden.errors import GoldenError
from conformance.golden.layout import content_name, file_name, folder_of
from conformance.golden.spans import lookup
from conformance.model.codec import CorruptValueError
from conformance.model.golden import GoldenEntry

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.model.case import Case

_DOCUMENT_REMEDY = "restore it from version control, or delete it and accept again"
_REMEDY = "restore it from version control or regenerate it with conformance accept"


class GoldenStore:
    """The goldens below a folder of cases, read once and kept; safe to share between threads."""

    def __init__(self, case_folder: Path) -> None:
        self.root = case_folder
        self._lock = threading.Lock()
        self._documents: dict[Path, Document | None] = {}
        self._contents: dict[Path, Content] = {}

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
        found = lookup(document.variants.get(platform_variant, ()), release)
        if found is None:
            return None
        content = self.content(folder_of(self.root, case) / found.span.content)
        if content.tainted:
            return GoldenEntry(span=str(found.span), exact=found.exact, tainted=True)
        return GoldenEntry(
            span=str(found.span),
            exact=found.exact,
            value=content.value,
            error=content.error,
            facts=content.facts,
        )

    def document(self, case: Case) -> Document | None:
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
        """Return the content of a file named after its hash.

        Args:
            file: The file.

        Returns:
            Its content.

        Raises:
            GoldenError: If it is missing, edited or corrupt.
        """
        with self._lock:
            if file not in self._contents:
                self._contents[file] = _read_content(file)
            return self._contents[file]


def _read_document(file: Path, case_id: str) -> Document | None:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise GoldenError.of(
            file, f"cannot be read: {said_by(error)}", "a golden file", _DOCUMENT_REMEDY
        ) from None
    except UnicodeDecodeError as error:
        raise GoldenError.of(
            file, f"no UTF-8 ({error})", "a golden file", _DOCUMENT_REMEDY
        ) from None
    document = loads(text, file)
    if document.case != case_id and not document.tainted:
        raise GoldenError.of(file, f"case {document.case!r}", f"case {case_id!r}", _DOCUMENT_REMEDY)
    return document


def _read_content(file: Path) -> Content:
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise GoldenError.of(file, "is missing", "the content a golden names", _REMEDY) from None
    except OSError as error:
        said = f"cannot be read: {said_by(error)}"
        raise GoldenError.of(file, said, "the content a golden names", _REMEDY) from None
    artifact = file.name.partition("-")[0]
    if content_name(artifact, data) != file.name:
        found = f"content hashes to {content_name(artifact, data)}"
        raise GoldenError.of(
            file, found, "content as its name says; goldens are not edited by hand", _REMEDY
        )
    try:
        return decode(artifact, data)
    except (ValueError, CorruptValueError) as error:
        raise GoldenError.of(file, str(error), f"a recorded {artifact}", _REMEDY) from None
