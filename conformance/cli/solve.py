"""`conformance solve`: find versions of libraries that were tested together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from conformance.app.context import load_context
from conformance.app.ecosystem.solve import (
    CONSTRAINTS,
    FORMATS,
    make_solution_json,
    prepare_solver,
    render_solution,
)
from conformance.app.output_files import print_note
from conformance.cli.output import json_option
from conformance.cli.progress import explain_interrupt
from conformance.cli.words import CELLS, LIBRARIES
from conformance.ecosystem.outcome import LibraryOutcome
from conformance.ecosystem.solution import describe_set
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("solve")
@click.argument("names", nargs=-1, required=True, metavar="LIBRARY...", type=LIBRARIES)
@click.option(
    "--jax", default="latest", show_default=True, metavar="RELEASES", type=CELLS,
    help="Admitted releases of jax: a release, a specifier or latest.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default=CONSTRAINTS, show_default=True,
    help="A constraints file, a pylock.toml or a dependency group of pyproject.toml.",
)  # fmt: skip
@click.option("--recorded", is_flag=True, help="Answer from recorded outcomes, and test nothing.")
@json_option("the answer")
def command(*, names: tuple[str, ...], jax: str, form: str, recorded: bool, output: Output) -> int:
    """Find the newest versions of libraries and jax that were tested together.

    The set that declared requirements admit comes first, then sets whose libraries work alone, as
    `conformance ecosystem` recorded. A set without a record is installed, imported and tested in
    one environment, and recorded. The answer has every package of that environment; notes go to
    standard error.

    conformance solve flax optax numpyro --jax '>=0.8,<0.13'
    conformance solve flax optax --jax latest --format pylock > pylock.toml
    conformance solve equinox diffrax --jax 0.8.1 --format uv-group --recorded

    Exit status: 0 a set works, 1 none does, 4 a set cannot be tested here.
    """
    context = load_context()
    solver = prepare_solver(context, names, jax, offline=recorded, say=print_note)
    with explain_interrupt("sets that were tested are recorded"):
        found = solver.solve()
    output.write_json(make_solution_json(solver, found))
    declared = solver.declared
    if declared is not None and declared.outcome is not LibraryOutcome.OK:
        reason = declared.failures[0].error if declared.failures else declared.reason
        print_note(
            f"declared requirements admit {describe_set(declared)}, which breaks: "
            f"{declared.outcome}: {reason}"
        )
    if found is None:
        more = "; without --recorded, sets are tested" if recorded else ""
        print_note(f"no set of {', '.join(names)} with jax {jax} works{more}")
        return ExitCode.UNEXPECTED
    if not output.prints_json:
        output.print(render_solution(context, found, form).rstrip("\n"))
    return ExitCode.OK
