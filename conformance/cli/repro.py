"""`conformance repro`: write one file to send upstream."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.repro.case import reproduce_case
from conformance.app.repro.options import ReproOptions
from conformance.app.repro.script import reproduce_script
from conformance.app.search.commit_ends import find_jax_location
from conformance.app.target import find_script
from conformance.cli.options import run_option, with_option
from conformance.cli.output import json_option
from conformance.cli.target_options import origin_options
from conformance.cli.words import CASES, CELLS

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("repro")
@click.argument("case", type=CASES)
@click.option(
    "--cell", multiple=True, required=True, metavar="SELECTOR", type=CELLS,
    help="Cell that shows the behaviour: a cell id, release or latest, optionally with @PLATFORM. "
    "--issue compares with a second cell.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE",
    help="File to write; - is standard output.  [default: repro_CASE_RELEASE.py]",
)  # fmt: skip
@click.option("--issue", is_flag=True, help="Also print text for upstream's bug template.")
@click.option(
    "--good", metavar="RELEASE",
    help="Good release, from which --issue searches for the first bad one.",
)  # fmt: skip
@origin_options
@run_option("Use the results of this run, a directory or id, instead of running the case.")
@click.option("--no-check", is_flag=True, help="Do not run the file to check it.")
@with_option
@json_option("{file, cell, command, checked}")
def command(
    *, case: str, cell: tuple[str, ...], no_check: bool, commits: bool, jax_repo: str,
    output: Output, **options: Any,
) -> int:  # fmt: skip
    """Write one Python file that reproduces a case or a script in a cell.

    CASE may be a script or a report, as for `conformance bisect`; its file is the script with a
    header.

    The header pins the packages of the cell (PEP 723): run the file with `uv run FILE`. It exits
    with status 0 if the case conforms, else with the same exception, or an assertion on the value
    or the facts. The command checks this in an empty folder. The file contains the modules that no
    index has: those of --with, and those next to a script.

    conformance repro 'shard_map_while/while_carry[check_on]' --cell 0.5.3
    conformance repro CASE --cell 0.6.2 --out bug.py --issue > issue.md
    conformance repro report.py --cell 0.6.2 --good 0.5.3 --issue > issue.md
    conformance repro CASE --cell 0.8.3 --cell 0.8.2 --issue     with the differences of their IRs
    conformance repro CASE --cell 0.8.3 --good 0.5.3 --issue     with the first bad release
    conformance repro CASE --cell 0.8.3 --good 0.5.3 --issue --commits    and its commit
    conformance repro CASE --cell 'latest@tpu:v5e:2x2'           compiled, without a TPU
    """
    context = load_context()
    repro_options = ReproOptions(
        cells=cell,
        check=not no_check,
        prints_json=output.prints_json,
        jax_location=find_jax_location(context, jax_repo) if commits else "",
        **options,
    )
    # Standard output is for the issue, the file or the JSON.
    say = partial(click.echo, err=True)
    # Scripts first: a file that exists is never the id of a case.
    script = find_script(context, case)
    if script is None:
        made = reproduce_case(context, case, repro_options, say)
    else:
        made = reproduce_script(context, script, repro_options, say)
    # Without a line break: an empty issue prints nothing.
    click.echo(made.issue, nl=False)
    output.write_json(made.data)
    for line in made.lines:
        say(line)
    return 0
