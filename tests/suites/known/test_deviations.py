"""The file of known failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.errors import UsageError
from conformance.model.case import Deviation
from conformance.suites.known.deviations import (
    FILE,
    DeviationOrigin,
    Deviations,
    load_deviations,
    load_known_failures,
    parse_deviations,
    reject_unknown_tests,
)

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = '[[deviation]]\nreason = "r"\n'
FILE_TEXT = """\
[generated]
revision = "1234"
examples = 5

[generated.releases.cpu]
"0.5.3" = "2024.12"

[[deviation]]
releases = ">=0.5"
error = "TypeError"
match = 'immutable \\(always\\)'
reason = "arrays are immutable"
issue = "jax-ml/jax#1"
tests = ["t.py::b", "t.py::a[x \\\\u03c0]"]

[[deviation]]
releases = "<0.5"
outcome = "crashed"
platform = "cpu"
reason = "it aborts"
tests = ["t.py::b"]
"""


def test_entries_and_origin_are_parsed() -> None:
    """With the tests of each entry in order."""
    known = parse_deviations(FILE_TEXT, FILE)
    assert known.generated == DeviationOrigin(
        revision="1234", examples=5, releases={"cpu": {"0.5.3": "2024.12"}}
    )
    immutable = Deviation(
        releases=">=0.5", error="TypeError", match=r"immutable \(always\)",
        reason="arrays are immutable", issue="jax-ml/jax#1",
    )  # fmt: skip
    crash = Deviation(releases="<0.5", outcome="crashed", platform="cpu", reason="it aborts")
    assert known.group_by_test() == {
        r"t.py::a[x \u03c0]": (immutable,), "t.py::b": (immutable, crash),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[dev", "expected ']]' at the end of an array declaration (at end of document)"),
        ("more = 1", "object contains unknown field `more`"),
        ("[generated]\nseed = 'x'", "expected `int | null`, got `str` - at `$.generated.seed`"),
        ("deviation = 3", "expected `array`, got `int` - at `$.deviation`"),
        (f"\n{ENTRY}tests = []\nx = 1", ":2: deviation 1: object contains unknown field `x`"),
        (f"{ENTRY}", ":1: deviation 1: object missing required field `tests`"),
        (
            f"{ENTRY}tests = []",
            (
                ":1: deviation 1: `tests` is empty, expected the names of tests; remove the entry "
                "if none fails"
            ),
        ),
        (
            "[[deviation]]\nreason = ' '\ntests = ['a']",
            ":1: deviation 1: `reason` is empty, expected why the tests fail, in a few words",
        ),
        (
            f"{ENTRY}tests = ['a']\nreleases = '0.5'",
            ":1: deviation 1: releases `0.5`, expected a version specifier, e.g. `>=0.5,<0.6`",
        ),
        (
            f"{ENTRY}tests = ['a']\nmatch = '('",
            (
                ":1: deviation 1: match `(` is no regular expression: missing ), unterminated "
                "subpattern at position 0"
            ),
        ),
        (
            f"{ENTRY}tests = ['a']\noutcome = 'ok'",
            ":1: deviation 1: outcome `ok`, expected raised, crashed, timed_out, out_of_memory",
        ),
        (
            f"{ENTRY}tests = ['a', 'a']",
            ":1: deviation 1: names a twice, expected each test once",
        ),
        (
            (
                f"{ENTRY}tests = ['a']\nreleases = '~=0.5.1'\n"
                f"{ENTRY}tests = ['a', 'b']\nreleases = '>0.5.1,<1'"
            ),
            (
                ":5: deviation 2 (`>0.5.1,<1`) and deviation 1 (`~=0.5.1`) declare a for the same "
                "releases, expected one deviation for each release"
            ),
        ),
    ],
)  # fmt: skip
def test_invalid_file_names_the_entry(text: str, message: str) -> None:
    """The file, the line of the entry, the found and the expected value."""
    with pytest.raises(UsageError) as raised:
        parse_deviations(text, "f.toml")
    assert str(raised.value) in {f"f.toml{message}", f"f.toml: {message}"}


def test_overlapping_entries_of_a_test_are_rejected() -> None:
    """A test has one deviation per release and platform."""
    tests = "tests = ['a']\n"
    parse_deviations(f"{ENTRY}{tests}releases = '<0.5'\n{ENTRY}{tests}releases = '>=0.5'", FILE)
    parse_deviations(f"{ENTRY}{tests}platform = 'cpu'\n{ENTRY}{tests}platform = 'gpu'", FILE)
    with pytest.raises(UsageError, match="declare a for the same releases"):
        parse_deviations(f"{ENTRY}{tests}platform = 'gpu'\n{ENTRY}{tests}platform = 'cuda'", FILE)


def test_missing_file_has_no_entries(tmp_path: Path) -> None:
    """A suite need not have known failures."""
    assert load_deviations(tmp_path) == Deviations()
    assert load_known_failures(tmp_path, examples=3) == {}


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    """In a usage error."""
    (tmp_path / FILE).write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"deviations\.toml: expected text in UTF-8"):
        load_deviations(tmp_path)


@pytest.mark.parametrize(
    ("asked", "may_pass"),
    [
        ({"examples": 5}, False),
        ({"examples": 20}, True),
        ({"examples": 5, "seed": 1}, True),
        ({"examples": 5, "standard": "2022.12"}, True),
    ],
)
def test_other_examples_may_pass(tmp_path: Path, asked: dict[str, int], may_pass: bool) -> None:
    """Passing with them is no sign of a fix."""
    (tmp_path / FILE).write_text(FILE_TEXT)
    known = load_known_failures(tmp_path, **asked)  # type: ignore[arg-type]
    assert {one.may_pass for own in known.values() for one in own} == {may_pass}


def test_unknown_tests_are_rejected(tmp_path: Path) -> None:
    """With file, line and entry, if the release had a recorded run."""
    (tmp_path / FILE).write_text(FILE_TEXT)
    place = ("0.5.3", "cpu", {"jax": "0.5.3"})
    reject_unknown_tests(tmp_path, [place], lambda _: True)
    reject_unknown_tests(tmp_path, [("0.6.2", "cpu", {}), ("0.5.3", "gpu", {})], lambda _: False)
    with pytest.raises(UsageError) as raised:
        reject_unknown_tests(tmp_path, [place], lambda name: name.endswith("b"))
    assert str(raised.value) == (
        rf"{tmp_path / FILE}:8: deviation 1 names t.py::a[x \u03c0]: no cell collects it, "
        "expected an existing test; remove it, or write its new name"
    )
    # Where nobody says which releases were seen, every one counts.
    (tmp_path / FILE).write_text(f"{ENTRY}tests = ['a']\n")
    with pytest.raises(UsageError, match="deviation 1 names a: no cell collects it"):
        reject_unknown_tests(tmp_path, [place], lambda _: False)


def test_unknown_tests_of_an_entry_without_a_table_header_are_rejected(tmp_path: Path) -> None:
    """No line is known: the message has the file and the number of the entry."""
    header, _, keys = ENTRY.partition("\n")
    assert header == "[[deviation]]"
    inline = ", ".join([*keys.split("\n")[:-1], "tests = ['a']"])
    (tmp_path / FILE).write_text(f"deviation = [{{ {inline} }}]\n")
    with pytest.raises(UsageError, match=rf"{FILE}: deviation 1 names a: no cell collects it"):
        reject_unknown_tests(tmp_path, [("0.5.3", "cpu", {})], lambda _: False)
