"""`conformance ecosystem`: test libraries that build on JAX on its releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.app.context import load_context
from conformance.app.ecosystem.blame import find_culprits
from conformance.app.ecosystem.report import (
    load_summary,
    make_issue,
    write_badges,
    write_page,
)
from conformance.app.ecosystem.run import EcosystemOptions, prepare_ecosystem
from conformance.cli.options import fresh_option, jobs_option, no_downloads_option
from conformance.cli.output import json_option
from conformance.cli.progress import explain_interrupt
from conformance.cli.words import CELLS, LIBRARIES
from conformance.ecosystem.outcome import VersionPolicy
from conformance.model.outcome import ExitCode
from conformance.report.ecosystem.text import (
    make_ecosystem_json,
    render_cause,
    render_counts,
    render_record,
    render_tables,
)

if TYPE_CHECKING:
    from conformance.app.context import ProjectContext
    from conformance.cli.output import Output
    from conformance.report.ecosystem.summary import EcosystemSummary

RESTART = "the same command goes on where it was"


@click.command("ecosystem")
@click.argument("names", nargs=-1, metavar="[LIBRARY]...", type=LIBRARIES)
@click.option(
    "--cell", "cells", multiple=True, metavar="RELEASE", type=CELLS,
    help="Releases of jax: release, specifier, latest, nightly; repeatable.  [default: latest]",
)  # fmt: skip
@click.option(
    "--policy", "policies", multiple=True, type=click.Choice([*map(str, VersionPolicy)]),
    help="Choose versions of libraries by this policy; repeatable.  [default: all]",
)  # fmt: skip
@click.option(
    "--rotate", type=click.IntRange(min=1), metavar="N",
    help="Test the N libraries of today; all have their turn.",
)  # fmt: skip
@click.option("--recorded", is_flag=True, help="Show the recorded outcomes, and test nothing.")
@click.option(
    "--repeat", is_flag=True, help="Run tests that pass twice, too, to detect flaky ones."
)
@click.option("--blame", is_flag=True, help="Search for the release or package of each failure.")
@click.option("--keep", is_flag=True, help="Keep the environments.")
@click.option("--page", is_flag=True, help="Write the page of all libraries, reports/ecosystem.md.")
@click.option(
    "--badges", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Write a badge for each library.",
)  # fmt: skip
@click.option(
    "--issue", is_flag=True, help="Print the text of an issue for each library that fails."
)
@fresh_option
@jobs_option("Number of cells at the same time.")
@no_downloads_option
@json_option("the outcomes")
def command(
    *, names: tuple[str, ...], cells: tuple[str, ...], policies: tuple[str, ...],
    rotate: int | None, recorded: bool, repeat: bool, blame: bool, keep: bool, page: bool,
    badges: Path | None, issue: bool, fresh: bool, jobs: int, output: Output,
) -> int:  # fmt: skip
    """Test libraries that build on JAX on its releases.

    Each library of `ecosystem/` is installed in an environment of its own, imported and tested.
    --policy chooses its version: `release` is the newest on the release date, `bounds` the one that
    its requirements admit today, `newest` the newest of today. Outcomes are recorded.

    conformance ecosystem                              every library on the newest release
    conformance ecosystem flax optax --cell '>=0.8'    two libraries on several releases
    conformance ecosystem --cell nightly --rotate 8    a few libraries a night
    conformance ecosystem --recorded --page            outcomes so far, as reports/ecosystem.md
    conformance ecosystem chex --recorded --issue      an issue for the repository of a library

    Exit status: 0 nothing fails that did not fail before, 1 something does, 4 no outcome for lack
    of an index or a Python.
    """
    context = load_context()
    if issue and recorded:
        for name in names or _list_failing(load_summary(context)):
            output.print(make_issue(context, name))
        return ExitCode.OK
    code = ExitCode.OK
    if not recorded:
        options = EcosystemOptions(
            names=names, cells=cells or ("latest",), policies=tuple(map(VersionPolicy, policies)),
            jobs=jobs, fresh=fresh, repeat=repeat, keep=keep, rotate=rotate or 0,
        )  # fmt: skip
        run = prepare_ecosystem(context, options)
        with explain_interrupt(RESTART):
            for record in run.test():
                output.print(render_record(record))
        names, code = run.names, run.exit_code
    if blame:
        with explain_interrupt(RESTART):
            for record in find_culprits(context, names, output.print):
                output.print(f"{render_record(record)}: {record.culprit}")
    summary = load_summary(context, names)
    _show(output, summary)
    if issue:
        for name in _list_failing(summary):
            output.print("", make_issue(context, name))
    _write(context, output, page=page, badges=badges)
    return code


def _list_failing(summary: EcosystemSummary) -> list[str]:
    return sorted({one.library for one in summary.records if one.outcome.is_failure})


def _show(output: Output, summary: EcosystemSummary) -> None:
    output.print("", *render_tables(summary))
    for cause in summary.causes:
        output.print(*render_cause(cause), "")
    output.print(*render_counts(summary))
    output.write_json(make_ecosystem_json(summary))


def _write(context: ProjectContext, output: Output, *, page: bool, badges: Path | None) -> None:
    """Write the files that options name: about all libraries, not only those that were tested."""
    if page:
        output.print(f"wrote {write_page(context, load_summary(context))}")
    if badges is not None:
        output.print(f"wrote {write_badges(load_summary(context), badges)} badges to {badges}")
