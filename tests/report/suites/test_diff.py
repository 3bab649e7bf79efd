"""What became of the tests of a suite, as it is printed and as data."""

from __future__ import annotations

from conformance.engine.runs.suite_changes import compare_tests
from conformance.report.suites.diff import SLOWEST, make_diff_json, render_suite_diff
from tests.engine.runs.test_suite_changes import record

NAMES = ("old", "new")


def test_every_kind_of_change_is_listed_with_its_cause() -> None:
    """The count of each, then each cause with its tests; what is the same is counted only."""
    changes = [
        compare_tests("a", record("passes", "a"), record("fails", "a", reasons=("raised it",))),
        compare_tests("b", record("passes", "b"), record("fails", "b", reasons=("raised it",))),
        compare_tests(
            "c", record("passes", "c"), record("known", "c", reasons=("deviation: why",))
        ),
        compare_tests("d", None, record("fails", "d", reasons=("raised it",))),
        compare_tests("e", record("passes", "e"), record("passes", "e")),
    ]
    text = "\n".join(render_suite_diff(changes, NAMES))
    assert text.startswith(
        "old -> new\n5 tests: 2 regressed, 1 fails as known, 1 added, 1 same\n\n"
        "regressed: 2 tests\n  passed -> raised it\n  a, b\n"
    )
    assert "fails as known: 1 test\n  passed -> known failure: deviation: why\n  c\n" in text
    assert "added: 1 test, not in old\n  raised it\n  d" in text
    said = make_diff_json(changes, NAMES)
    assert (said["equal"], said["counts"]["regressed"], said["counts"]["fixed"]) == (False, 2, 0)
    assert [group["tests"] for group in said["groups"]] == [["a", "b"], ["c"], ["d"]]
    assert [one["test"] for one in said["tests"]] == ["a", "b", "c", "d"]
    assert said["tests"][3]["before"] is None
    assert make_diff_json(changes[3:], NAMES)["equal"] is True


def test_hostile_and_long_texts_are_sanitized_and_cut() -> None:
    """Names and messages are anybody's; there may be very many."""
    odd = "t[\x1b[2J\u202e]"
    changes = [
        compare_tests(odd, record("passes", odd), record("fails", odd, reasons=("x" * 100_000,))),
        *(compare_tests(f"t{n}", record("passes"), record("fails")) for n in range(5_000)),
    ]
    text = "\n".join(render_suite_diff(changes, NAMES))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(text) < 10_000
    assert "t4999" in "\n".join(render_suite_diff(changes, NAMES, every=True))


def test_slower_tests_are_listed_without_counting_as_changes() -> None:
    """Those that lost most first, a few; the total of all that pass on both sides."""
    pairs = [(str(n), (0.5, 2.0 + n)) for n in range(SLOWEST + 2)]
    changes = [
        compare_tests(test, *(record("passes", test, seconds) for seconds in both))
        for test, both in pairs
    ]
    lines = list(render_suite_diff(changes, NAMES))
    assert "seconds of 12 tests that pass on both: 6.0 -> 90.0" in lines
    assert lines[-2:] == ["  slower: 2: 0.50 s -> 4.00 s", "  slower: 2 tests more (--full)"]
    said = make_diff_json(changes, NAMES)
    assert (said["equal"], len(said["slower"]), said["seconds"]) == (True, 12, [6.0, 90.0])
