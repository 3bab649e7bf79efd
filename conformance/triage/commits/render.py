"""The culprit between two releases in words and as JSON. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.cells.resolver import IMPORTED_BY_JAX
from conformance.model.run_files import CulpritCommit
from conformance.search.answers import (
    CONFIRMED,
    count_verdicts,
    describe_origin,
    format_seconds,
    format_some,
    render_flaky,
)
from conformance.search.axes import JAX
from conformance.triage.commits.commit_cells import NEWER, OLDER
from conformance.triage.commits.commit_search import CommitVerdict
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.cells.source_commit import SourceCommit
    from conformance.search.answers import SearchStep
    from conformance.search.axes import PackageMove
    from conformance.triage.commits.commit_cells import CommitCells
    from conformance.triage.commits.commit_search import CommitFinding, CrossPoint
    from conformance.triage.commits.xla_revisions import JaxlibRange

JAX_URL: Final = "https://github.com/jax-ml/jax"
"""The public repository of jax."""
JAXLIB: Final = "jaxlib"
FILES: Final = 4
"""Maximum number of files in a line."""
COMMITS: Final = 8
"""Maximum number of commits in a list."""


class PackageCulprit(NamedTuple):
    """The culprit between two releases of a package, with its evidence.

    Attributes:
        package: The package.
        finding: The result of the search.
        url: URL of the repository, or its folder.
        files: The files that the commit changes, if there is one.
        moves: Other packages that differ between the releases, if no commit alone explains it.
        jaxlib: The changes of jaxlib, if it is a candidate.
        nights: The nightlies between which it changed, None if none were tried.
    """

    package: str
    finding: CommitFinding
    url: str
    files: tuple[str, ...] = ()
    moves: tuple[PackageMove, ...] = ()
    jaxlib: JaxlibRange | None = None
    nights: tuple[str, str] | None = None

    @property
    def releases(self) -> tuple[str, str]:
        """Names of the older and of the newer release."""
        older, newer = self.finding.cells.bases
        return older.label, newer.label

    @property
    def is_single(self) -> bool:
        """Whether the culprit is one commit."""
        return len(self.finding.candidates) == 1

    @property
    def is_in_jaxlib(self) -> bool:
        """Whether no commit of jax explains the change, so that jaxlib may."""
        return self.package == JAX and self.finding.verdict is CommitVerdict.ENVIRONMENT

    def make_link(self, commit: SourceCommit) -> str:
        """Return the URL of a commit, empty if the repository has none."""
        public = self.url if self.url.startswith("https://") else ""
        public = public or (JAX_URL if self.package == JAX else "")
        return f"{public}/commit/{commit.short}" if public else ""


def format_commit_step(step: SearchStep[int], cells: CommitCells) -> str:
    """Return the trial of a commit in a line.

    Args:
        step: The step.
        cells: The commits.
    """
    commit = cells.commits[step.point]
    verdict = "" if step.state is None else str(step.state.kind)
    return f"{commit.short} {commit.date} {verdict:<8} {step.summary}{describe_origin(step)}"


def format_check(step: SearchStep[CrossPoint], cells: CommitCells) -> str:
    """Return the trial of a release's sources in the environment of the other in a line.

    Args:
        step: The step.
        cells: The commits.
    """
    number, base = step.point
    of_releases = {0: cells.bases[OLDER].label, len(cells) - 1: cells.bases[NEWER].label}
    sources = of_releases.get(number, cells.labels[number])
    verdict = "" if step.state is None else str(step.state.kind)
    where = f"sources of {sources}, packages of {cells.bases[base].label}"
    return f"{where}: {verdict} {step.summary}{describe_origin(step)}"


def render_culprit(culprit: PackageCulprit) -> Iterator[str]:
    """Yield the lines of an answer.

    Args:
        culprit: The answer.
    """
    finding = culprit.finding
    yield from _render_verdict(culprit)
    if culprit.jaxlib is not None:
        yield from _render_jaxlib(culprit.jaxlib)
    yield from _render_other_changes(finding)
    yield from finding.remarks
    for number, seen in finding.flaky.items():
        counts = count_verdicts(seen, lambda state: str(state.kind))
        yield render_flaky(finding.cells.labels[number], counts)
    if finding.main is not None and not finding.flaky:
        yield CONFIRMED
    both: tuple[SearchStep[Any], ...] = (*finding.checks, *finding.steps)
    steps = [step for step in both if not step.again]
    tried = plural(len(steps), "trial")
    yield f"{tried} for {plural(len(finding.cells) - 1, 'commit')}, {format_seconds(steps)}"


def _render_verdict(culprit: PackageCulprit) -> Iterator[str]:
    finding, package = culprit.finding, culprit.package
    older, newer = culprit.releases
    candidates = finding.candidates
    if finding.verdict is CommitVerdict.ENVIRONMENT:
        same = "the same packages" if finding.is_confirmed else f"the packages of {older}"
        yield (
            f"no commit of {package} explains it: the sources of {older} and {newer} behave alike "
            f"with {same}"
        )
        yield f"culprit: {_format_moves(culprit)}"
        if others := [str(move) for move in culprit.moves if not _is_near(move)]:
            yield f"if the target imports them, also: {format_some(others, COMMITS)}"
        if culprit.nights is not None:
            yield f"it changed between {culprit.nights[0]} and {culprit.nights[1]}"
    elif finding.verdict is CommitVerdict.UNTESTABLE:
        yield f"no commit: none between {package} {older} and {newer} can be tried"
    elif culprit.is_single:
        yield from _render_commit(culprit, candidates[0], "commit: ")
        if culprit.files:
            yield f"  changes {format_some(culprit.files, FILES)}"
    else:
        yield f"one of {len(candidates)} commits, as those before the last cannot be tried:"
        for commit in candidates[:COMMITS]:
            yield from _render_commit(culprit, commit, "  ")
        if len(candidates) > COMMITS:
            yield f"  and {len(candidates) - COMMITS} more"
    if finding.verdict is CommitVerdict.INTERACTION:
        yield _format_condition(culprit)


def _format_condition(culprit: PackageCulprit) -> str:
    """Return the packages without which a commit makes no difference, in words."""
    return f"only with the packages of {culprit.releases[1]}: {_format_moves(culprit)}"


def _render_commit(culprit: PackageCulprit, commit: SourceCommit, head: str) -> Iterator[str]:
    yield f"{head}{commit.short} {commit.date} {commit.title}"
    more = [*commit.references, culprit.make_link(commit)]
    if any(more):
        yield f"  {' '.join(filter(None, more))}"


def _format_moves(culprit: PackageCulprit) -> str:
    """Return the packages that jax itself imports and that differ, in words."""
    near = sorted(filter(_is_near, culprit.moves), key=lambda move: move.package != JAXLIB)
    return format_some([str(move) for move in near], COMMITS) or "no package that jax imports"


def _is_near(move: PackageMove) -> bool:
    return move.package in (JAXLIB, *IMPORTED_BY_JAX)


def _render_jaxlib(jaxlib: JaxlibRange) -> Iterator[str]:
    if jaxlib.url:
        updates = plural(len(jaxlib.updates), "revision update")
        yield f"XLA: {updates} between the two, {jaxlib.url}"
        for update in jaxlib.updates[-COMMITS:]:
            yield f"  {update.commit.date} {update.commit.short} pins {update.revision[:12]}"
        if len(jaxlib.updates) > COMMITS:
            yield f"  and {len(jaxlib.updates) - COMMITS} before them"
    elif jaxlib.before:
        yield f"XLA: revision {jaxlib.before[:12]} in both"
    if jaxlib.own:
        own = plural(len(jaxlib.own), "commit")
        yield f"jaxlib itself: {own} between {jaxlib.own[0].short} and {jaxlib.own[-1].short}"


def _render_other_changes(finding: CommitFinding) -> Iterator[str]:
    """Yield the changes other than the main one: the history is not monotonic."""
    commits = finding.cells.commits
    for change in finding.changes:
        if change == finding.main or finding.main is None:
            continue
        commit, state = commits[change.after], finding.states[change.after]
        yield f"also changes at {commit.short} {commit.date}, to {state.kind}: {commit.title}"


def list_culprit_commits(culprit: PackageCulprit) -> tuple[CulpritCommit, ...]:
    """Return the commits of an answer as the evidence of a root cause has them.

    Args:
        culprit: The answer.
    """
    return tuple(
        CulpritCommit(
            package=culprit.package, hash=commit.hash, date=commit.date, title=commit.title,
            references=commit.references, url=culprit.make_link(commit),
        )
        for commit in culprit.finding.candidates
    )  # fmt: skip


def render_environment(culprit: PackageCulprit) -> Iterator[str]:
    """Yield the lines about other packages, if they take part in the difference.

    Args:
        culprit: The answer.
    """
    if culprit.finding.verdict is CommitVerdict.ENVIRONMENT:
        yield from _render_verdict(culprit)
    elif culprit.finding.verdict is CommitVerdict.INTERACTION:
        yield _format_condition(culprit)
    if culprit.jaxlib is not None and culprit.jaxlib.url:
        yield f"XLA: {culprit.jaxlib.url}"


def make_culprit_json(culprit: PackageCulprit) -> dict[str, Any]:
    """Return an answer as `--json` has it.

    Args:
        culprit: The answer.
    """
    finding, jaxlib = culprit.finding, culprit.jaxlib
    cells = finding.cells
    return {
        "package": culprit.package,
        "releases": list(culprit.releases),
        "verdict": str(finding.verdict),
        "confirmed": finding.is_confirmed,
        "commits": [_make_commit_json(culprit, commit) for commit in finding.candidates],
        "files": list(culprit.files),
        "packages": [
            {"package": move.package, "from": move.before, "to": move.after}
            for move in culprit.moves
        ],
        "xla": None
        if jaxlib is None
        else {
            "from": jaxlib.before,
            "to": jaxlib.after,
            "url": jaxlib.url,
            "updates": [
                {"commit": update.commit.hash, "date": update.commit.date,
                 "revision": update.revision}
                for update in jaxlib.updates
            ],
        },
        "nights": culprit.nights,
        "remarks": list(finding.remarks),
        "steps": [
            *(_make_step_json(step, *step.point, cells) for step in finding.checks),
            *(
                _make_step_json(step, step.point, cells.bases_used.get(step.point, OLDER), cells)
                for step in finding.steps
            ),
        ],
    }  # fmt: skip


def _make_commit_json(culprit: PackageCulprit, commit: SourceCommit) -> dict[str, Any]:
    return {
        "commit": commit.hash,
        "date": commit.date,
        "title": commit.title,
        "references": list(commit.references),
        "url": culprit.make_link(commit),
    }


def _make_step_json(
    step: SearchStep[Any], number: int, base: int, cells: CommitCells
) -> dict[str, Any]:
    return {
        "commit": cells.commits[number].hash,
        "packages_of": cells.bases[base].label,
        "outcome": str(step.samples[-1].outcome),
        "verdict": "" if step.state is None else str(step.state.kind),
        "summary": step.summary,
        "seconds": step.seconds,
        "again": step.again,
    }
