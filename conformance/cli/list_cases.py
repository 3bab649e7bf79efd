"""`conformance list`: list cases without importing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from conformance.app.context import load_context
from conformance.cli.output import json_option
from conformance.cli.words import CASES, FAMILIES
from conformance.corpus.case_template import render_template
from conformance.errors import UsageError
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.cli.output import Output
    from conformance.model.case import Case


@click.command("list")
@click.argument("select", nargs=-1, type=CASES)
@json_option("the cases")
@click.option(
    "--template",
    metavar="FAMILY",
    type=FAMILIES,
    help="Print a small topic file of a family instead.",
)
def command(*, select: tuple[str, ...], output: Output, template: str | None) -> int:
    """List cases, without importing them.

    conformance list                        all families
    conformance list nnx_vmap_while         one family
    conformance list 'aot_placement/*' --json -
    conformance list --template shard_map_while > cases/shard_map_while/my_topic.py
                                            a small case of a family, to edit
    """
    if template is not None:
        if select or output.json_file is not None:
            raise UsageError("--template prints one file: give neither SELECT nor --json with it")
        # Raw text without wrapping or markup, because it is redirected to a file.
        click.echo(render_template(load_context().select_cases(()), template), nl=False)
        return 0
    cases = load_context().select_cases(select)
    output.show(list(map(make_case_json, cases)), [_render_list(cases)])
    return 0


def _render_list(cases: Sequence[Case]) -> Text:
    """Return the cases below their families; as one text, which rich renders much faster."""
    text = Text()
    family = ""
    for case in cases:
        if case.family != family:
            family = case.family
            text.append(f"{family}\n", style="bold")
        text.append("  ").append(case.id, style="cyan")
        # The first line of the docstring; `chr(10)` because an f-string before Python 3.12 has no
        # backslash.
        text.append(f"  {case.doc.partition(chr(10))[0]}")
        if case.given:
            text.append(f"  for all {', '.join(case.given)}", style="dim")
        if case.records:
            text.append(f"  only records: {case.records}", style="dim")
        text.append("\n")
    return text.append(plural(len(cases), "case"))


def make_case_json(case: Case) -> dict[str, Any]:
    """Return a case as the `--json` of `conformance list` has it."""
    return {
        "case": case.id,
        "family": case.family,
        "kind": case.kind,
        "devices": case.devices,
        "platforms": case.platforms,
        "requires": case.requires,
        "source": case.source,
        "records": case.records,
        "same_as": case.same_as,
        "given": case.given,
        "file": str(case.file),
        "line": case.line,
    }
