"""Reading goldens: the entry that applies to a case, cell variant and release."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.files import MALFORMED, describe_os_error
from conformance.golden.contents import Content, decode, decode_facts
from conformance.golden.document import DOCUMENT_REMEDY, GoldenDocument, GoldenError, loads
from conformance.golden.layout import (
    AS_OWN,
    DOCUMENT,
    ENDING,
    EXACT,
    OK,
    PENDING,
    compute_content_id,
    get_content_file,
    get_golden_folder,
    is_large,
)
from conformance.golden.spans import find_span
from conformance.ir.graph import CROSS_LOWERED, IRS, IrSyntaxError
from conformance.ir.normal.text import VERSION, read_head
from conformance.model.golden import GoldenEntry, GoldenIr
from conformance.model.value import CorruptValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from conformance.golden.document import Spans, Tracks
    from conformance.model.case import Case

T = TypeVar("T")
_IRS = (*IRS, *CROSS_LOWERED)

_REMEDY = "restore it from version control or regenerate it with conformance accept"


class GoldenStore:
    """The goldens below a folder of cases, each read once; safe to share between threads.

    Attributes:
        root: The folder of cases.
    """

    def __init__(self, case_folder: Path) -> None:
        self.root = case_folder
        # Threads that judge cells share one store.
        self._lock = threading.Lock()
        # Keyed by topic and id of the case: building the path of its folder takes longer than the
        # lookup.
        self._documents: dict[tuple[str, str], GoldenDocument | None] = {}
        self._contents: dict[tuple[str, str, str], Any] = {}

    def lookup(self, case: Case, platform_variant: str, release: str) -> GoldenEntry | None:
        """Return the golden that applies to a case in a cell.

        Args:
            case: Any case.
            platform_variant: Key of the cell variant, see `layout.make_variant_name`.
            release: The cell's jax release.

        Returns:
            The entry of the span that contains the release, otherwise of the nearest older one
            (`exact` is then False); None when nothing is recorded. An entry of another format or
            normal form is tainted and empty.

        Raises:
            GoldenError: If a file is corrupt, missing or does not have its recorded hash.
        """
        document = self.load_document(case)
        if document is None:
            return None
        if document.tainted:
            return GoldenEntry(span="", exact=False, tainted=True)
        tracks = document.variants.get(platform_variant, {})
        found = find_span(tracks.get(ENDING, ()), release)
        if found is None:
            return None
        ending = self.load_ending(case, found.span.content)
        if ending.tainted:
            return GoldenEntry(span=str(found.span), exact=found.exact, tainted=True)
        return GoldenEntry(
            span=str(found.span),
            exact=found.exact,
            value=ending.value,
            error=ending.error,
            # Facts of an older span say nothing about a job that raises now.
            facts=self._lookup_facts(case, tracks, release) if ending.error is None else {},
            ir={
                ir: golden
                for ir in _IRS
                if ir in tracks and (golden := self._lookup_ir(case, tracks, ir, release))
            },
        )

    def _lookup_facts(self, case: Case, tracks: Tracks, release: str) -> Mapping[str, Any]:
        found = find_span(tracks.get("facts", ()), release)
        return self.load_facts(case, found.span.content) if found is not None else {}

    def _lookup_ir(self, case: Case, tracks: Tracks, ir: str, release: str) -> GoldenIr | None:
        found = find_span(tracks.get(ir, ()), release)
        # The reference is resolved at the same release, as both tracks are recorded together.
        if found is not None and found.span.content == AS_OWN:
            found = find_span(tracks.get(AS_OWN, ()), release)
        if found is None:
            return None
        text = self.load_text(case, found.span.content)
        head = read_head(text)
        # Not an error: until the IR is accepted in the new form, its status is unknown.
        if head.version != VERSION:
            return None
        exact = find_span(tracks.get(f"{ir}{EXACT}", ()), release)
        version, _, fingerprint = exact.span.content.partition(":") if exact else ("", "", "")
        return GoldenIr(
            canonical=head.fingerprint,
            exact=fingerprint if version == str(VERSION) else "",
            text=text,
        )

    def load_ending_spans(self, case: Case, platform_variant: str) -> Spans:
        """Return the spans of the value or error of a case, empty if nothing is recorded.

        Args:
            case: Any case.
            platform_variant: Key of the cell variant, see `layout.make_variant_name`.

        Raises:
            GoldenError: If the file is corrupt or of another case.
        """
        document = self.load_document(case)
        if document is None or document.tainted:
            return ()
        return document.variants.get(platform_variant, {}).get(ENDING, ())

    def load_document(self, case: Case) -> GoldenDocument | None:
        """Return the document of a case, None when the case has no goldens.

        Raises:
            GoldenError: If the file is corrupt or of another case.
        """
        key = (case.topic, case.id)
        with self._lock:
            if key not in self._documents:
                folder = get_golden_folder(self.root, case)
                self._documents[key] = _read_document(folder, case.id)
            return self._documents[key]

    def load_ending(self, case: Case, content: str) -> Content:
        """Return a recorded ending of a case.

        Args:
            case: Any case.
            content: Id of a content of its document.

        Raises:
            GoldenError: If the file is missing, edited or corrupt.
        """
        if content == OK:
            return Content()
        return self._load(case, content, partial(decode, content.partition("-")[0]))

    def load_facts(self, case: Case, content: str) -> Mapping[str, Any]:
        """Return recorded facts of a case, none if they are of another normal form.

        Args:
            case: Any case.
            content: Id of a content of its document.

        Raises:
            GoldenError: If the file is missing, edited or corrupt.
        """
        return self._load(case, content, decode_facts)

    def load_text(self, case: Case, content: str) -> str:
        """Return the recorded text of an IR of a case.

        Args:
            case: Any case.
            content: Id of a content of its document.

        Raises:
            GoldenError: If the file is missing, edited or corrupt.
        """
        return self._load(case, content, decode_ir)

    def load_data(self, case: Case, content: str) -> bytes:
        """Return the bytes of a content of a case.

        Args:
            case: Any case.
            content: Id of a content of its document.

        Raises:
            GoldenError: If the file is missing or edited.
        """
        return read_content(self._file(case, content), content)

    def _load(self, case: Case, content: str, decoder: Callable[[bytes], T]) -> T:
        key = (case.topic, case.id, content)
        with self._lock:
            if key in self._contents:
                return self._contents[key]  # type: ignore[no-any-return] # of the same decoder
        # Outside the lock: two threads may decode one content twice, but none waits for a large
        # file.
        decoded = load_content(self._file(case, content), content, decoder)
        with self._lock:
            return self._contents.setdefault(key, decoded)  # type: ignore[no-any-return]

    def _file(self, case: Case, content: str) -> Path:
        document = self.load_document(case)
        names = document.files if document is not None else {}
        return get_content_file(get_golden_folder(self.root, case), names[content])


def load_content(file: Path, content: str, decoder: Callable[[bytes], T]) -> T:
    """Read and decode a content file.

    Args:
        file: Path of the file.
        content: Id of the content.
        decoder: Decodes its bytes.

    Raises:
        GoldenError: If the file is missing, edited or corrupt.
    """
    data = read_content(file, content)
    try:
        return decoder(data)
    except (*MALFORMED, TypeError, CorruptValueError, IrSyntaxError) as error:
        expected = f"a recorded {content.partition('-')[0]}"
        raise GoldenError.of(file, str(error), expected, _REMEDY) from None


def read_content(file: Path, content: str) -> bytes:
    """Read a content file.

    A write that was interrupted after it replaced the document leaves the content in a pending
    file, which is valid.

    Args:
        file: The file.
        content: Id of the content, which has its hash.

    Returns:
        The bytes, which have that hash.

    Raises:
        GoldenError: If neither the file nor its pending file has this content.
    """
    pending = file.with_name(file.name + PENDING)
    found: str | None = None
    # A large value is named after its hash and written first, so it never is pending.
    for path in [file] if is_large(content) else [file, pending]:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            found = f"cannot be read: {describe_os_error(error)}"
            continue
        actual = compute_content_id(content.partition("-")[0], data, large=is_large(content))
        if actual == content:
            return data
        # The first finding counts: that of the file itself, not of its pending file.
        found = found or f"content hashes to {actual.partition('-')[2]}"
    if found is None:
        raise GoldenError.of(file, "is missing", "the content a golden names", _REMEDY)
    expected = f"{content.partition('-')[2]}; goldens are not edited by hand"
    raise GoldenError.of(file, found, expected, _REMEDY)


def _read_document(folder: Path, case_id: str) -> GoldenDocument | None:
    file = folder / DOCUMENT
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        # Until format 2 the document was a file next to the folder.
        if folder.with_name(f"{folder.name}.toml").exists():
            return GoldenDocument(case=case_id, tainted=True)
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


def decode_ir(data: bytes) -> str:
    """Decode the text of an IR in normal form.

    Raises:
        IrSyntaxError: If it does not begin with the head of such a text.
    """
    text = data.decode()
    read_head(text)
    return text
