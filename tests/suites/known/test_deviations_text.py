"""Known failures as text."""

from __future__ import annotations

import tomllib
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.model.case import Deviation
from conformance.suites.known.deviations import (
    FILE,
    DeviationEntry,
    DeviationOrigin,
    Deviations,
    parse_deviations,
    quote_toml,
    render_deviations,
    sort_entries,
)

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
reasons = words.filter(str.strip)
deviations = st.builds(
    Deviation,
    releases=st.sampled_from(["", "<0.5", ">=0.5,<0.6", ">=0.6", "==0.7.1"]),
    outcome=st.sampled_from(["raised", "crashed"]), error=words,
    match=st.sampled_from(["", "a.*b", r"\('x\"\)", r"\d"]), platform=st.sampled_from(["", "cpu"]),
    reason=reasons, issue=st.sampled_from(["", "jax-ml/jax#1"]), may_pass=st.booleans(),
)  # fmt: skip
generated = st.builds(
    DeviationOrigin, revision=words, examples=st.none() | st.integers(1),
    seed=st.none() | st.integers(0),
    releases=st.dictionaries(
        words,
        st.dictionaries(st.sampled_from(["0.4.30", "0.12.0.1"]), words, min_size=1),
        max_size=2,
    ),
)  # fmt: skip


@settings(max_examples=50)
@given(st.lists(st.tuples(deviations, st.sets(words, min_size=1)), max_size=3), generated)
def test_rendered_file_is_parsed_to_the_same_entries(
    drawn: list[tuple[Deviation, set[str]]], head: DeviationOrigin
) -> None:
    """With any names, reasons and patterns; rendering is stable."""
    entries = [
        DeviationEntry(deviation=one, tests=tuple(sorted(f"{number} {test}" for test in tests)))
        for number, (one, tests) in enumerate(drawn)
    ]
    known = Deviations(generated=head, entries=sort_entries(entries))
    text = render_deviations(known)
    assert parse_deviations(text, FILE) == known
    assert render_deviations(parse_deviations(text, FILE)) == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_quoted_text_is_a_toml_string(text: str) -> None:
    """On one line, for any text."""
    assert tomllib.loads(f"x = {quote_toml(text)}") == {"x": text}
    assert "\n" not in quote_toml(text)
