"""A file that reproduces a case or a script: the options of `conformance repro`, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.app.layers.origin import find_origin
from conformance.app.search.bisect import find_change
from conformance.app.search.options import SearchOptions
from conformance.report.upstream_issue import FirstBadRelease
from conformance.triage.bisect.render import render_answer
from conformance.triage.commits.render import render_culprit
from conformance.triage.layers.answer import LayerAnswer
from conformance.triage.layers.render import render_layer
from conformance.triage.programs.program import ProgramTarget
from conformance.triage.repro.header import describe_nightlies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.model.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproOptions:
    """Options of `conformance repro`.

    Attributes:
        cells: Selectors of the cell, and optionally of a cell to compare with.
        out: File to write, None for a name made of the target and the cell.
        issue: Whether the text of an issue is made.
        good: A good release, from which the first bad one is searched for; None for no search.
        run: Directory or id of a run with the result, None to run the case.
        check: Whether the file is run in an empty folder.
        wanted: Requirements in addition to the packages of the cell.
        prints_json: Whether the result as JSON goes to standard output.
        jax_location: Repository of jax in which the commit is searched for, empty for no search.
        layers: Whether the layer is searched for.
    """

    cells: tuple[str, ...]
    out: Path | None
    issue: bool
    good: str | None
    run: str | None
    check: bool
    wanted: tuple[str, ...]
    prints_json: bool
    jax_location: str = ""
    layers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """A file that was written.

    Attributes:
        file: The file; `-` is standard output.
        cell: Id of its cell.
        command: The command that runs the file.
        checked: Whether the file was run in an empty folder.
        issue: Text for the bug template of upstream, empty without `--issue`.
        remarks: Lines about claims that the file does not show.
    """

    file: Path
    cell: str
    command: str
    checked: bool
    issue: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The lines to print."""
        wrote = f"wrote {self.file}; run it with: {self.command}"
        return [*([] if str(self.file) == "-" else [wrote]), *self.remarks]

    @property
    def data(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            "file": str(self.file),
            "cell": self.cell,
            "command": self.command,
            "checked": self.checked,
        }


def find_check_index(context: ProjectContext, versions: Mapping[str, str]) -> str:
    """Return the index of nightlies if the packages of a file need it, otherwise an empty text.

    Other files must resolve from the default index alone, as they will at upstream.

    Args:
        context: The project.
        versions: The packages of the file's cell, by name.
    """
    return context.settings.nightly_index if describe_nightlies(versions) else ""


def search_origin(
    context: ProjectContext,
    target: Case | ProgramTarget,
    cell: Cell,
    options: ReproOptions,
    say: Callable[[str], None],
) -> FirstBadRelease | None:
    """Search for the first release in which a target behaves as in a cell.

    Args:
        context: The project.
        target: The target.
        cell: The cell.
        options: The options, which name a good release.
        say: Called with a line for each step.

    Returns:
        The release; None without a good release.
    """
    if options.good is None:
        return None
    # The platform of a CPU cell has no device count, which a selector needs.
    place = f"cpu{cell.devices}" if cell.platform == "cpu" else cell.platform
    question = SearchOptions(
        good=options.good, bad=cell.release, platform=place, wanted=options.wanted
    )
    # A script has no reference, so its ends may look equal: then all points are tried.
    result = find_change(context, target, question, say, scan=isinstance(target, ProgramTarget))
    answer = result.answer
    names = answer.labels[answer.last_good], answer.labels[answer.first_bad]
    lines: list[str] = []
    for part in find_origin(
        context, target, result.options, result,
        layers=options.layers, location=options.jax_location, say=say,
    ):  # fmt: skip
        if isinstance(part, LayerAnswer):
            lines += [*render_layer(part, *names), ""]
        else:
            lines += [*render_culprit(part), ""]
    return FirstBadRelease(
        last_good=names[0],
        first_bad=names[1],
        good=answer.get_summary(answer.last_good),
        history="\n".join(render_answer(answer, question.find, result.axis)),
        culprit="\n".join(lines).rstrip(),
    )
