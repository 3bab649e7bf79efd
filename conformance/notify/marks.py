"""Marks in the text of an issue: between them it is ours, all around it is people's. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

_BEGIN: Final = "<!-- conformance"
_HEAD: Final = re.compile(r"^<!-- conformance: (?P<id>[0-9a-f]{12}) -->$", re.MULTILINE)
_FACTS, _EVIDENCE, _END = (
    f"{_BEGIN}-{name} -->" for name in ("facts", "evidence", "end")
)  # fmt: skip


def tame(text: str) -> str:
    """Return a text in which nothing looks like one of our marks.

    Args:
        text: Any text.
    """
    return text.replace(_BEGIN, f"<! {_BEGIN[2:]}")


def cause_in(body: str) -> str:
    """Return the id of the root cause that an issue is about, empty if it is none of ours.

    Args:
        body: Its text.
    """
    match = _HEAD.search(_lines(body))
    return match["id"] if match else ""


def _lines(text: str) -> str:
    """Return a text with the ends of lines that we write; a browser sends others."""
    return text.replace("\r\n", "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueBody:
    """The text of an issue, in parts.

    Attributes:
        cause: Id of its root cause.
        status: Ours: whether it is there, and since when.
        facts: Ours: what is seen and where.
        evidence: Ours: what was found out about it.
        before: What people wrote before.
        after: What people wrote behind.
    """

    cause: str
    status: str
    facts: str = ""
    evidence: str = ""
    before: str = ""
    after: str = ""

    @property
    def others(self) -> int:
        """Characters that are not ours to change, with those of the marks."""
        return len(replace(self, status="", facts="", evidence="").text)

    @property
    def text(self) -> str:
        """The whole text."""
        head = f"{_BEGIN}: {self.cause} -->"
        ours = (head, self.status, _FACTS, self.facts, _EVIDENCE, self.evidence, _END)
        return f"{self.before}{chr(10).join(ours)}{self.after}"


def parts_of(body: str) -> IssueBody | None:
    """Return the parts of a text; None if its marks are not all there, in their order.

    Args:
        body: Text of an issue.
    """
    text = _lines(body)
    head = _HEAD.search(text)
    if head is None:
        return None
    before, rest = text[: head.start()], text[head.end() :]
    found = []
    for mark in (_FACTS, _EVIDENCE, _END):
        part, there, rest = rest.partition(f"\n{mark}")
        if not there:
            return None
        found.append(part.removeprefix("\n"))
    status, facts, evidence = found
    return IssueBody(
        cause=head["id"], status=status, facts=facts, evidence=evidence, before=before, after=rest
    )
