"""Updates of known failures from the results of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.model.case import Deviation
from conformance.model.outcome import Outcome
from conformance.model.record import ErrorInfo
from conformance.suites.known.deviations import (
    DeviationEntry,
    DeviationOrigin,
    Deviations,
    parse_deviations,
    render_deviations,
)
from conformance.suites.known.update import CellResults, TestFailure, is_shown, update_deviations

if TYPE_CHECKING:
    from collections.abc import Mapping

RELEASES = ("0.4.30", "0.4.38", "0.5.0", "0.5.3", "0.6.2", "0.12.0.1")
TEST = "test_it.py::test_it"
KINDS = ("not there", "other dtype", "wrong shape")


def failure(message: str = "not there", outcome: Outcome = Outcome.RAISED) -> TestFailure:
    """Return how a test failed."""
    return TestFailure(outcome, ErrorInfo(type="ValueError", message=message))


def evidence(release: str, **failures: str) -> CellResults:
    """Return what a run showed: of tests by name, the messages of those that fail."""
    own = {name: failure(message) for name, message in failures.items()}
    return CellResults(release=release, platform="cpu", failures=own)


def update(known: Deviations, *shown_: CellResults) -> Deviations:
    """Return the known failures after an update with evidence."""
    return update_deviations(known, shown_, DeviationOrigin(revision="r", examples=5))


def spans(known: Deviations, test: str = "a") -> dict[str, str]:
    """Return the pattern that a test is known to fail with, by range of releases."""
    return {one.releases: one.match for one in known.group_by_test().get(test, ())}


@pytest.mark.parametrize(
    ("fails", "expected"),
    [
        (("0.4.30", "0.4.38", "0.5.3"), {""}),
        (("0.4.30",), {"<0.4.38"}),
        (("0.4.38",), {">=0.4.38,<0.5.3"}),
        (("0.5.3",), {">=0.5.3"}),
        (("0.4.30", "0.5.3"), {"<0.4.38", ">=0.5.3"}),
        ((), set()),
    ],
)
def test_release_represents_those_up_to_the_next_run(
    fails: tuple[str, ...], expected: set[str]
) -> None:
    """The newest release represents all later ones."""
    seen = [
        evidence(release, **({"a": "no"} if release in fails else {}))
        for release in ("0.4.30", "0.4.38", "0.5.3")
    ]
    assert set(spans(update(Deviations(), *seen))) == expected


def test_tests_with_one_cause_share_an_entry() -> None:
    """Independent of the drawn examples."""
    first = "out.dtype=uint8, but should be uint64 [sum(uint8)]"
    other = "out.dtype=int8, but should be int64 [sum(int8, 3)]"
    known = update(
        Deviations(), evidence("0.5.0", b=first, a=other), evidence("0.6.2", a=first, c="missing")
    )
    patterns = {
        (entry.deviation.releases, entry.deviation.match, entry.tests) for entry in known.entries
    }
    pattern = r"^out\.dtype=.*, but should be .* \[sum\(.*\)\]"
    assert patterns == {
        ("", pattern, ("a",)), ("<0.6.2", pattern, ("b",)), (">=0.6.2", "^missing", ("c",)),
    }  # fmt: skip
    assert known.generated.releases == {"cpu": {"0.5.0": "", "0.6.2": ""}}


WRITTEN = """\
[[deviation]]
releases = ">=0.6"
match = "not there"
reason = "another"
tests = ["a"]

[[deviation]]
releases = "~=0.5.0"
match = "not|never"
reason = "the true reason"
issue = "a/b#1"
tests = ["a", "b"]
"""


def test_edits_by_hand_are_kept() -> None:
    """Reasons, patterns and ranges that no result contradicts."""
    known = parse_deviations(WRITTEN, "here")
    after = update(known, evidence("0.5.3", a="not there", b="never here"))
    assert after.entries == known.entries
    # What passes ends, for that test alone, up to what is said of later releases.
    after = update(known, evidence("0.5.3", b="never here"))
    assert spans(after, "b") == {"~=0.5.0": "not|never"}
    assert spans(after, "a") == {">=0.5.0,<0.5.3": "not|never", ">=0.6": "not there"}
    assert {d.reason for d in after.group_by_test()["a"]} == {"the true reason", "another"}
    # The same cause in other releases has the same reason, for a test that has it already.
    after = update(known, evidence("0.4.38", b="never"), evidence("0.5.3", a="not", b="not"))
    assert {d.releases: d.reason for d in after.group_by_test()["b"]} == {"<0.6": "the true reason"}


def test_flaky_tests_are_not_updated() -> None:
    """Their known failures stay."""
    known = update(Deviations(), evidence("0.5.3", a="no"))
    unsure = CellResults(release="0.5.3", platform="cpu", unknown=frozenset({"a", "b"}))
    assert update(known, unsure) == known


def test_platforms_are_updated_independently() -> None:
    """A result on one platform changes no entry of another."""
    gpu = CellResults(release="0.5.3", platform="gpu", failures={"a": failure("other")})
    known = update(Deviations(), evidence("0.5.3", a="no"), gpu)
    assert {d.platform: d.match for d in known.group_by_test()["a"]} == {
        "cpu": "^no",
        "gpu": "^other",
    }
    after = update(known, evidence("0.5.3"))
    assert [d.platform for d in after.group_by_test()["a"]] == ["gpu"]


def test_may_pass_entry_stays_after_a_pass() -> None:
    """Another failure contradicts it."""
    sometimes = Deviation(match="no", reason="by the example drawn", may_pass=True)
    known = Deviations(entries=(DeviationEntry(deviation=sometimes, tests=("a",)),))
    assert update(known, evidence("0.5.3")).entries == known.entries
    after = update(known, evidence("0.4.30", a="no"), evidence("0.5.3", a="other"))
    assert spans(after) == {"<0.5.3": "no", ">=0.5.3": "^other"}


def test_outcome_is_part_of_the_cause() -> None:
    """A crash is another cause than an exception."""
    crash = failure("SIGSEGV", Outcome.CRASHED)
    one = CellResults(release="0.5.3", platform="cpu", failures={"a": crash})
    (entry,) = update(Deviations(), one).entries
    assert (entry.deviation.outcome, entry.deviation.error) == ("crashed", "ValueError")
    assert not is_shown(entry.deviation, failure("SIGSEGV"))


ended = st.dictionaries(st.sampled_from("abc"), st.sampled_from(KINDS))
histories = st.dictionaries(st.sampled_from(RELEASES), ended, min_size=1)


def as_evidence(history: Mapping[str, Mapping[str, str]]) -> list[CellResults]:
    """Return what runs showed, by release and test."""
    return [evidence(release, **own) for release, own in history.items()]


@given(histories)
def test_updated_entries_agree_with_the_results(history: dict[str, dict[str, str]]) -> None:
    """Of every release; a second update and a round trip change nothing."""
    known = update(Deviations(), *as_evidence(history))
    for release, own in history.items():
        for test in "abc":
            here = [d for d in known.group_by_test().get(test, ()) if d.covers(release, "cpu", {})]
            assert [d.match for d in here] == ([f"^{own[test]}"] if test in own else [])
    assert update(known, *as_evidence(history)) == known
    assert parse_deviations(render_deviations(known), "here") == known


@given(st.permutations(RELEASES), histories)
def test_the_order_of_runs_does_not_matter(
    order: list[str], history: dict[str, dict[str, str]]
) -> None:
    """Accepting runs singly and together gives the same entries."""
    one_by_one = Deviations()
    for release in order:
        if release in history:
            one_by_one = update(one_by_one, evidence(release, **history[release]))
    assert one_by_one == update(Deviations(), *as_evidence(history))


@given(histories, histories)
def test_other_releases_are_unchanged(
    first: dict[str, dict[str, str]], then: dict[str, dict[str, str]]
) -> None:
    """A run changes only entries of its own release."""
    known = update(Deviations(), *as_evidence(first))
    after = update(known, *as_evidence(then))
    for release in first.keys() - then.keys():
        for test in "abc":
            patterns = [
                [d.match for d in one.group_by_test().get(test, ()) if d.covers(release, "cpu", {})]
                for one in (known, after)
            ]
            assert patterns[0] == patterns[1]
    assert after.generated.releases["cpu"].keys() == first.keys() | then.keys()
