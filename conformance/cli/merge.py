"""`conformance merge`: the parts of a run, put together."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.app.context import load_context
from conformance.app.lifetime import hold_until_end
from conformance.app.output_files import check_writable
from conformance.app.since import conclude_run
from conformance.cli.console import open_console
from conformance.cli.options import json_option, site_option
from conformance.cli.run_output import hand_out
from conformance.cli.since_options import fail_on_option, since_options
from conformance.engine.run_directory import RunDirectory, new_run
from conformance.engine.run_loader import LoadedRun, find_runs
from conformance.engine.shard_merge import merge_shards, order_shards
from conformance.garbage_collection import pause_garbage_collection
from conformance.report.terminal import print_report

if TYPE_CHECKING:
    from conformance.app.since import SinceOptions


@click.command("merge")
@click.argument(
    "parts", metavar="DIR...", nargs=-1, required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)  # fmt: skip
@click.option("--run-dir", type=click.Path(path_type=Path, file_okay=False), help="Run directory.")
@json_option("the whole result")
@since_options
@fail_on_option(None)
@site_option
@click.option(
    "--verbose", "-v", is_flag=True,
    help="Show every case instead of families, and the traceback of every unexpected job.",
)  # fmt: skip
def command(
    *,
    parts: tuple[Path, ...],
    run_dir: Path | None,
    compared: SinceOptions,
    fail_on: str | None,
    json_file: Path | None,
    site: bool | None,
    verbose: bool,
) -> int:
    """Merge the shards of a run.

    DIR is the run directory of a shard, or a folder of them. All shards of one run are required;
    they are not modified. The result and the exit status are those of a run on one machine.

    \b
    conformance run --matrix nightly --shard 1/4 --run-dir shard-1     on each runner
    conformance merge shard-*                                          at the end
    conformance merge shard-* --run-dir night --json night.json
    conformance merge shard-* --since yesterday --fail-on new
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if json_file is not None:
        check_writable("--json", json_file)
    directory = RunDirectory(run_dir) if run_dir else new_run(context.project.root)
    directory.check_empty()
    with pause_garbage_collection():
        ordered = order_shards(map(_as_written, chain.from_iterable(map(find_runs, parts))))
        info, records = merge_shards(ordered)
    hold_until_end(directory.held())
    directory.check_empty()
    for one in ordered:
        _adopt(one, directory)
    if fail_on is not None:
        info = replace(info, request={**info.request, "fail_on": fail_on})
    directory.write_records(records)
    conclusion = conclude_run(directory, info, records, compared)
    report = conclusion.write(directory, info, records)
    console = open_console(json_file)
    print_report(console, report, directory=directory.path, verbose=verbose)
    hand_out(report, directory, console, json_file=json_file, site=site)
    return conclusion.decision.code


def _as_written(part: RunDirectory) -> LoadedRun:
    """Return a part as it stands there; of a job that was written twice, the last."""
    records = {(record.case, record.cell): record for record in part.read_records()}
    return LoadedRun.of(part, part.read_run(), records.values())


def _adopt(part: LoadedRun, directory: RunDirectory) -> None:
    """Give the artifacts of a part to the whole run.

    Raises:
        CorruptBlobError: If one is missing, or is not what its name says.
        InfrastructureError: If the disk refuses.
    """
    for name in {name for record in part.records for name in record.artifacts.values()}:
        directory.blobs.adopt(name, part.blobs, trusted=False)
