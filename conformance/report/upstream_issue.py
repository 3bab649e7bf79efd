"""A bug report for upstream's template, as Markdown that texts from elsewhere cannot break."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from packaging.specifiers import SpecifierSet

from conformance.engine.job_comparison import IrLevel
from conformance.judge.conformance import describe_outcome, select_deviations
from conformance.model.observation import ExpectedError
from conformance.model.outcome import Outcome
from conformance.report.markup import fence, to_code
from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.engine.job import PlannedCell
    from conformance.engine.job_comparison import JobComparison
    from conformance.model.case import Case
    from conformance.model.observation import Observation
    from conformance.triage.repro.script_file import ScriptRun


# GitHub refuses an issue of more than 65,536 characters, of which the file has most.
MOST_FILE = 60_000
MOST_CHANGES, MOST_LINES = 5, 4
SHOWN = ("jax", "jaxlib", "numpy", "scipy", "ml-dtypes", "flax", "libtpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamBug:
    """The subject of a bug report.

    Attributes:
        case: The case.
        planned: The cell that shows it.
        observation: The observation on that cell.
        reasons: Why it does not conform.
        file: The file that shows it.
        compared: Comparison with the same case on another cell, None for none.
        span: Releases for which goldens record the same ending.
        history: Lines about a bisection, its result first; empty without a bisection.
    """

    case: Case
    planned: PlannedCell
    observation: Observation
    reasons: tuple[str, ...]
    file: str
    compared: JobComparison | None = None
    span: str = ""
    history: str = ""


def render_issue(bug: UpstreamBug) -> str:
    """Return a bug report: title, description, code, versions.

    Args:
        bug: The subject.
    """
    return fill_template(
        to_code(_make_title(bug)),
        _render_description(bug),
        bug.file,
        _list_system(bug),
        difference=_render_difference(bug),
    )


def fill_template(
    title: str,
    description: Iterable[str],
    file: str,
    system: Mapping[str, object],
    difference: Iterable[str] = (),
) -> str:
    """Return a bug report for upstream's template, as Markdown.

    Args:
        title: Its title.
        description: Its paragraphs.
        file: Text of the file that shows it.
        system: Versions and platform, by name.
        difference: Further paragraphs about a comparison.
    """
    # The headings are those of the bug report form of jax-ml/jax.
    parts = [
        f"**Title:** {title}",
        "### Description",
        *description,
        "### Code\n\nRun it with `uv run FILE`; its header pins the versions.",
        fence(file, MOST_FILE, "python"),
        *difference,
        "### System info (python version, jaxlib version, accelerator, etc.)",
        fence("\n".join(f"{name:10} {value}" for name, value in system.items())),
    ]
    return "\n\n".join(parts) + "\n"


def _render_description(bug: UpstreamBug) -> Iterator[str]:
    if bug.case.doc:
        yield fence(bug.case.doc)
    yield f"Expected: {_describe_expected(bug)}"
    yield f"Seen: {to_code(describe_outcome(bug.observation))}"
    if bug.observation.error is not None:
        yield fence(f"{bug.observation.error.type}: {bug.observation.error.message}")
    elif bug.reasons:
        yield fence("\n".join(bug.reasons))
    yield from _render_declared(bug)
    if bug.history:
        yield f"By bisection over releases:\n\n{fence(bug.history)}"


def _make_title(bug: UpstreamBug) -> str:
    name, release = bug.case.name, bug.planned.release
    if bug.observation.outcome is Outcome.OK:
        return f"{name}: {bug.reasons[0] if bug.reasons else 'runs'} (jax {release})"
    return f"{name}: {describe_outcome(bug.observation)} (jax {release})"


def _describe_expected(bug: UpstreamBug) -> str:
    reference = bug.observation.reference
    if isinstance(reference, ExpectedError):
        matching = f" matching {to_code(reference.match)}" if reference.match else ""
        return f"it raises {to_code(reference.type)}{matching}."
    claims = []
    if reference is not None:
        claims.append("the result agrees with a reference that is computed by other means")
    facts = bug.case.facts.items()
    claims += [f"{to_code(name)} is {to_code(repr(value))}" for name, value in facts]
    return f"{'; '.join(claims) or 'it runs'}."


def _render_declared(bug: UpstreamBug) -> Iterator[str]:
    """Yield the recorded and declared releases that show it."""
    planned = bug.planned
    if bug.span:
        yield f"Recorded to end the same on jax {to_code(bug.span)}."
    declared = select_deviations(bug.case, planned.release, planned.cell.platform, planned.versions)
    for one in declared:
        text = "Known to be seen on "
        text += to_code(f"jax{one.releases}") if one.releases else "every release"
        text += f" on {to_code(one.platform)}" if one.platform else ""
        text += f": {to_code(one.reason)}" if one.reason else ""
        text += f" ({to_code(one.issue)})" if one.issue else ""
        # Only a lower bound dates the first release: with `<0.6` it is unknown.
        lower = [s for s in SpecifierSet(one.releases) if s.operator in {">=", "==", ">"}]
        if lower:
            text += f". First release with it, by that range: {to_code(lower[0].version)}"
        yield f"{text}."


def _render_difference(bug: UpstreamBug) -> Iterator[str]:
    """Yield the outcome on the other cell, and how the IRs differ."""
    if bug.compared is None:
        return
    good, bad = bug.compared.cells
    yield f"### Difference\n\nFrom {to_code(good)} to {to_code(bad)}: " + (
        to_code(bug.compared.difference)
        if bug.compared.difference
        else "the same outcome and value."
    )
    for one in bug.compared.irs:
        if one.diff is None or one.equal(IrLevel.EXACT):
            continue
        # Patterns instead of a diff of both texts, which for HLO is thousands of renamed lines.
        lines = [f"{one.ir}: how often each pattern of change occurs"]
        for change in IrLevel.EXACT.select_changes(one.diff)[:MOST_CHANGES]:
            lines.append(change.line)
            lines += [f"- {line}" for line in change.before[:MOST_LINES]]
            lines += [f"+ {line}" for line in change.after[:MOST_LINES]]
        yield fence("\n".join(lines))


def _list_system(bug: UpstreamBug) -> dict[str, object]:
    planned = bug.planned
    cell = planned.cell
    real = "compile-only, no such devices here" if cell.place.compile_only else "devices"
    return {
        **{name: planned.versions[name] for name in SHOWN if name in planned.versions},
        "python": cell.python,
        "platform": cell.platform,
        "devices": f"{bug.case.devices or cell.devices} of {cell.devices} ({real})",
        "cell": cell.id,
        **({"config": dict(cell.config)} if cell.config else {}),
    }


TITLE: Final = 100
"""Characters of a title, without the release."""
LAST_LINES: Final = 12
"""Lines of output that an issue shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBadRelease:
    """The first release on which a script fails, by a search.

    Attributes:
        last_good: The release before it, e.g. `0.6.0`.
        first_bad: The first release that fails.
        good: Ending of the script on the release before, in a line.
        history: Result of the search, in lines.
        culprit: The commit behind the change, in lines; empty if it was not searched for.
    """

    last_good: str
    first_bad: str
    good: str
    history: str
    culprit: str = ""

    @property
    def text(self) -> str:
        """The result of the search, with the commit if it is known."""
        return "\n\n".join(filter(None, (self.history, self.culprit)))


def render_script_issue(run: ScriptRun, file: str, origin: FirstBadRelease | None) -> str:
    """Return a bug report for upstream's template.

    Args:
        run: The script, and how it ended.
        file: Text of the file that shows it.
        origin: First bad release, None if it was not searched for.
    """
    since = f"since jax {origin.first_bad}" if origin else f"on jax {run.planned.release}"
    what = run.ending if run.error is not None else f"another output of {run.name}"
    cell = run.planned.cell
    # Only pinned packages: others of the environment are not what a maintainer would install.
    pinned = {pin.partition("==")[0] for pin in run.pins}
    system = {
        **{name: run.versions[name] for name in SHOWN if name in pinned},
        "python": cell.python,
        "platform": cell.platform,
    }
    return fill_template(
        f"{to_code(flatten(what, TITLE))} {since}",
        _render_script_description(run, origin),
        file,
        system,
    )


def _render_script_description(run: ScriptRun, origin: FirstBadRelease | None) -> Iterator[str]:
    if origin is not None:
        good = "the script ends well" if origin.good == "ok" else to_code(origin.good)
        yield f"Expected, as on jax {origin.last_good}: {good}"
    elif run.error is not None:
        yield "Expected: the script ends well."
    yield f"Seen on jax {run.planned.release}: {to_code(run.ending)}"
    if run.error is not None:
        yield fence(f"{run.error.type}: {run.error.message}")
    if run.stdout.strip():
        lines = run.stdout.strip().splitlines()[-LAST_LINES:]
        yield f"It prints:\n\n{fence(chr(10).join(lines))}"
    if origin is not None:
        yield f"By bisection over releases:\n\n{fence(origin.text)}"
