"""`conformance bisect`: find the release that changed the behaviour of a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.layers.origin import find_origin
from conformance.app.search.bisect import find_change
from conformance.app.search.commit_ends import are_revisions, find_location
from conformance.app.search.commits import find_commit_between_revisions
from conformance.app.search.options import SearchOptions
from conformance.app.target import find_target
from conformance.cli.options import jobs_option
from conformance.cli.output import json_option
from conformance.cli.progress import explain_interrupt
from conformance.cli.target_options import (
    origin_options,
    predicate_options,
    program_options,
    suite_options,
)
from conformance.cli.words import CASES, CELLS, PLATFORM
from conformance.model.outcome import ExitCode
from conformance.search.axes import JAX, RESTART
from conformance.triage.bisect.render import make_answer_json, render_answer
from conformance.triage.commits.render import PackageCulprit, make_culprit_json, render_culprit
from conformance.triage.layers.render import make_layer_json, render_layer

if TYPE_CHECKING:
    from conformance.app.suites.target import SuiteOptions
    from conformance.cli.output import Output


@click.command("bisect")
@click.argument("target", type=CASES)
@click.option("--good", required=True, metavar="RELEASE", type=CELLS, help="Good end.")
@click.option("--bad", required=True, metavar="RELEASE", type=CELLS, help="Bad end.")
@click.option(
    "--axis", default=JAX, show_default=True, metavar="AXIS",
    help="Axis of the search: jax, nightly, another package, config:NAME or xla:FLAG.",
)  # fmt: skip
@click.option(
    "--jax", default="latest", show_default=True, metavar="RELEASE",
    help="Release of jax for another axis.",
)  # fmt: skip
@click.option("--values", default="", metavar="V,V,...", help="Values of an option, in order.")
@click.option(
    "--find", type=click.Choice(["bad", "fix"]), default="bad", show_default=True,
    help="Find the first bad release, or the first fixed one.",
)  # fmt: skip
@predicate_options
@click.option(
    "--every",
    is_flag=True,
    help="Try every release between the ends, and report the most severe change.",
)
@click.option(
    "--repeat", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
    help="Number of good runs that a good release needs.",
)  # fmt: skip
@click.option(
    "--platform",
    default="",
    metavar="PLATFORM",
    type=PLATFORM,
    help="Platform, e.g. cpu4 or tpu:v5e:2x2.",
)
@origin_options
@click.option("--repo", default="", metavar="PATH|URL", help="Repository of another package.")
@program_options
@suite_options
@jobs_option("Number of parallel trials.")
@json_option("the answer")
def command(
    *, target: str, suite: SuiteOptions, layers: bool, commits: bool, jax_repo: str, repo: str,
    output: Output, **options: Any,
) -> int:  # fmt: skip
    """Find the release that changed the behaviour of a target.

    TARGET is a case id, a Python script or pasted report, a test of a pytest suite by file or suite
    name, or a command line, which finds the programs of the environment first on PATH.

    conformance bisect shard_map_while/fori_from[zeros] --good 0.5.3 --bad 0.12.0.1
    conformance bisect report.py --good 0.4.35 --bad latest
    conformance bisect report.py --good latest --bad 0.5.3 --find fix
    conformance bisect report.py --good 0.8.1 --bad nightly
    conformance bisect report.py --axis nightly --good 2025-11-01 --bad 2025-11-20
    conformance bisect report.py --axis numpy --jax 0.4.38 --good 1.26.4 --bad 2.2.0
    conformance bisect report.py --axis config:jax_use_shardy_partitioner --good false --bad true
    conformance bisect tests/test_model.py::test_loss --good 0.5.3 --bad 0.8.3
    conformance bisect array_api_tests/test_fft.py::test_fft --good 0.5.3 --bad 0.8.3
    conformance bisect 'python train.py --steps 2' --good 0.5.3 --bad 0.8.3 --when exit

    Both ends are tried first, and the answer is confirmed. Every trial is logged: the same command
    continues an interrupted search.
    """
    context, search = load_context(), SearchOptions(**options)
    subject = find_target(context, target, search, suite)
    location = find_location(context, search, jax_repo, repo) if commits else ""
    culprit = None
    with explain_interrupt(RESTART):
        if commits and are_revisions(search):
            found, culprit = find_commit_between_revisions(
                context, subject, search, location=location, say=output.print
            )
        else:
            # With a scan: equal ends of a case may hide a change that was reverted in between.
            found = find_change(context, subject, search, output.print, scan=True)
            # The search may have found that a script needs several devices, or became slower.
            search = found.options
    answer = found.answer
    # Steps are printed during a search; an empty line separates them from the answer.
    output.print("", *render_answer(answer, search.find, found.axis))
    # After the answer: a point that could not be tried is why the answer may be a range.
    output.print(*(f"left out {name}: {reason}" for name, reason in found.left_out))
    data = make_answer_json(answer, target, found.axis)
    is_confirmed = answer.is_confirmed
    if commits and culprit is None and not layers:
        output.print("")
    with explain_interrupt(RESTART):
        for part in find_origin(
            context, subject, search, found, layers=layers, location=location,
            say=output.print, culprit=culprit,
        ):  # fmt: skip
            if isinstance(part, PackageCulprit):
                culprit = part
                output.print("", *render_culprit(part))
                data["commit"] = make_culprit_json(part)
                is_confirmed = is_confirmed and part.finding.is_confirmed
            else:
                good, bad = (answer.labels[n] for n in (answer.last_good, answer.first_bad))
                output.print("", *render_layer(part, good, bad))
                data["layer"] = make_layer_json(part, good, bad)
                if commits and culprit is None:
                    output.print("")
    output.write_json(data)
    return ExitCode.OK if is_confirmed else ExitCode.UNEXPECTED
