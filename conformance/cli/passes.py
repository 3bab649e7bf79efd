"""`conformance passes`: find the HLO pass, flag or option behind the behaviour of a program."""

from __future__ import annotations

import textwrap
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.search.options import SearchOptions
from conformance.app.search.passes import prepare_pass_search
from conformance.cli.options import RenamedOption
from conformance.cli.output import json_option
from conformance.cli.progress import explain_interrupt
from conformance.cli.target_options import program_options
from conformance.cli.words import CASES, CELLS
from conformance.model.outcome import ExitCode
from conformance.triage.passes.predicates import WHEN
from conformance.triage.passes.render import (
    format_step,
    make_answer_json,
    render_answer,
    render_paste,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from conformance.app.search.passes import Report
    from conformance.cli.output import Output
    from conformance.search.answers import SearchStep
    from conformance.triage.passes.settings import Setting


@click.command("passes")
@click.argument("target", type=CASES)
@click.option(
    "--bad", cls=RenamedOption, old=["--cell", "--bad-cell"], required=True, metavar="SELECTOR",
    type=CELLS, help="Cell that shows the behaviour.",
)  # fmt: skip
@click.option(
    "--good", cls=RenamedOption, old=["--good-cell"], metavar="SELECTOR", type=CELLS, default="",
    help="Cell to compare with.",
)  # fmt: skip
@click.option(
    "--when", type=click.Choice(WHEN), default=None,
    help="Predicate.  [default: the deviation, or the difference between both cells]",
)  # fmt: skip
@click.option(
    "--fact", default="", metavar="NAME[=JSON]",
    help="Search for the cause of a fact of the optimised HLO, e.g. collectives.all-reduce=1.",
)  # fmt: skip
@click.option(
    "--settings/--no-settings", default=True, show_default=True,
    help="Also try XLA flags and options of jax, one at a time.",
)  # fmt: skip
@program_options
@click.option("--verbose", "-v", is_flag=True, help="Show every trial.")
@json_option("the answer")
def command(*, target: str, verbose: bool, output: Output, **options: Any) -> int:
    """Find the HLO pass, XLA flag or option of jax behind the behaviour of a program.

    TARGET is the id of a program, a Python script, the node id of a pytest test, or a command line.
    `passes` finds a minimal set of passes without which the behaviour changes, then tries flags and
    options, one at a time.

    conformance passes my_family/division --bad 0.8.3             the cause of a deviation
    conformance passes my_family/division --good 0.4.38 --bad 0.8.3
    conformance passes my_family/step --bad 0.8.3 --fact collectives.all-reduce
    conformance passes my_family/step --bad 0.8.3 --when bits     the cause of the last bits
    conformance passes my_family/step --bad '0.8.3@tpu:v5e:2x2' --fact collectives.all-gather=0
    conformance passes report.py --bad 0.8.3                      the cause of a failure

    Exit status: 0 found and confirmed, 1 nothing found or flaky, 2 usage, 4 infrastructure,
    70 internal error, 130 interrupted.
    """
    search = prepare_pass_search(load_context(), target, SearchOptions(**options))
    # Named as planned: a selector such as `latest` is resolved in the answer.
    cells = [planned.cell.id for planned in search.cells]
    console = output.console
    with explain_interrupt("no process is left running"):
        # The workers are closed when an interrupt leaves this block, as its message promises.
        answers = search.run(partial(_show_trials, console, verbose=verbose))
        output.print(f"{search.name} on {' and '.join(cells)}")
        output.print(*(_wrap(line, console.width) for line in render_answer(answers)))
        output.print(
            *(f"paste: {line}" for line in render_paste(answers, search.cells[-1].release))
        )
    # Without --good the only cell is the bad one.
    good = cells[0] if len(cells) > 1 else ""
    output.write_json(make_answer_json(answers, target=search.name, cell=cells[-1], good_cell=good))
    return ExitCode.OK if answers.is_confirmed else ExitCode.UNEXPECTED


@contextmanager
def _show_trials(console: Console, *, verbose: bool) -> Iterator[Report]:
    """Show the last trial in a status line, and with `--verbose` a line for each."""
    with console.status("trying the program without changes", spinner="line") as status:

        def report(step: SearchStep[Setting]) -> None:
            # Shorter than the line by the spinner and its spaces: a wrapped status would scroll.
            status.update(f"tried {format_step(step)[: console.width - 10]}")
            if verbose:
                console.print(format_step(step))

        yield report


def _wrap(line: str, width: int) -> str:
    # Neither words nor hyphens are broken: names of passes and flags must stay copyable.
    return textwrap.fill(
        line, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
