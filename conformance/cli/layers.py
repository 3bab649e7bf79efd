"""`conformance layers`: find the layer of JAX that makes a difference between two releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.layers.find import find_layer_target, find_layers
from conformance.app.search.options import SearchOptions
from conformance.cli.output import json_option
from conformance.cli.progress import explain_interrupt
from conformance.cli.target_options import predicate_options, program_options
from conformance.cli.words import CASES, CELLS, PLATFORM
from conformance.model.outcome import ExitCode
from conformance.triage.layers.answer import Layer
from conformance.triage.layers.render import make_layer_json, render_layer

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("layers")
@click.argument("target", type=CASES)
@click.option("--good", required=True, metavar="RELEASE", type=CELLS, help="Good end.")
@click.option("--bad", required=True, metavar="RELEASE", type=CELLS, help="Bad end.")
@click.option("--every", is_flag=True, help="Compare all neighbouring releases between the ends.")
@click.option(
    "--platform", default="", metavar="PLATFORM", type=PLATFORM, help="Platform, e.g. cpu4.",
)  # fmt: skip
@predicate_options
@program_options
@json_option("the answer")
def command(*, target: str, output: Output, **options: Any) -> int:
    """Find the layer that makes a difference: tracing, lowering, or XLA.

    TARGET is a case, a Python script or pasted report, a pytest test, or a command line. Each end
    runs it and records its compiled computations; then each computation is compiled by the XLA of
    the other release and repeated with the same arguments.

    conformance layers numerics/many_small_products --good 0.10.1 --bad 0.10.2
    conformance layers report.py --good 0.8.3 --bad 0.9.0
    conformance layers numerics/long_sum --good 0.5.3 --bad latest --every

    Exit status: 0 found, 1 not separable.
    """
    context, search = load_context(), SearchOptions(**options)
    subject = find_layer_target(context, target, search)
    answers = []
    with explain_interrupt("nothing is kept"):
        for found in find_layers(context, subject, search, output.print):
            if found.predicate:
                output.print(f"{found.bad} {found.predicate}")
            output.print(*render_layer(found.answer, found.good, found.bad), "")
            answers.append(found)
    pairs = [make_layer_json(one.answer, one.good, one.bad) for one in answers]
    whole = pairs[0] if len(pairs) == 1 else {}
    output.write_json({"target": target, **whole, "pairs": pairs})
    unclear = any(one.answer.layer is Layer.NOT_SEPARABLE for one in answers)
    return ExitCode.UNEXPECTED if unclear else ExitCode.OK
