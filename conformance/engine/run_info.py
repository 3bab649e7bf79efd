"""The content of `run.json`, before the first job of a run and after its last."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from conformance import __version__
from conformance.engine.result_cache import host_facts, kit_hash
from conformance.model.run import RunCase, RunCell, RunInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from conformance.engine.plan import Plan
    from conformance.model.case import Case
    from conformance.model.outcome import ExitCode
    from conformance.model.run import RunSuite

_KEPT: Final = tuple(
    field.name for field in fields(RunCase) if field.name not in {"file", "policy"}
)
"""Fields of a case that a run stores unchanged."""


def make_run_info(
    plan: Plan,
    *,
    request: Mapping[str, Any],
    matrix: str,
    root: Path,
    suite: RunSuite | None = None,
) -> RunInfo:
    """Return what is known of a run before its first job.

    Args:
        plan: What is run.
        request: What was asked for.
        matrix: Name or file of the matrix, empty where cells were named.
        root: Folder of the project.
        suite: The suite that is run, None for cases.
    """
    return RunInfo(
        started=current_time(),
        root=str(root.absolute()),
        request=dict(request),
        matrix=matrix,
        versions={"jax-conformance": __version__, "kit": kit_hash(), "python": sys.version},
        host=dict(host_facts()),
        cells=tuple(
            RunCell(
                id=p.cell.id,
                lock=p.lock_hash,
                hash=p.cell_hash,
                layer=p.layer,
                selector=p.cell.selector,
                note=p.note,
                versions=dict(p.versions),
            )
            for p in plan.cells
        ),
        exclusions=plan.exclusions,
        plan=tuple(job.id for job in plan.jobs),
        cases=describe_cases((job.case for job in plan.jobs), root),
        suite=suite,
    )


def describe_cases(cases: Iterable[Case], root: Path) -> dict[str, RunCase]:
    """Return what `run.json` keeps of cases, by id.

    Args:
        cases: The cases, the same one maybe many times.
        root: Folder that their files are told from.
    """
    unique = {case.id: case for case in cases}
    return {
        name: RunCase(
            file=str(case.file.relative_to(root) if case.file.is_relative_to(root) else case.file),
            policy=dict(case.policy),
            **{name: getattr(case, name) for name in _KEPT},
        )
        for name, case in unique.items()
    }


def finish_run(
    info: RunInfo, code: ExitCode, identities: Mapping[str, Mapping[str, Any]]
) -> RunInfo:
    """Return what is known of a run after its last job.

    Args:
        info: What was known before.
        code: Its exit status.
        identities: What the workers said they are, by cell id.
    """
    said = {cell: dict(identity) for cell, identity in identities.items()}
    return replace(info, finished=current_time(), exit=int(code), identities=said)


def current_time() -> str:
    """Return the time, ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
