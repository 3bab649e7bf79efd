"""A bug report on a script for upstream's template, as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.report.markup import fence, to_code
from conformance.report.text import flatten
from conformance.report.upstream import SHOWN, fill_template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.triage.repro.script_file import ScriptRun

TITLE: Final = 100
"""Characters of a title that say what happens."""
LAST_LINES: Final = 12
"""Lines of output that an issue shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBadRelease:
    """Since when a script ends as it does.

    Attributes:
        last_good: The release before, e.g. `0.6.0`.
        first_bad: The first release that shows it.
        good: What the script does on the release before, in a line.
        history: The answer of the search, in lines.
    """

    last_good: str
    first_bad: str
    good: str
    history: str


def render_script_issue(run: ScriptRun, file: str, origin: FirstBadRelease | None) -> str:
    """Return a bug report for upstream's template.

    Args:
        run: The script, and how it ended.
        file: Text of the file that shows it.
        origin: Since when, None where that was not searched for.
    """
    since = f"since jax {origin.first_bad}" if origin else f"on jax {run.planned.release}"
    what = run.ending if run.error is not None else f"another output of {run.name}"
    cell = run.planned.cell
    pinned = {pin.partition("==")[0] for pin in run.pins}
    system = {
        **{name: run.versions[name] for name in SHOWN if name in pinned},
        "python": cell.python,
        "platform": cell.platform,
    }
    return fill_template(
        f"{to_code(flatten(what, TITLE))} {since}", _render_description(run, origin), file, system
    )


def _render_description(run: ScriptRun, origin: FirstBadRelease | None) -> Iterator[str]:
    if origin is not None:
        good = "the script ends well" if origin.good == "ok" else to_code(origin.good)
        yield f"Expected, as on jax {origin.last_good}: {good}"
    elif run.error is not None:
        yield "Expected: the script ends well."
    yield f"Seen on jax {run.planned.release}: {to_code(run.ending)}"
    if run.error is not None:
        yield fence(f"{run.error.type}: {run.error.message}")
    if run.stdout.strip():
        lines = run.stdout.strip().splitlines()[-LAST_LINES:]
        yield f"It prints:\n\n{fence(chr(10).join(lines))}"
    if origin is not None:
        yield f"By bisection over releases:\n\n{fence(origin.history)}"
