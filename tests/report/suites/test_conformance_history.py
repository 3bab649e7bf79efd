"""Counts, regressions and fixes of a suite's tests over releases."""

from __future__ import annotations

import pytest

from conformance.report.suites.conformance_history import (
    SuiteHistory,
    SuiteOutcome,
    SuiteRelease,
    SuiteResult,
    TrackedTest,
    classify_change,
    find_failure_cause,
    shorten_test,
)

RELEASES = ("0.5.3", "0.6.2", "0.7.0")
LETTERS = {
    "p": SuiteOutcome.PASSED, "k": SuiteOutcome.KNOWN, "F": SuiteOutcome.FAILED,
    "?": SuiteOutcome.FLAKY, "s": SuiteOutcome.SKIPPED,
}  # fmt: skip


def history(tests: dict[str, str], own_cases: dict[str, str] | None = None) -> SuiteHistory:
    """Return a history: a letter for each release, by test; its group stands before the `/`."""

    def tested(found: dict[str, str]) -> dict[str, TrackedTest]:
        return {
            name: TrackedTest(
                group=name.partition("/")[0],
                results={
                    release: SuiteResult(outcome=LETTERS[letter])
                    for release, letter in zip(RELEASES, letters, strict=True)
                    if letter in LETTERS
                },
            )
            for name, letters in found.items()
        }

    held = tuple(
        SuiteRelease(release=r, cell=f"jax{r}-py311-cpu8", standard=r[:3]) for r in RELEASES
    )
    return SuiteHistory(
        suite="signs", releases=held, tests=tested(tests), own_cases=tested(own_cases or {})
    )


def test_tests_are_counted_by_outcome_and_group() -> None:
    """Of a group and of all; what is skipped is no share, what is not collected does not exist."""
    found = history({"a/one": "ppk", "a/two": "sF-", "b/three": "p?p"}, {"own/case": "kkk"})
    first = found.counts("0.5.3")
    assert (first.passed, first.ran, first.skipped, first.share) == (2, 2, 1, 1.0)
    second = found.counts("0.6.2", "a")
    assert (second.passed, second.ran, second.unexpected, second.known) == (1, 2, 1, 0)
    assert found.counts("0.6.2", "b").unexpected == 1
    assert found.counts("0.7.0", "a").known == found.counts("0.7.0", "a").ran == 1
    assert (found.counts("0.7.0", "own").known, found.counts("0.7.0").known) == (1, 1)
    assert found.counts("0.1.0").share == 0.0


def test_steps_have_regressions_fixes_additions_and_removals() -> None:
    """What was run in two releases regresses or is fixed, what is not in both is new or gone."""
    found = history(
        {
            "a/broken": "pkk", "a/mended": "FFp", "a/shaky": "p?p", "a/new": "-Fp",
            "a/gone": "pp-", "a/skipped": "psk", "a/declared": "FkF",
        }
    )  # fmt: skip
    first, second, third = found.steps
    assert first.before is None
    assert (second.regressed, second.fixed, second.added) == (("a/broken",), (), ("a/new",))
    assert (third.fixed, third.regressed) == (("a/mended", "a/new"), ())
    assert third.removed == ("a/gone",)
    assert second.standards == ("0.5", "0.6")


@pytest.mark.parametrize("was", SuiteOutcome)
@pytest.mark.parametrize("now", SuiteOutcome)
def test_a_change_has_its_opposite(was: SuiteOutcome, now: SuiteOutcome) -> None:
    """What is a regression one way is a fix the other way, and what is new is gone."""
    opposite = {"regressed": "fixed", "fixed": "regressed", "added": "removed", "removed": "added"}
    word = classify_change(was, now)
    assert classify_change(now, was) == opposite.get(word, "")
    assert was is not now or not word


def test_groups_and_failures() -> None:
    """By name, what is in none last; failures are told with the unexpected first."""
    found = history({"other/x": "ppp", "b/one": "kkk", "b/two": "FFF", "z/three": "ppp"})
    assert found.groups == ("b", "z", "other")
    assert list(found.failing("0.5.3")) == ["b/two", "b/one"]
    assert list(found.failing("0.5.3", "z")) == []
    assert history({}, {"own/a": "kkp"}).families == ("own",)
    assert list(history({}, {"own/a": "kkp"}).failing("0.5.3", "own")) == ["own/a"]


def test_a_short_name_has_no_folders() -> None:
    """Without folders; a parameter keeps all of its signs."""
    assert shorten_test("a/b/test_c.py::test_d[pi/2 [x]]") == "test_c.py::test_d[pi/2 [x]]"
    assert shorten_test("own/case") == "case"


def test_failures_are_grouped_by_cause() -> None:
    """Those of one declared reason, else those of one function that raise the same."""
    known = SuiteResult(
        outcome=SuiteOutcome.KNOWN, why="TypeError: a", reason="lost", issue="a/b#1"
    )
    assert find_failure_cause("t::f[1]", known) == find_failure_cause("t::g[2]", known)
    one, two = (SuiteResult(outcome=SuiteOutcome.FAILED, why=f"TypeError: {n}") for n in "ab")
    assert find_failure_cause("t::f[1]", one) == find_failure_cause("t::f[2]", two)
    assert find_failure_cause("t::f[1]", one) != find_failure_cause("t::g[1]", one)
