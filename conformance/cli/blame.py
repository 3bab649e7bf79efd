"""`conformance blame`: find the package at fault among those that differ between two cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.search.blame import find_package
from conformance.app.search.options import SearchOptions
from conformance.app.target import find_target
from conformance.cli.options import HiddenArgument
from conformance.cli.output import json_option
from conformance.cli.progress import explain_interrupt
from conformance.cli.target_options import predicate_options, program_options, suite_options
from conformance.cli.words import CASES, RELEASES
from conformance.errors import UsageError
from conformance.model.outcome import ExitCode
from conformance.search.axes import RESTART
from conformance.triage.blame.render import make_answer_json, render_answer

if TYPE_CHECKING:
    from conformance.app.suites.target import SuiteOptions
    from conformance.cli.output import Output


@click.command("blame")
@click.argument("target", type=CASES)
@click.argument("ends", cls=HiddenArgument, nargs=-1, type=RELEASES)
@click.option("--good", metavar="CELL", type=RELEASES, help="Good end.")
@click.option("--bad", metavar="CELL", type=RELEASES, help="Bad end.")
@predicate_options
@program_options
@suite_options
@json_option("the answer")
def command(
    *,
    target: str,
    ends: tuple[str, ...],
    good: str | None,
    bad: str | None,
    suite: SuiteOptions,
    output: Output,
    **options: Any,
) -> int:
    """Find the package that changed a target, among the packages that differ between two cells.

    TARGET is a case id, a Python script, the node id of a pytest test, or a command line, as for
    `conformance bisect`. --good and --bad each name one cell: a release, latest, a specifier for
    its newest release, path:/env/bin/python, optionally with @PLATFORM, or a cell id.

    conformance blame report.py --good 0.9.0.1 --bad 0.9.2
    conformance blame shard_map_while/fori_from[zeros] --good 0.5.3 --bad 0.8.3
    conformance blame report.py --good jax0.6.2-py311-cpu1-numpy1.26.4 --bad 0.6.2 --when output
    conformance blame report.py --good path:/env/bin/python --bad latest
    conformance blame my_package:loss --good 0.9.0 --bad 0.9.2 --with ./my-package
    conformance blame CASE --good '0.8.2@tpu:v5e:2x2' --bad '0.8.3@tpu:v5e:2x2' --fact collectives

    Both ends are tried first, then mixed environments: the versions of the good end, with some
    packages from the bad end. The answer is confirmed. Every trial is logged: the same command
    continues an interrupted search. Exit status: 0 found, 1 flaky or not found, 2 usage,
    4 infrastructure, 70 internal error, 130 interrupted.
    """
    given = [end for end in (good, bad) if end is not None]
    # Two ends in either spelling: by options, or by the hidden arguments of earlier releases.
    if len(given) + len(ends) != len(("good", "bad")) or len(given) == 1:
        raise UsageError("expected two cells to compare: --good CELL --bad CELL")
    good, bad = given or ends
    context, search = load_context(), SearchOptions(good=good, bad=bad, **options)
    subject = find_target(context, target, search, suite)
    with explain_interrupt(RESTART):
        found = find_package(context, subject, search, output.print)
    output.print("", *render_answer(found))
    output.write_json(make_answer_json(found, target))
    # A flaky answer is no finding for a script.
    return ExitCode.OK if found.is_confirmed else ExitCode.UNEXPECTED
