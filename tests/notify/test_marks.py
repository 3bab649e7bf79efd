"""Marks: what is ours is found again, whatever stands around it and in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conformance.notify.issue_body import IssueBody, escape_issue_marks, find_cause, parse_body

ID = "0123456789ab"
MARKS = ("<!-- conformance: 0123456789ab -->", "<!-- conformance-facts -->",
         "<!-- conformance-evidence -->", "<!-- conformance-end -->", "\n", "text")  # fmt: skip
lines = st.lists(st.one_of(st.sampled_from(MARKS), st.text(max_size=9)), max_size=5)
texts = lines.map("\n".join).map(lambda text: text.replace("\r", ""))
people = texts.map(escape_issue_marks)


@given(people, texts, texts, texts, people)
def test_our_parts_are_found_in_any_text(
    before: str, status: str, facts: str, evidence: str, after: str
) -> None:
    """Also where what was seen has marks in it, and after a browser wrote the ends of lines."""
    body = IssueBody(
        cause=ID, status=escape_issue_marks(status), facts=escape_issue_marks(facts),
        evidence=escape_issue_marks(evidence),
        before=f"{before}\n", after=f"\n{after}",
    )  # fmt: skip
    assert parse_body(body.text) == body
    assert parse_body(body.text.replace("\n", "\r\n")) == body
    assert find_cause(body.text) == ID


@given(texts)
def test_an_escaped_text_has_no_mark(text: str) -> None:
    """Nor does it grow, or lose a line."""
    assert find_cause(escape_issue_marks(text)) == ""
    assert len(escape_issue_marks(text).splitlines()) == len(text.splitlines())


def test_a_text_without_all_marks_is_not_parsed() -> None:
    """Somebody took one away."""
    text = IssueBody(cause=ID, status="s", facts="f", evidence="e").text
    for mark in MARKS[1:4]:
        assert parse_body(text.replace(mark, "")) is None
        assert find_cause(text.replace(mark, "")) == ID
    assert parse_body("a text") is None
    assert find_cause("see <!-- conformance: 0123456789ab -->") == ""
