"""`conformance merge`: merge the shards of a run."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.app.context import load_context
from conformance.app.lifetime import hold_until_end
from conformance.app.since import conclude_run
from conformance.cli.options import run_folder_option
from conformance.cli.output import json_option
from conformance.cli.run_options import (
    fail_on_option,
    since_options,
    site_option,
    verbose_option,
    write_outputs,
)
from conformance.engine.runs.directory import RunDirectory
from conformance.engine.runs.loader import LoadedRun, find_runs
from conformance.engine.shards import merge_shards, order_shards
from conformance.garbage_collection import pause_garbage_collection
from conformance.report.terminal import print_report

if TYPE_CHECKING:
    from conformance.app.since import SinceOptions
    from conformance.cli.output import Output


@click.command("merge")
@click.argument(
    "parts", metavar="DIR...", nargs=-1, required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)  # fmt: skip
@run_folder_option
@json_option("the whole result")
@since_options
@fail_on_option(None)
@site_option
@verbose_option
def command(
    *,
    parts: tuple[Path, ...],
    run_dir: Path | None,
    compared: SinceOptions,
    fail_on: str | None,
    output: Output,
    site: bool | None,
    verbose: bool,
) -> int:
    """Merge the shards of a run.

    DIR is the run directory of a shard, or a folder of them. All shards of one run are required;
    they are not modified. The result and the exit status are those of a run on one machine.

    conformance run --matrix nightly --shard 1/4 --run shard-1     on each runner
    conformance merge shard-*                                      at the end
    conformance merge shard-* --run night --json night.json
    conformance merge shard-* --since yesterday --fail-on new
    """
    directory = RunDirectory(run_dir) if run_dir else load_context().runs.allocate()
    directory.check_empty()
    with pause_garbage_collection():
        shards = order_shards(map(_load_shard, chain.from_iterable(map(find_runs, parts))))
        # Shards are checked before the directory is locked, so that a missing one leaves no folder.
        info, records = merge_shards(shards)
    hold_until_end(directory.lock())
    # Checked again under the lock: another run may have started while the shards were read.
    directory.check_empty()
    for shard in shards:
        _adopt_artifacts(shard, directory)
    if fail_on is not None:
        # The policy is stored with the run, so that later reports give the same exit status.
        info = replace(info, request={**info.request, "fail_on": fail_on})
    # Artifacts come first: no record on the disk may name a blob that is missing.
    directory.write_records(records)
    conclusion = conclude_run(directory, info, records, compared)
    report = conclusion.write(directory, info, records)
    print_report(output.console, report, directory=directory.path, verbose=verbose)
    write_outputs(report, directory, output, site=site)
    # Decided on all records: the exit status of a shard depends on its own jobs alone.
    return conclusion.decision.code


def _load_shard(directory: RunDirectory) -> LoadedRun:
    """Load a shard; the last record of a job counts if it has several."""
    # The file of records is append-only: a job that ran again has a later record.
    records = {(record.case, record.cell): record for record in directory.read_records()}
    return LoadedRun.of(directory, directory.read_run(), records.values())


def _adopt_artifacts(shard: LoadedRun, directory: RunDirectory) -> None:
    """Copy or link the artifacts of a shard into the merged run.

    Raises:
        CorruptBlobError: If an artifact is missing, or differs from its hash.
        InfrastructureError: If the disk refuses.
    """
    names = {name for record in shard.records for name in record.artifacts.values()}
    origin = shard.blobs.read_origin()
    if origin and directory.blobs.read_origin() in {"", origin}:
        # Artifacts that only the shared cache has are not fetched for the merged run either.
        directory.blobs.write_origin(origin)
        names = {name for name in names if shard.blobs.has(name)}
    else:
        # A run names one shared cache: what another one has is copied.
        shard.blobs.fetch_missing(names)
    for name in names:
        # Shards come from other machines: each blob is hashed.
        directory.blobs.adopt(name, shard.blobs, trusted=False)
