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
        lock: Hash of its lock; for a `path:` cell, of its installed packages.
        hash: Hash of everything except the case that an observation depends on.
        versions: Version of every package, by normalised name.
        layer: Hash of the lock of its overlay, empty for none.
        selector: Value of `--cell` that selects it, empty in runs of an older release. It is the
            id, except for a `path:` cell, because that id does not contain the interpreter.
        note: Note for readers of its results, e.g. that installed files were edited.
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
        """Version of jax in the cell, empty if unknown."""
        return self.versions.get("jax", "")

    @property
    def label(self) -> str:
        """Label on pages: the release of jax, or the id if the release is unknown."""
        return self.release or self.id


def selector_of(cells: Iterable[RunCell], cell: str) -> str:
    """Return the value of `--cell` that selects a cell of a run.

    Args:
        cells: Cells of the run.
        cell: Cell id, which is returned if no other selector is known.
    """
    return next((known.selector for known in cells if known.id == cell and known.selector), cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCase:
    """A case of a run, with the content that it had during the run.

    Attributes:
        file: Case file, relative to the folder of the project.
        line: Line of its `def`, from 1.
        kind: `program`, `probe` or `test`.
        doc: Docstring, empty for none.
        code: Source of the function, with its decorators.
        source: Upstream thread or document of its origin.
        records: Why it has neither a reference nor a claim; empty if it has one of them.
        devices: Number of devices that it needs.
        requires: Packages that it needs.
        releases: PEP 440 specifier of the jax releases that it applies to; empty is all.
        deviations: Declared non-conformances.
        policy: Policy by artifact; the default is `POLICY`.
        rtol: Tolerance relative to the reference; None is the dtype's default.
        atol: Absolute tolerance; None is 0 if `rtol` is given, else scaled to the leaf.
        budgets: Tolerances relative to the reference in ULP, by platform.
        same_as: Variants that must give the same value.
        arguments: Command-line arguments that select it, quoted for a shell, if they are not its
            id.
        group: Group of a test in its suite, empty for none.
    """

    # Every field has a default: `run.json` of an older release may lack any of them.

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
        """Return the policy for an artifact."""
        return self.policy.get(artifact, POLICY[artifact])


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A job that is not run, with the reason; `case` is empty for a whole cell."""

    case: str
    cell: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSuite:
    """The pytest suite of a run.

    Attributes:
        name: Name of the suite; for a user's suite, its paths.
        title: Title on pages.
        revision: Commit of its checkout, empty if unknown.
        complete: Whether all of its tests were selected, by no path, node id or pytest option.
        settings: Other options: `max_examples`, `seed`, `shrink`, `standard`.
    """

    name: str
    title: str = ""
    revision: str = ""
    complete: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """The content of `run.json`; fields that an older release did not write are empty.

    Attributes:
        started: Start of the run, ISO 8601 in UTC.
        finished: End of the run; empty if it did not end.
        exit: Exit status; None if the run did not end.
        exit_reason: Reason of the exit status, empty if every result is expected.
        not_compared: Why the run was not compared with an earlier one; empty if it was, or if
            no comparison was requested.
        root: Folder of the project; paths of case files are shown relative to it.
        request: Options of the command.
        matrix: Name or file of the matrix, empty if cells were named.
        versions: Versions of this project and of Python, and the hash of the kit.
        host: Facts of the host.
        cells: Cells of the run.
        identities: Identities that the workers reported, by cell id.
        exclusions: Exclusions of the plan.
        plan: Case id and cell id of every job, in order.
        cases: Cases of the plan, by id.
        suite: Suite whose tests the cases are, None for cases of case files.
    """

    # `plan` is stored before the first job: a killed run shows which of its jobs are missing.

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
