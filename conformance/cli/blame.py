"""`conformance blame`: which of the packages that two environments differ in is at fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.bisect import METRICS, BisectOptions
from conformance.app.blame import find_package
from conformance.app.context import load_context
from conformance.app.output_files import check_writable, write_file
from conformance.app.target_lookup import target_named
from conformance.cli.console import open_console
from conformance.cli.options import json_option
from conformance.cli.suite_options import in_suite_options
from conformance.cli.target_options import measure_options, program_options
from conformance.cli.words import CASES, RELEASES
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.search.axes import RESTART
from conformance.search.predicates import PREDICATES
from conformance.triage.blame.render import answer_json, answer_lines

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.app.suite_target import InSuite


@click.command("blame")
@click.argument("target", type=CASES)
@click.argument("before", metavar="FROM", type=RELEASES)
@click.argument("after", metavar="TO", type=RELEASES)
@click.option(
    "--when", type=click.Choice([*PREDICATES, *METRICS]), default=None,
    help="Predicate of the change.  [default: the difference between FROM and TO]",
)  # fmt: skip
@click.option(
    "--fact", default="", metavar="NAME",
    help="Search for a change of this fact of the optimised HLO, e.g. collectives.all-gather.",
)  # fmt: skip
@measure_options
@program_options
@in_suite_options
@click.option("--fresh", is_flag=True, help="Ignore the log of earlier searches.")
@json_option("the answer")
def command(
    *,
    target: str,
    before: str,
    after: str,
    is_command: bool,
    suite: InSuite,
    json_file: Path | None,
    **options: Any,
) -> int:
    """Find the package that changed a target, among the packages that differ between two cells.

    TARGET is a case id, a Python script, the node id of a pytest test, or a command line, as for
    `conformance bisect`. FROM and TO each name one cell: a release, latest, a specifier for its
    newest release, path:/env/bin/python, optionally with @PLATFORM, or a cell id.

    \b
    conformance blame report.py 0.9.0.1 0.9.2
    conformance blame shard_map_while/fori_from[zeros] 0.5.3 0.8.3
    conformance blame report.py jax0.6.2-py311-cpu1-numpy1.26.4 0.6.2 --when output
    conformance blame report.py path:/env/bin/python latest
    conformance blame my_package:loss 0.9.0 0.9.2 --with ./my-package
    conformance blame CASE '0.8.2@tpu:v5e:2x2' '0.8.3@tpu:v5e:2x2' --fact collectives.all-gather

    Both ends are tried first, then mixed environments: the versions of FROM, with some packages
    from TO. The answer is confirmed. Every trial is logged: the same command continues an
    interrupted search. Exit status: 0 found, 1 flaky or not found, 2 usage, 4 infrastructure,
    70 internal error, 130 interrupted.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if json_file is not None:
        check_writable("--json", json_file)
    asked = BisectOptions(good=before, bad=after, **options)
    console = open_console(json_file)
    subject = target_named(context, target, asked, suite, is_command=is_command)
    try:
        found = find_package(context, subject, asked, console.print)
    except KeyboardInterrupt:
        click.echo(f"conformance: interrupted; {RESTART}", err=True)
        return ExitCode.INTERRUPTED
    for line in ("", *answer_lines(found)):
        console.print(line)
    if json_file is not None:
        write_file("--json", json_file, readable_json(answer_json(found, target)))
    return ExitCode.OK if found.confirmed else ExitCode.UNEXPECTED
