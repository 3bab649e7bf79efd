"""The index of parsed case files gives what parsing gives, and is never stale."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.corpus import discovery as parsing
from conformance.corpus.case_index import FOLDER, CaseIndex
from conformance.corpus.discovery import BrokenCasesError, discover, find_case_files

if TYPE_CHECKING:
    from conformance.model.case import Case

CASES = Path(__file__).parents[2] / "cases"
TEXT = '''from conformance.kit import Observed, probe


@probe(devices=2, params={"a": {"n": 1}, "b": {"n": 2}})
def counted(env, n):
    """Count."""
    return Observed(n)
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a case file with two cases."""
    file = tmp_path / "family" / "topic.py"
    file.parent.mkdir()
    file.write_text(TEXT, encoding="utf-8")
    return file


@pytest.fixture
def index(tmp_path: Path) -> CaseIndex:
    """Return an empty index."""
    return CaseIndex(tmp_path / "cache")


def without_parser(monkeypatch: pytest.MonkeyPatch, *files: Path, index: CaseIndex) -> list[Case]:
    """Return the cases of files that must all be in the index."""
    with monkeypatch.context() as patched:
        patched.setattr(parsing, "parse", lambda *_: pytest.fail("parsed again"))
        return list(discover(files, index))


def test_every_case_of_the_project_is_indexed_unchanged(index: CaseIndex) -> None:
    """Parsed, written to the index, and read from it."""
    files = find_case_files(CASES)
    parsed = discover(files)
    assert discover(files, index) == parsed
    assert discover(files, index) == parsed


def test_a_file_that_has_not_changed_is_not_parsed(
    file: Path, index: CaseIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cases come from the index."""
    parsed = list(discover([file], index))
    assert without_parser(monkeypatch, file, index=index) == parsed


@pytest.mark.parametrize("changed", ["file", "helper"])
def test_a_changed_file_is_parsed_again(
    file: Path, index: CaseIndex, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the file, and of a helper beside it: the hash of a case covers both."""
    before = discover([file], index)
    if changed == "file":
        file.write_text(TEXT.replace("devices=2", "devices=4"), encoding="utf-8")
    else:
        file.with_name("_helper.py").write_text("N = 1\n", encoding="utf-8")
    after = discover([file], index)
    assert after == discover([file]) != before
    assert without_parser(monkeypatch, file, index=index) == list(after)


def test_a_case_that_cannot_be_encoded_is_not_indexed(file: Path, index: CaseIndex) -> None:
    """A tuple would be decoded as a list."""
    file.write_text(TEXT.replace('{"n": 1}', '{"n": (1, 2)}'), encoding="utf-8")
    for _ in range(2):
        assert discover([file], index)[0].params == {"n": (1, 2)}


def test_a_broken_file_is_an_error_each_time(file: Path, index: CaseIndex) -> None:
    """It is not in the index, not even its sound cases."""
    file.write_text(TEXT + "\n@probe\ndef bare(env): ...\n", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(BrokenCasesError, match="parentheses"):
            discover([file], index)


@pytest.mark.parametrize("content", [b"", b"\x93\xa1a", b"x" * 200])
def test_a_damaged_entry_is_parsed_again(
    file: Path, index: CaseIndex, tmp_path: Path, content: bytes
) -> None:
    """Whatever it holds."""
    known = discover([file], index)
    (entry,) = (tmp_path / "cache" / FOLDER).iterdir()
    entry.write_bytes(content)
    assert discover([file], index) == known


def test_a_changed_parser_invalidates_the_index(
    file: Path, index: CaseIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry of another version of the harness is not used."""
    discover([file], index)
    monkeypatch.setattr("conformance.corpus.case_index.hash_parser", lambda: "another")
    digest = discover([file])[0].content_hash
    assert index.get(file, digest) is None
