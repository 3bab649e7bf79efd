"""The committed data of a conformance history."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.errors import UsageError
from conformance.report.suites.conformance_data import decode_history, encode_history
from conformance.report.suites.conformance_history import (
    SuiteHistory,
    SuiteOutcome,
    SuiteRelease,
    SuiteResult,
    TrackedTest,
)

RELEASES = ("0.5.3", "0.6.2", "0.7.0")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
RESULTS = st.one_of(
    st.just(SuiteResult(outcome=SuiteOutcome.PASSED)),
    st.builds(
        SuiteResult,
        outcome=st.sampled_from(
            [SuiteOutcome.KNOWN, SuiteOutcome.FAILED, SuiteOutcome.SKIPPED]
        ),
        why=TEXT, reason=TEXT, issue=TEXT,
    ),
)  # fmt: skip
FOLLOWED = st.builds(
    TrackedTest,
    group=st.sampled_from(["a", "b"]),
    results=st.dictionaries(st.sampled_from(RELEASES), RESULTS, min_size=1),
)
HELD = tuple(
    SuiteRelease(release=r, cell=f"jax{r}-py311-cpu8", standard="2024.12") for r in RELEASES
)


@given(st.dictionaries(TEXT, FOLLOWED, max_size=4), st.dictionaries(TEXT, FOLLOWED, max_size=2))
def test_an_encoded_history_decodes_to_itself(
    tests: dict[str, TrackedTest], own_cases: dict[str, TrackedTest]
) -> None:
    """Whatever it is; and the same history is the same text."""
    kept = SuiteHistory(
        suite="signs", title="Signs", revision="5" * 40, settings={"max_examples": 5},
        place="cpu8", releases=HELD, tests=tests, own_cases=own_cases,
    )  # fmt: skip
    content = encode_history(kept)
    back = decode_history(content, "x.json")
    assert (back.tests, back.own_cases, back.releases) == (tests, own_cases, HELD)
    assert back.settings == kept.settings
    assert encode_history(back) == content


def test_a_release_without_changes_adds_one_line() -> None:
    """So that a change of the data shows what the release changed, and no more."""
    passed = SuiteResult(outcome=SuiteOutcome.PASSED)
    tests = {
        f"a/{n}": TrackedTest(group="a", results=dict.fromkeys(RELEASES, passed)) for n in "xyz"
    }
    three = SuiteHistory(suite="signs", releases=HELD, tests=tests)
    two = replace(three, releases=HELD[:2])
    before, after = (encode_history(one).decode().splitlines() for one in (two, three))
    assert len(after) == len(before) + 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "expected the data of a conformance history"),
        (b"[]", "expected the data of a conformance history"),
        (
            encode_history(SuiteHistory(suite="s")).replace(b'"format": 1', b'"format": 9'),
            "format 9",
        ),
    ],
)
def test_content_that_is_no_history_is_refused(content: bytes, said: str) -> None:
    """With its name."""
    with pytest.raises(UsageError, match=said) as raised:
        decode_history(content, "x.json")
    assert str(raised.value).startswith("x.json: ")
