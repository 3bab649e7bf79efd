"""`conformance repro`: one file to send upstream."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from conformance.app.context import load_context
from conformance.app.output_files import write_file
from conformance.app.repro_case import reproduce_case
from conformance.app.repro_script import reproduce_script
from conformance.app.reproduction import ReproOptions
from conformance.app.target_lookup import script_named
from conformance.cli.options import json_option, with_option
from conformance.cli.words import CASES, CELLS
from conformance.files import readable_json


@click.command("repro")
@click.argument("case", type=CASES)
@click.option(
    "--cell", multiple=True, required=True, metavar="SELECTOR", type=CELLS,
    help="Where it is seen: a cell id, release or latest, maybe with @PLATFORM. A second one, "
    "where it is not, is compared with in --issue.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE",
    help="File to write; - is standard output.  [default: repro_CASE_RELEASE.py]",
)  # fmt: skip
@click.option("--issue", is_flag=True, help="Print text for upstream's bug template, too.")
@click.option(
    "--good", metavar="RELEASE",
    help="Where it was right: the first bad release from there on is searched for, for --issue.",
)  # fmt: skip
@click.option(
    "--run", "run_dir", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Take what was seen from a run instead of running the case.",
)  # fmt: skip
@click.option(
    "--no-check", is_flag=True,
    help="Write the file without running it alone first.",
)  # fmt: skip
@with_option
@json_option("{file, cell, command, checked}")
def command(
    *,
    case: str,
    cell: tuple[str, ...],
    no_check: bool,
    json_file: Path | None,
    **options: Any,
) -> int:
    """Write one Python file that does what a case or a script does on a cell.

    CASE may be a script, or a report that holds one, as for `conformance bisect`: its file is the
    script with a header.

    Its header pins the packages of the cell (PEP 723), so that `uv run FILE` is all it takes. It
    ends with status 0 where the case conforms, else as was seen: by the same exception, or by an
    assertion on the value or the facts. The command runs it in an empty folder to check that.
    The file carries the modules that no index has: those of --with, and those beside a script.

    \b
    conformance repro 'shard_map_while/while_carry[check_on]' --cell 0.5.3
    conformance repro CASE --cell 0.6.2 --out bug.py --issue > issue.md
    conformance repro report.py --cell 0.6.2 --good 0.5.3 --issue > issue.md
    conformance repro CASE --cell 0.8.3 --cell 0.8.2 --issue     with how their IRs differ
    conformance repro CASE --cell 0.8.3 --good 0.5.3 --issue     with the first bad release
    conformance repro CASE --cell 'latest@tpu:v5e:2x2'           compiled, no TPU needed
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    asked = ReproOptions(cells=cell, check=not no_check, json_file=json_file, **options)
    say = partial(click.echo, err=True)
    script = script_named(context, case)
    if script is None:
        made = reproduce_case(context, case, asked, say)
    else:
        made = reproduce_script(context, script, asked, say)
    click.echo(made.issue, nl=False)
    if json_file is not None:
        write_file("--json", json_file, readable_json(made.data))
    for line in made.lines:
        say(line)
    return 0
