"""The text of an issue about a root cause, and of comments on it. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from conformance.notify.marks import IssueBody, tame
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
from conformance.triage.evidence import format_culprit
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.model.run_files import Evidence
    from conformance.notify.topic import Topic, TopicJob

LIMIT: Final = 65_536
"""Characters that GitHub takes of the text of an issue."""
ROOM: Final = 4_000
"""Characters that our part needs at least."""
_FACTS: Final = 20_000
"""Characters that the cases may take."""
_LISTED: Final = 20
"""Cases that a comment names."""
_PLACES: Final = 12
"""Places that are named of a case."""
_UNATTACHED: Final = (
    "GitHub takes no attachments from programs, so it is shown here; the file itself is "
)


def new_body(topic: Topic, url: str) -> str:
    """Return the text of a new issue.

    Args:
        topic: The root cause.
        url: Where the site is, empty if it is nowhere.
    """
    return _write(IssueBody(cause=topic.id, status=""), topic, url).text


def rewritten(body: IssueBody, topic: Topic, url: str) -> IssueBody | None:
    """Return a text with our part of it written anew; None if people left no room for it.

    What was found out on another night stays where nothing was tonight.

    Args:
        body: The text.
        topic: The root cause.
        url: Where the site is, empty if it is nowhere.
    """
    return None if LIMIT - body.others < ROOM else _write(body, topic, url)


def _write(body: IssueBody, topic: Topic, url: str) -> IssueBody:
    status = f"Open: first seen in {to_code(topic.first)}." if topic.first else "Open."
    if topic.good:
        status += f" Last good before it: {to_code(topic.good)}."
    room = LIMIT - body.others - len(status)
    facts = tame(_render_facts(topic, url, min(_FACTS, room)))
    room -= len(facts)
    evidence = body.evidence
    if topic.evidence is not None:
        evidence = tame(_render_evidence(topic.evidence, topic.reproduction, room))
    if len(evidence) > room:
        evidence = ""
    return replace(body, status=tame(status), facts=facts, evidence=evidence)


def fixed(body: IssueBody, run: str) -> IssueBody | None:
    """Return a text that says that the cause is gone; None if it does already, or cannot.

    Args:
        body: The text.
        run: The run that showed it gone.
    """
    status = tame(f"Fixed: all of its jobs ran up to {to_code(run)} and are fine.")
    told = replace(body, status=status)
    return None if body.status == status or len(told.text) > LIMIT else told


def _render_facts(topic: Topic, url: str, most: int) -> str:
    cases: dict[str, list[str]] = defaultdict(list)
    for job in topic.jobs:
        cases[job.case].append(job.place)
    section = Section(
        head=f"**Where:** {plural(len(topic.jobs), 'job')} of {plural(len(cases), 'case')}",
        entries=[
            SectionEntry(partial(_place_line, case, places), len(places))
            for case, places in cases.items()
        ],
        what="cases",
    )
    return fit_sections("\n\n".join(_describe(topic, url)), [section], most).rstrip()


def _describe(topic: Topic, url: str) -> Iterator[str]:
    yield f"**What:** {to_code(str(topic.verdict))}\n\n{fence(topic.reason)}"
    releases = dict.fromkeys(job.release for job in topic.jobs if job.release)
    if releases:
        yield f"**Releases of jax:** {', '.join(map(to_code, list(releases)[:_PLACES]))}" + (
            f" and {len(releases) - _PLACES} more" if len(releases) > _PLACES else ""
        )
    if topic.command:
        yield f"**Run it again:**\n\n{fence(topic.command)}"
    if url:
        base = url.rstrip("/")
        page = f"{base}/{href(case_page(topic.jobs[0].case))}"
        yield f"**Reports:** [root causes]({base}/{CAUSES}), [the first case]({page})"


def _place_line(case: str, places: list[str]) -> str:
    more = f" and {len(places) - _PLACES} more" if len(places) > _PLACES else ""
    return f"- {to_code(case)} on {', '.join(map(to_code, places[:_PLACES]))}{more}"


def _render_evidence(found: Evidence, reproduction: str, most: int) -> str:
    text = "\n\n".join(_render_findings(found))
    if not found.repro:
        return text
    told = f"**Reproduction:** {_UNATTACHED}{to_code(found.repro)} in the directory of the run."
    if found.command:
        told += f" It is run with {to_code(found.command)}."
    text = "\n\n".join(filter(None, (text, told)))
    shown = _whole_lines(reproduction, most - len(text) - MOST_BLOCK)
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
        told = f"**By search:** first bad {to_code(found.first_bad)}"
        told += f", last good {to_code(good)}" if good else ""
        told += ", both confirmed by another run" if found.confirmed else ""
        yield told + (f": {to_code(found.asked)}" if found.asked else "")
    if found.culprits:
        lines = (f"- {to_code(format_culprit(one))}" for one in found.culprits)
        yield "**To blame:**\n\n" + "\n".join(lines)
    if found.untold:
        yield "**Not found out:**\n\n" + "\n".join(f"- {to_code(one)}" for one in found.untold)


def _whole_lines(text: str, most: int) -> str:
    """Return as much of a text as fits, up to the end of a line."""
    shown = sanitize(text, len(text))
    if len(shown) <= most:
        return shown
    return shown[: shown.rfind("\n", 0, max(0, most)) + 1]


def grown(jobs: Iterable[TopicJob], run: str) -> str:
    """Return the comment on what else shows a cause since a run.

    Args:
        jobs: The jobs that are new.
        run: The run.
    """
    return f"Also seen since {to_code(run)}:\n\n{_list_jobs(jobs)}"


def seen_again(jobs: Iterable[TopicJob], run: str) -> str:
    """Return the comment on a cause that is there again.

    Args:
        jobs: The jobs that show it.
        run: The run.
    """
    return f"This was closed as completed, and is seen in {to_code(run)}:\n\n{_list_jobs(jobs)}"


def gone(jobs: int, run: str) -> str:
    """Return the comment on a cause that is gone.

    Args:
        jobs: How many jobs ever showed it.
        run: The run that showed it gone.
    """
    told = "the job that showed it" if jobs == 1 else f"all {jobs:,} jobs that showed it"
    return f"Fixed: {told} ran up to {to_code(run)}, and what they show is fine."


def _list_jobs(jobs: Iterable[TopicJob]) -> str:
    cases: dict[str, list[str]] = defaultdict(list)
    for job in jobs:
        cases[job.case].append(job.place)
    lines = [_place_line(case, places) for case, places in cases.items()]
    more = len(lines) - _LISTED
    return "\n".join(
        [*lines[:_LISTED], *([f"- and {plural(more, 'more case')}"] if more > 0 else [])]
    )
