"""`conformance list`: list cases without importing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from conformance.app.context import load_context
from conformance.cli.console import open_console
from conformance.cli.words import CASES, FAMILIES
from conformance.corpus.case_template import render_template as topic_template
from conformance.errors import UsageError
from conformance.files import readable_json
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.model.case import Case


@click.command("list")
@click.argument("select", nargs=-1, type=CASES)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@click.option(
    "--template",
    metavar="FAMILY",
    type=FAMILIES,
    help="Print a small topic file of a family instead.",
)
def command(*, select: tuple[str, ...], as_json: bool, template: str | None) -> int:
    """List cases, without importing them.

    \b
    conformance list                        all families
    conformance list nnx_vmap_while         one family
    conformance list 'aot_placement/*' --json
    conformance list --template shard_map_while > cases/shard_map_while/my_topic.py
                                            a small case of a family, to edit
    """  # noqa: D301 - \b is click's own mark
    if template is not None:
        if select or as_json:
            raise UsageError("--template prints one file: say neither SELECT nor --json with it")
        click.echo(topic_template(load_context().cases(()), template), nl=False)
        return 0
    cases = load_context().cases(select)
    if as_json:
        data = [listed(case) for case in cases]
        click.echo(readable_json(data))
        return 0
    console = open_console()
    console.print(_listing(cases), soft_wrap=True)
    return 0


def _listing(cases: Sequence[Case]) -> Text:
    """Return the cases below their families; as one text, which rich renders much faster."""
    text = Text()
    family = ""
    for case in cases:
        if case.family != family:
            family = case.family
            text.append(f"{family}\n", style="bold")
        text.append("  ").append(case.id, style="cyan")
        text.append(f"  {case.doc.partition(chr(10))[0]}")
        if case.records:
            text.append(f"  only records: {case.records}", style="dim")
        text.append("\n")
    return text.append(plural(len(cases), "case"))


def listed(case: Case) -> dict[str, Any]:
    """Return a case as the `--json` of `conformance list` holds it."""
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
        "file": str(case.file),
        "line": case.line,
    }
