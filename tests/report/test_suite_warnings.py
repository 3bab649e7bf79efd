"""Warnings of tests, told once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.run_loader import load_run
from conformance.report.report import Report
from conformance.report.suite_warnings import (
    RunWarning,
    collect_warnings,
    read_collection_warnings,
    render_warnings,
    shorten_file,
)

from .suites import cells_of, suite_run

if TYPE_CHECKING:
    from pathlib import Path

RELEASES = ("0.5.3", "0.6.2", "0.7.0")
TESTS = {"a/one": "ppp", "a/two": "ppp"}


def said(message: str, where: str = "/e/site-packages/jax/core.py:3", **more: Any) -> Any:
    """Return a warning as a test gives it."""
    return {"category": "DeprecationWarning", "message": message, "where": where} | more


def found(folder: Path, warnings: dict[tuple[str, str], list[Any]]) -> tuple[RunWarning, ...]:
    """Return the warnings of a run."""
    report = Report((load_run(suite_run(folder, RELEASES, TESTS, warnings=warnings).run),))
    return collect_warnings(report.jobs.values(), report.cells)


def test_one_however_many_give_it(tmp_path: Path) -> None:
    """Numbers, addresses and places make no other warning."""
    (one,) = found(
        tmp_path,
        {
            ("a/one", "0.5.3"): [said("f at 0x7f00aa1 is 3 old", count=2)],
            ("a/two", "0.5.3"): [said("f at 0x7f00bb2 is 4 old")],
            ("a/one", "0.6.2"): [said("f at 0x7f00bb2 is 4 old", "/other/mine/a.py:9")],
        },
    )
    assert (one.category, one.count, one.tests) == ("DeprecationWarning", 4, ("a/one", "a/two"))
    assert list(one.cells) == cells_of(RELEASES[:2])
    assert one.where == ("jax/core.py", "mine/a.py")
    assert (one.new_in, one.gone_in) == ((), ("0.7.0",))


def test_what_came_with_the_newest_release_is_first(tmp_path: Path) -> None:
    """What is no longer given is last; a first release has nothing to be new against."""
    every = {("a/one", release): [said("often", category="UserWarning")] for release in RELEASES}
    every |= {("a/two", release): [said("always")] for release in RELEASES}
    every[("a/one", "0.5.3")] += [said("old")]
    every[("a/one", "0.6.2")] += [said("later")]
    every[("a/one", "0.7.0")] += [said("later"), said("newest")]
    warnings = found(tmp_path, every)
    assert [one.message for one in warnings] == ["newest", "later", "always", "often", "old"]
    assert [one.new_in for one in warnings[:3]] == [("0.7.0",), ("0.6.2",), ()]
    lines = "\n".join(render_warnings(warnings, 3, most=3))
    assert "new in 0.7.0: DeprecationWarning: newest" in lines
    assert "a/one, in 2 of 3 cells" in lines
    assert "2 more in the report" in lines
    assert list(render_warnings((), 3)) == []


def test_what_collecting_warns_of(tmp_path: Path) -> None:
    """It is told with what tests do, and of no test; what is none is passed over."""
    old, new = cells_of(RELEASES[:2])
    identities = {old: {"warnings": [{"no": 1}, 3]}, new: {"warnings": [said("jax.x is gone")]}}
    run = load_run(suite_run(tmp_path, RELEASES, TESTS, identities=identities).run)
    report = Report((run,))
    (one,) = collect_warnings(
        report.jobs.values(), report.cells, read_collection_warnings(report.runs)
    )
    assert (one.message, one.tests, one.cells) == ("jax.x is gone", (), (new,))
    assert "    as tests are collected, in 1 of 3 cells" in list(render_warnings([one], 3))


def test_what_cannot_be_read_warns_of_nothing(tmp_path: Path) -> None:
    """An artifact that is no list of warnings costs no report."""
    assert found(tmp_path, {("a/one", "0.5.3"): {"no": "list"}}) == ()  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("where", "file"),
    [
        ("/e/lib/python3.11/site-packages/jax/_src/core.py:12", "jax/_src/core.py"),
        ("/e/lib/python3.11/contextlib.py:12", "contextlib.py"),
        ("/home/x/mine/tests/test_a.py:3", "tests/test_a.py"),
        ("<string>:1", "<string>"),
    ],
)
def test_files(where: str, file: str) -> None:
    """As they are called wherever they lie."""
    assert shorten_file(where) == file
