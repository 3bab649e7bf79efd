"""The content of `run.json`: enough to report on a run without its cases and cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.model.case import (
    POLICY,
    Budget,
    Deviation,
    Kind,
    Policy,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCell:
    """A cell of a run.

    Attributes:
        id: Cell id.
        lock: Hash of its lock; of a `path:` cell, of what is installed there.
        hash: Hash of all that decides what a job observes there, but the case.
        versions: Version of every package, by normalised name.
        layer: Hash of the lock of what it has beside, empty for nothing.
        selector: The `--cell` that names it, empty in runs of an older release; the id of a cell,
            except for a `path:` cell, because its id does not contain the interpreter.
        note: What a reader of its results must know, e.g. that installed files were edited.
    """

    id: str
    lock: str = ""
    hash: str = ""
    layer: str = ""
    selector: str = ""
    note: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def release(self) -> str:
        """Version of jax in the cell, empty when that is not known."""
        return self.versions.get("jax", "")

    @property
    def label(self) -> str:
        """Its label: its release, or its id where that is not known."""
        return self.release or self.id


def selector_of(cells: Iterable[RunCell], cell: str) -> str:
    """Return the `--cell` that names a cell of a run.

    Args:
        cells: Cells of the run.
        cell: Its id, which is returned where no other selector is known.
    """
    return next((one.selector for one in cells if one.id == cell and one.selector), cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCase:
    """A case of a run, as it was when it ran.

    Attributes:
        file: File it is written in, below the folder of the project.
        line: Line of its `def`, from 1.
        kind: `program`, `probe` or `test`.
        doc: Its docstring.
        code: Its function as written, decorator and all.
        source: Upstream thread or document it comes from.
        records: Why it only records, empty for a case with a reference or a claim.
        devices: Devices it needs.
        requires: Packages it needs.
        releases: PEP 440 specifier of the releases it applies to.
        deviations: Declared non-conformances.
        policy: What a change does to a run, by artifact.
        rtol: Tolerance relative to the reference; None is the dtype's default.
        atol: Absolute tolerance; None is 0 under a stated rtol, else scaled to the leaf.
        budgets: Tolerances to the reference in ULP, by platform.
        same_as: Ways to run it in each of which it is to give the same value.
        arguments: What names it on a command line, spelled for a shell, where that is not its id.
        group: Of a test, the group that its suite counts it under.
    """

    file: str = ""
    line: int = 0
    kind: Kind = "program"
    doc: str = ""
    code: str = ""
    source: str = ""
    records: str = ""
    devices: int = 1
    requires: tuple[str, ...] = ()
    releases: str = ""
    deviations: tuple[Deviation, ...] = ()
    policy: dict[str, Policy] = field(default_factory=dict)
    rtol: float | None = None
    atol: float | None = None
    budgets: tuple[Budget, ...] = ()
    same_as: tuple[str, ...] = ()
    arguments: str = ""
    group: str = ""

    def policy_of(self, artifact: str) -> Policy:
        """Return what a change of an artifact does to a run."""
        return self.policy.get(artifact, POLICY[artifact])


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A job that is left out on purpose; `case` is empty for a whole cell."""

    case: str
    cell: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSuite:
    """The pytest suite that a run is of.

    Attributes:
        name: Its name; of a user's suite its paths.
        title: What it is called on pages.
        revision: Commit of its checkout, empty where that is not known.
        complete: Whether it was run whole: no path, node or argument of pytest's left tests out.
        settings: What else was asked for: `max_examples`, `seed`, `shrink`, `standard`.
    """

    name: str
    title: str = ""
    revision: str = ""
    complete: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A run as its `run.json` tells of it; what an older release did not write is empty.

    Attributes:
        started: When it began, ISO 8601 in UTC.
        finished: When it ended; empty of a run that did not.
        exit: Exit status; None of a run that did not end.
        exit_reason: Why the exit status is that one, empty for a run in which all is as expected.
        not_compared: Why the run was not compared with an earlier one; empty if it was, or if
            that was not asked for.
        root: Folder of the project; paths of case files are shown relative to it.
        request: What was asked for.
        matrix: Name or file of the matrix, empty where cells were named.
        versions: Of this project, its kit and the Python it ran on.
        host: Facts of the host.
        cells: The cells.
        identities: What the workers said they are, by cell id.
        exclusions: What was left out.
        plan: Case id and cell id of every job, in order.
        cases: The cases, by id.
        suite: The suite whose tests they are, None of cases.
    """

    started: str = ""
    finished: str = ""
    exit: int | None = None
    exit_reason: str = ""
    not_compared: str = ""
    root: str = ""
    request: dict[str, Any] = field(default_factory=dict)
    matrix: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)
    cells: tuple[RunCell, ...] = ()
    identities: dict[str, dict[str, Any]] = field(default_factory=dict)
    exclusions: tuple[Exclusion, ...] = ()
    plan: tuple[tuple[str, str], ...] = ()
    cases: dict[str, RunCase] = field(default_factory=dict)
    suite: RunSuite | None = None
