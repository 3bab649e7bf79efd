"""A conformance history as Markdown, for readers of the repository."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.model.upstream import find_thread_url
from conformance.report.markup import fold, to_code, to_table, wrap
from conformance.report.suites.conformance_history import (
    SuiteOutcome,
    find_failure_cause,
    shorten_test,
)
from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.report.suites.conformance_history import (
        Counts,
        ReleaseStep,
        SuiteHistory,
        SuiteResult,
        TrackedTest,
    )

FOLDED: Final = 6
"""Lines from which a list is folded."""
PARAMETERS: Final = 4
"""Parametrisations of one test that are named."""
CHANGES: Final = ("regressed", "fixed", "added", "removed")
"""Changes of tests by a release, as attributes of a step."""
SIGNS: Final = {"regressed": "▼ ", "fixed": "▲ "}
"""Signs of changes for better or worse."""
NOTHING: Final = "-"


def render_conformance(history: SuiteHistory) -> str:
    """Return a history as a page.

    Args:
        history: The history to show.
    """
    parts = [
        _render_head(history),
        *_render_releases(history),
        *_render_changes(history),
        *_render_failures(history),
    ]
    return "\n\n".join([*parts, *_render_own_cases(history)]) + "\n"


def _render_head(history: SuiteHistory) -> str:
    title = history.title or history.suite
    settings = ", ".join(f"{name} {value}" for name, value in history.settings.items() if value)
    releases = [held.release for held in history.releases]
    span = f"jax {releases[0]} to {releases[-1]}" if len(releases) > 1 else " ".join(releases)
    commit = f", at {to_code(history.revision[:12])}" if history.revision else ""
    how = f" ({settings})" if settings else ""
    suite = history.suite
    text = (
        f"Made by `conformance suite history {suite}` from runs of the suite {to_code(suite)}"
        f"{commit}, on {history.place}{how}: {len(history.tests):,} tests, run in full, none left "
        "out because it is known to fail. A number by itself says that so many tests were run and "
        "all of them passed; **81** of 84 says that three did not. What a release does not have, "
        "or a test itself skips, is not counted; a test that is known to fail now and then, for "
        "some of the examples that it draws, counts as a known failure."
    )
    return f"# {title}: {span}\n\n{wrap(text)}"


def _render_releases(history: SuiteHistory) -> Iterator[str]:
    """Yield a table of releases, and one of releases by groups; the newest release first."""
    yield "## Releases"
    standards = any(held.standard for held in history.releases)
    rows = [["release", "date", *(["standard"] if standards else []), "passed"]]
    rows[0] += ["known failures", "unexpected", "skipped", "against the one before"]
    for step in reversed(history.steps):
        held, found = step.after, history.counts(step.after.release)
        row = [held.release, held.date, *([held.standard] if standards else [])]
        row += [_render_share(found, percent=True), str(found.known or NOTHING)]
        unexpected = f"**{found.unexpected}**" if found.unexpected else NOTHING
        row += [unexpected, str(found.skipped or NOTHING), summarize_step(step)]
        rows.append(row)
    yield to_table(rows)
    yield "## Groups of functions"
    # Our own cases are marked: their share says nothing about the suite.
    groups = [(name, name) for name in history.groups]
    own = [(name, f"{name} (ours)") for name in history.families]
    rows = [["release", *(title for _, title in (*groups, *own))]]
    for held in reversed(history.releases):
        counts = (history.counts(held.release, name) for name, _ in (*groups, *own))
        rows.append([held.release, *map(_render_share, counts)])
    yield to_table(rows)


def _render_share(found: Counts, *, percent: bool = False) -> str:
    if not found.ran:
        return NOTHING
    if found.passed == found.ran:
        return f"{found.ran}"
    # Rounded down, so that a release with a failure never shows 100.0 %.
    part = f", {int(1000 * found.share) / 10:.1f} %" if percent else ""
    return f"**{found.passed}** of {found.ran}{part}"


def summarize_step(step: ReleaseStep) -> str:
    """Return the changes of a release, in a few words; empty without changes."""
    words = [f"{len(tests)} {word}" for word in CHANGES if (tests := getattr(step, word))]
    # Another version of the standard is tested by other tests: a change without any regression.
    if step.standards is not None:
        words.append(f"held against {step.standards[1]}")
    return ", ".join(words)


def _render_changes(history: SuiteHistory) -> Iterator[str]:
    yield "## What changed"
    changed = [
        step for step in reversed(history.steps) if step.before is not None and summarize_step(step)
    ]
    if not changed:
        yield "Nothing, from one release to the next."
    for step in changed:
        yield _render_change(step, history.tests)


def _render_change(step: ReleaseStep, tests: Mapping[str, TrackedTest]) -> str:
    before = step.before.release if step.before is not None else ""
    head = f"{step.after.release} against {before}: {summarize_step(step)}"
    lines: list[str] = []
    if step.standards is not None:
        was, now = step.standards
        lines.append(f"- it claims version {now} of the standard, the one before {was}")
    for word in CHANGES:
        for group, names in _group_names(getattr(step, word), tests):
            lines.append(f"- {SIGNS.get(word, '')}{word}, {group}: {join_tests(names)}")
    return fold_list(head, lines)


def _group_names(
    names: Iterable[str], tests: Mapping[str, TrackedTest]
) -> Iterator[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(tests[name].group, []).append(name)
    yield from sorted(found.items())


def _render_failures(history: SuiteHistory) -> Iterator[str]:
    """Yield the failures of the newest release, the unexpected first."""
    newest = history.newest
    if newest is None:
        return
    found = history.failing(newest.release)
    known = {name: one for name, one in found.items() if one.outcome is SuiteOutcome.KNOWN}
    others = {name: one for name, one in found.items() if name not in known}
    if others:
        yield f"## Unexpected in {newest.release}"
        yield _render_failure_table(others)
    yield f"## Known failures of {newest.release}"
    yield _render_failure_table(known) if known else "None."


def _render_failure_table(found: Mapping[str, SuiteResult]) -> str:
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, one in found.items():
        groups.setdefault(find_failure_cause(name, one), []).append(name)
    rows = [["tests", "which", "why", "upstream"]]
    for names in groups.values():
        first = found[names[0]]
        error = to_code(first.why) if first.why else first.outcome
        # Undeclared failures of a function are grouped by the type of their error alone: the
        # message is that of the first test.
        why = flatten(first.reason) or (f"{error} and the like" if len(names) > 1 else error)
        rows.append([str(len(names)), join_tests(names), why, link_thread(first.issue)])
    return to_table(rows)


def link_thread(issue: str) -> str:
    """Return an upstream thread as a link, any other text unchanged."""
    address = find_thread_url(issue)
    return f"[{issue}]({address})" if address else issue


def _render_own_cases(history: SuiteHistory) -> Iterator[str]:
    """Yield the changes and deviations of our own cases, which test what the suite does not."""
    if not history.own_cases:
        return
    yield "## What the suite does not test"
    for family in history.families:
        cases = {name: one for name, one in history.own_cases.items() if one.group == family}
        yield (
            f"`{family}` is a family of {len(cases)} scenario cases of our own, held against their "
            "own references; see [what JAX does, release by release](README.md)."
        )
        for step in reversed(history.own_case_steps):
            lines = [
                f"- {SIGNS.get(word, '')}{word}: `{name}`: {flatten(cases[name].doc)}"
                for word in ("regressed", "fixed")
                for name in getattr(step, word)
                if name in cases
            ]
            if lines and step.before is not None:
                yield fold_list(f"{step.after.release} against {step.before.release}", lines)
        newest = history.newest
        failing = history.failing(newest.release, family) if newest is not None else {}
        if newest is not None and failing:
            yield f"Deviations of {newest.release}:"
            rows = [["case", "what", "why", "upstream"]]
            rows += [
                [f"`{name}`", flatten(cases[name].doc), flatten(one.reason), link_thread(one.issue)]
                for name, one in failing.items()
            ]
            yield to_table(rows)


def join_tests(names: Sequence[str]) -> str:
    """Return names of tests in a line, parametrisations in brackets after their test.

    Args:
        names: The tests.
    """
    functions: dict[str, list[str]] = {}
    for name in names:
        function, sign, parameter = name.partition("[")
        functions.setdefault(function, []).append(parameter.removesuffix("]") if sign else "")
    texts = []
    for function, parameters in functions.items():
        named = [to_code(parameter) for parameter in parameters[:PARAMETERS] if parameter]
        more = len(parameters) - PARAMETERS
        rest = f" and {more} more" if more > 0 else ""
        texts.append(
            to_code(shorten_test(function)) + (f" ({', '.join(named)}{rest})" if named else "")
        )
    return ", ".join(texts)


def fold_list(head: str, lines: Sequence[str]) -> str:
    """Return a list under a heading, folded where it is long.

    Args:
        head: The heading, plain text.
        lines: The list.
    """
    body = "\n".join(lines)
    # A few lines of hundreds of tests are as long as many lines, so characters count too.
    if len(lines) < FOLDED and sum(map(len, lines)) < FOLDED * 120:
        return f"**{head}**\n\n{body}"
    return fold(head, body)
