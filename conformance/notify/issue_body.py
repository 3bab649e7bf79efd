"""The text of an issue about a root cause: our part between marks, and people's around it. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from conformance.report.markup import (
    MOST_BLOCK,
    Section,
    SectionEntry,
    fence,
    fit_sections,
    to_code,
)
from conformance.report.site.addresses import CAUSES, case_page, href
from conformance.report.text import sanitize
from conformance.triage.evidence import format_commit, format_culprit
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.model.run_files import Evidence
    from conformance.notify.night import Topic, TopicJob

LIMIT: Final = 65_536
"""Characters that GitHub accepts as the text of an issue."""
ROOM: Final = 4_000
"""Minimum number of characters for our part."""
MAX_FACTS: Final = 20_000
"""Characters of the list of cases at most: the rest is for evidence, which is harder to find."""
MAX_CASES: Final = 20
"""Cases that a comment names."""
MAX_PLACES: Final = 12
"""Places that are named for a case."""
# Comments of HTML are invisible in an issue, and survive when people edit the text around them.
_BEGIN: Final = "<!-- conformance"
_HEAD: Final = re.compile(r"^<!-- conformance: (?P<id>[0-9a-f]{12}) -->$", re.MULTILINE)
_FACTS, _EVIDENCE, _END = (f"{_BEGIN}-{name} -->" for name in ("facts", "evidence", "end"))
_UNATTACHED: Final = (
    "GitHub takes no attachments from programs, so it is shown below; the file itself is "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueBody:
    """The text of an issue, in parts.

    Attributes:
        cause: Id of its root cause.
        status: Ours: whether it is open, and the run that showed it first.
        facts: Ours: the error with its jobs.
        evidence: Ours: the findings about it.
        before: The text that people wrote before our part.
        after: The text that people wrote after our part.
    """

    cause: str
    status: str
    facts: str = ""
    evidence: str = ""
    before: str = ""
    after: str = ""

    @property
    def others(self) -> int:
        """Number of characters that must not change, including those of the marks."""
        return len(replace(self, status="", facts="", evidence="").text)

    @property
    def text(self) -> str:
        """The whole text."""
        head = f"{_BEGIN}: {self.cause} -->"
        ours = (head, self.status, _FACTS, self.facts, _EVIDENCE, self.evidence, _END)
        return f"{self.before}{chr(10).join(ours)}{self.after}"


def escape_issue_marks(text: str) -> str:
    """Return a text in which nothing looks like one of our marks.

    Args:
        text: Any text.
    """
    return text.replace(_BEGIN, f"<! {_BEGIN[2:]}")


def find_cause(body: str) -> str:
    """Return the id of the root cause that an issue is about, empty if it has none of our marks.

    Args:
        body: Text of the issue.
    """
    match = _HEAD.search(_unify_line_ends(body))
    return match["id"] if match else ""


def _unify_line_ends(text: str) -> str:
    # Browsers send `\r\n` when a person edits an issue, and marks end at a line's end.
    return text.replace("\r\n", "\n")


def parse_body(body: str) -> IssueBody | None:
    """Return the parts of a text; None unless it has all of our marks, in their order.

    Args:
        body: Text of an issue.
    """
    text = _unify_line_ends(body)
    head = _HEAD.search(text)
    if head is None:
        return None
    rest = text[head.end() :]
    parts = []
    for mark in (_FACTS, _EVIDENCE, _END):
        part, found, rest = rest.partition(f"\n{mark}")
        if not found:
            return None
        parts.append(part.removeprefix("\n"))
    # A missing mark means that people changed our part: it is no longer ours to rewrite.
    status, facts, evidence = parts
    return IssueBody(
        cause=head["id"], status=status, facts=facts, evidence=evidence,
        before=text[: head.start()], after=rest,
    )  # fmt: skip


def make_body(topic: Topic, url: str) -> str:
    """Return the text of a new issue.

    Args:
        topic: The root cause.
        url: Address of the site, empty if there is none.
    """
    return _write(IssueBody(cause=topic.id, status=""), topic, url).text


def rewrite_body(body: IssueBody, topic: Topic, url: str) -> IssueBody | None:
    """Return a text with our part rewritten; None if people left no room for it.

    Evidence of an earlier night is kept if this night found none.

    Args:
        body: The text.
        topic: The root cause.
        url: Address of the site, empty if there is none.
    """
    return None if LIMIT - body.others < ROOM else _write(body, topic, url)


def _write(body: IssueBody, topic: Topic, url: str) -> IssueBody:
    status = f"Open: first seen in {to_code(topic.first)}." if topic.first else "Open."
    if topic.good:
        status += f" Last good before it: {to_code(topic.good)}."
    room = LIMIT - body.others - len(status)
    facts = escape_issue_marks(_render_facts(topic, url, min(MAX_FACTS, room)))
    room -= len(facts)
    # Evidence of an earlier night is kept: a search that ran out of time finds nothing new.
    evidence = body.evidence
    if topic.evidence is not None:
        evidence = escape_issue_marks(_render_evidence(topic.evidence, topic.reproduction, room))
    # A cut reproduction would not run, and GitHub refuses a text that is too long as a whole.
    if len(evidence) > room:
        evidence = ""
    return replace(body, status=escape_issue_marks(status), facts=facts, evidence=evidence)


def mark_fixed(body: IssueBody, run: str) -> IssueBody | None:
    """Return a text that says that the cause is gone; None if it already does, or has no room.

    Args:
        body: The text.
        run: The run that showed it fixed.
    """
    status = escape_issue_marks(f"Fixed: all of its jobs ran up to {to_code(run)} and are fine.")
    marked = replace(body, status=status)
    # An equal status means that the issue was closed before and people opened it again.
    return None if body.status == status or len(marked.text) > LIMIT else marked


def _render_facts(topic: Topic, url: str, room: int) -> str:
    places_by_case = _group_places(topic.jobs)
    jobs, cases = plural(len(topic.jobs), "job"), plural(len(places_by_case), "case")
    section = Section(
        head=f"**Where:** {jobs} of {cases}",
        entries=[
            SectionEntry(partial(_render_places, case, places), len(places))
            for case, places in places_by_case.items()
        ],
        noun="cases",
    )
    return fit_sections("\n\n".join(_render_topic(topic, url)), [section], room).rstrip()


def _group_places(jobs: Iterable[TopicJob]) -> dict[str, list[str]]:
    places: dict[str, list[str]] = defaultdict(list)
    for job in jobs:
        places[job.case].append(job.place)
    return places


def _render_topic(topic: Topic, url: str) -> Iterator[str]:
    yield f"**What:** {to_code(str(topic.verdict))}\n\n{fence(topic.reason)}"
    releases = dict.fromkeys(job.release for job in topic.jobs if job.release)
    if releases:
        yield f"**Releases of jax:** {_join_codes(list(releases))}"
    if topic.command:
        yield f"**Run it again:**\n\n{fence(topic.command)}"
    if url:
        base = url.rstrip("/")
        page = f"{base}/{href(case_page(topic.jobs[0].case))}"
        yield f"**Reports:** [root causes]({base}/{CAUSES}), [the first case]({page})"


def _render_places(case: str, places: list[str]) -> str:
    return f"- {to_code(case)} on {_join_codes(places)}"


def _join_codes(names: list[str]) -> str:
    more = f" and {len(names) - MAX_PLACES} more" if len(names) > MAX_PLACES else ""
    return f"{', '.join(map(to_code, names[:MAX_PLACES]))}{more}"


def _render_evidence(found: Evidence, reproduction: str, room: int) -> str:
    text = "\n\n".join(_render_findings(found))
    if not found.repro:
        return text
    where = f"**Reproduction:** {_UNATTACHED}{to_code(found.repro)} in the directory of the run."
    if found.command:
        where += f" It is run with {to_code(found.command)}."
    text = "\n\n".join(filter(None, (text, where)))
    shown = _cut_lines(reproduction, room - len(text) - MOST_BLOCK)
    if not shown:
        return text
    left = reproduction.count("\n") - shown.count("\n")
    note = f"\n\n*{plural(left, 'more line')} left out.*" if shown != reproduction else ""
    python = fence(shown, len(shown), "python")
    return f"{text}\n\n<details><summary>The file</summary>\n\n{python}{note}\n\n</details>"


def _render_findings(found: Evidence) -> Iterator[str]:
    yield f"**Looked into:** {to_code(found.case)} on {to_code(found.cell)}"
    if found.first_bad:
        good = found.last_good or found.good
        search = f"**By search:** first bad {to_code(found.first_bad)}"
        search += f", last good {to_code(good)}" if good else ""
        search += ", both confirmed by another run" if found.confirmed else ""
        yield search + (f": {to_code(found.predicate)}" if found.predicate else "")
    if found.culprits:
        lines = (f"- {to_code(format_culprit(culprit))}" for culprit in found.culprits)
        yield "**To blame:**\n\n" + "\n".join(lines)
    if found.commits:
        head = "**Commit:**" if len(found.commits) == 1 else "**One of these commits:**"
        lines = (f"- {to_code(format_commit(commit))}" for commit in found.commits)
        yield f"{head}\n\n" + "\n".join(lines)
    if found.layer:
        yield f"**Layer:** {to_code(found.layer)}"
    if found.remarks:
        yield "\n".join(f"- {to_code(text)}" for text in found.remarks)
    if found.unresolved:
        yield "**Not found out:**\n\n" + "\n".join(
            f"- {to_code(text)}" for text in found.unresolved
        )


def _cut_lines(text: str, room: int) -> str:
    """Return as much of a text as fits, up to the end of a line."""
    # Sanitized before it is cut, because a picture of a control code may be longer than the code.
    shown = sanitize(text, len(text))
    if len(shown) <= room:
        return shown
    return shown[: shown.rfind("\n", 0, max(0, room)) + 1]


def render_growth(jobs: Iterable[TopicJob], run: str) -> str:
    """Return the comment on new jobs that show a cause.

    Args:
        jobs: The new jobs.
        run: The run.
    """
    return f"Also seen since {to_code(run)}:\n\n{_list_jobs(jobs)}"


def render_reopening(jobs: Iterable[TopicJob], run: str) -> str:
    """Return the comment on a fixed cause that was seen again.

    Args:
        jobs: The jobs that show it.
        run: The run.
    """
    return f"This was closed as completed, and is seen in {to_code(run)}:\n\n{_list_jobs(jobs)}"


def render_closing(jobs: int, run: str) -> str:
    """Return the comment on a cause that is fixed.

    Args:
        jobs: How many jobs ever showed it.
        run: The run that showed it fixed.
    """
    which = "the job that showed it" if jobs == 1 else f"all {jobs:,} jobs that showed it"
    return f"Fixed: {which} ran up to {to_code(run)}, and what they show is fine."


def _list_jobs(jobs: Iterable[TopicJob]) -> str:
    lines = [_render_places(case, places) for case, places in _group_places(jobs).items()]
    more = len(lines) - MAX_CASES
    rest = [f"- and {plural(more, 'more case')}"] if more > 0 else []
    return "\n".join([*lines[:MAX_CASES], *rest])
