"""Reading goldens: the entry that applies, and every way a file may be broken."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from conformance.golden.accept import apply, plan_accept
from conformance.golden.accept_plan import Candidate
from conformance.golden.document import GoldenError
from conformance.golden.store import GoldenStore
from conformance.model.outcome import Outcome
from tests.builders import case, f32, ok, raised

if TYPE_CHECKING:
    from pathlib import Path

CASE = case()
KNOWN = ["0.4.30", "0.5.3", "0.6.0", "0.8.3", "0.12.0.1"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder of cases: an error up to 0.5.3, a value in 0.6.0, another under x64."""
    seen = [
        Candidate(case=CASE, variant="cpu", release="0.4.30", observation=raised()),
        Candidate(case=CASE, variant="cpu", release="0.5.3", observation=raised()),
        Candidate(case=CASE, variant="cpu", release="0.6.0", observation=ok(f32(1))),
        Candidate(case=CASE, variant="cpu x64", release="0.6.0", observation=ok(f32(2))),
    ]
    apply(plan_accept(GoldenStore(tmp_path), seen, KNOWN), env={})
    return tmp_path


def _toml(root: Path) -> Path:
    return root / "family/golden/topic/name/spans.toml"


def test_the_span_that_holds_the_release_applies(root: Path) -> None:
    """An error of old releases, a value since."""
    store = GoldenStore(root)
    old, new = (store.lookup(CASE, "cpu", release) for release in ("0.4.30", "0.6.0"))
    assert old is not None
    assert old.error is not None
    assert (old.span, old.exact, old.error.type) == ("0.4.30..0.5.3", True, "ValueError")
    assert new is not None
    assert (new.value, new.outcome) == (f32(1), Outcome.OK)


def test_a_newer_release_gets_the_newest_span(root: Path) -> None:
    """Inexactly, as the release was not recorded."""
    entry = GoldenStore(root).lookup(CASE, "cpu", "0.13.0")
    assert entry is not None
    assert (entry.value, entry.exact) == (f32(1), False)


def test_variants_are_apart(root: Path) -> None:
    """x64 has its own table, and other platforms have none."""
    store = GoldenStore(root)
    entry = store.lookup(CASE, "cpu x64", "0.6.0")
    assert entry is not None
    assert entry.value == f32(2)
    assert store.lookup(CASE, "tpu", "0.6.0") is None
    assert store.lookup(CASE, "cpu x64", "0.5.3") is None


def test_a_case_without_file_has_no_golden(root: Path) -> None:
    """Absence is no error."""
    assert GoldenStore(root).lookup(case("family/other"), "cpu", "0.6.0") is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format = 2", "format = ", "no TOML"),
        ('case = "family/name"', 'case = "family/other"', "case 'family/other', expected case"),
        ('"0.6.0" =', '"0.6.0..0.5.0" =', "span '0.6.0..0.5.0' ends before it begins"),
        ('"0.6.0" =', '"0.5.3..0.6.0" =', r"\[cpu\] spans 0.4.30..0.5.3 and 0.5.3..0.6.0 overlap"),
        ("[cpu.error]", "[cpu.oops]", r"\[cpu\] has 'oops'"),
        ('= "error.txt"', '= "../error.txt"', r"names '\.\./error\.txt', expected a file of"),
        ('= "error.txt"', '= "value.txt"', r"names 'value\.txt', expected a file of"),
        ('"error.txt" = "', '"../x.txt" = "', r"\[contents\] has '\.\./x\.txt'"),
        ('"error.txt" = "', '"error.txt" = "z', r"expected a file name and 32 hex digits"),
    ],
)
def test_a_malformed_file_is_an_error(root: Path, old: str, new: str, message: str) -> None:
    """The message names the file, what was found and what to do."""
    text = _toml(root).read_text()
    assert old in text
    _toml(root).write_text(text.replace(old, new, 1))
    with pytest.raises(GoldenError, match=rf"spans\.toml: .*{message}.*; restore it"):
        GoldenStore(root).lookup(CASE, "cpu", "0.6.0")


def test_a_hand_edited_content_is_an_error(root: Path) -> None:
    """The document has the hash of each file."""
    error = _toml(root).with_name("error.txt")
    error.write_text(error.read_text().replace("bad", "good"))
    with pytest.raises(GoldenError, match=r"error\.txt: content hashes to \w{32}, expected \w{32}"):
        GoldenStore(root).lookup(CASE, "cpu", "0.5.3")


def test_a_missing_content_is_an_error(root: Path) -> None:
    """A missing golden does not pass."""
    _toml(root).with_name("error.txt").unlink()
    with pytest.raises(GoldenError, match=r"error\.txt: is missing"):
        GoldenStore(root).lookup(CASE, "cpu", "0.5.3")


def test_another_format_is_tainted(root: Path) -> None:
    """Never read as if it were this one."""
    _toml(root).write_text(_toml(root).read_text().replace("format = 2", "format = 9"))
    entry = GoldenStore(root).lookup(CASE, "cpu", "0.6.0")
    assert entry is not None
    assert entry.tainted


def test_files_are_read_once(root: Path) -> None:
    """Whatever the number of lookups and threads: once read, they need not even be there."""
    store = GoldenStore(root)
    first = [store.lookup(CASE, "cpu", release) for release in KNOWN]
    shutil.rmtree(root)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: store.lookup(CASE, "cpu", KNOWN[i % 5]), range(100)))
    assert None not in first
    assert found == first * 20
