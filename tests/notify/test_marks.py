"""Marks: what is ours is found again, whatever stands around it and in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conformance.notify.marks import IssueBody, cause_in, parts_of, tame

ID = "0123456789ab"
MARKS = ("<!-- conformance: 0123456789ab -->", "<!-- conformance-facts -->",
         "<!-- conformance-evidence -->", "<!-- conformance-end -->", "\n", "text")  # fmt: skip
lines = st.lists(st.one_of(st.sampled_from(MARKS), st.text(max_size=9)), max_size=5)
texts = lines.map("\n".join).map(lambda text: text.replace("\r", ""))
people = texts.map(tame)


@given(people, texts, texts, texts, people)
def test_what_is_ours_is_found_again(
    before: str, status: str, facts: str, evidence: str, after: str
) -> None:
    """Also where what was seen has marks in it, and after a browser wrote the ends of lines."""
    body = IssueBody(
        cause=ID, status=tame(status), facts=tame(facts), evidence=tame(evidence),
        before=f"{before}\n", after=f"\n{after}",
    )  # fmt: skip
    assert parts_of(body.text) == body
    assert parts_of(body.text.replace("\n", "\r\n")) == body
    assert cause_in(body.text) == ID


@given(texts)
def test_what_is_tamed_has_no_mark(text: str) -> None:
    """Nor does it grow, or lose a line."""
    assert cause_in(tame(text)) == ""
    assert len(tame(text).splitlines()) == len(text.splitlines())


def test_a_text_without_all_of_our_marks_is_people_s() -> None:
    """Somebody took one away."""
    text = IssueBody(cause=ID, status="s", facts="f", evidence="e").text
    for mark in MARKS[1:4]:
        assert parts_of(text.replace(mark, "")) is None
        assert cause_in(text.replace(mark, "")) == ID
    assert parts_of("a text") is None
    assert cause_in("see <!-- conformance: 0123456789ab -->") == ""
