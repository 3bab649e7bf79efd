"""Finds the layer of each changed value and fact of the history by running.

    python benchmarks/history_layers.py LOG [--release R] [--part K/N] [--only COUNT]
    python benchmarks/history_layers.py LOG --write

For each line of a `changes.toml` that shows in a value or a fact the first of its cases is run on
the release of the line and on the release before, and its computations are repeated in the XLA of
the other one. The answers are appended to LOG, one JSON object per line; lines that LOG has are
not searched again. `--write` writes the layers to the files of the history.
"""

from __future__ import annotations

from collections import Counter
from time import perf_counter
from typing import TYPE_CHECKING, Any

from common import checkout_context
from history_commits import (
    RELEASES,
    append,
    find_place,
    key_of,
    list_changes,
    list_unsearched,
    parse_options,
    read_log,
    write_field,
)

from conformance.app.layers.find import find_layers
from conformance.app.search.options import SearchOptions
from conformance.errors import ConformanceError

if TYPE_CHECKING:
    from conformance.app.context import ProjectContext
    from conformance.corpus.behaviour_changes import BehaviourChange

SHOWN = ("value", "facts", "hlo-exact")


def main() -> None:
    """Search, or write what was found."""
    options = parse_options(__doc__ or "")
    if options.write:
        rows = read_log(options.log)
        clear = [row for row in rows if row["layer"] and row["layer"] != "not separable"]
        names = {key_of(row): (row["layer"], row.get("passes", "")) for row in clear}
        write_field("layer", {key: ", ".join(filter(None, name)) for key, name in names.items()})
        print(Counter(row["layer"] or "no answer" for row in rows))
        return
    context = checkout_context()
    shown = (change for change in list_changes() if change.shown_by in SHOWN)
    for change in list_unsearched(options, shown):
        row = search(context, change)
        append(options.log, row)
        print(f"{row['seconds']:5.1f} s {row['release']:8} {row['case']}: "
              f"{row['layer'] or row['problem']}: {row['reason']} "
              f"(cited {row['cited']})", flush=True)  # fmt: skip


def search(context: ProjectContext, change: BehaviourChange) -> dict[str, Any]:
    """Return the layer of a line of the history."""
    before = RELEASES[RELEASES.index(change.shown_at) - 1]
    case = context.select_cases([change.cases[0]])[0]
    options = SearchOptions(good=before, bad=change.shown_at, platform=find_place(case))
    row = {
        "case": change.cases[0], "release": change.shown_at, "summary": change.summary,
        "cited": change.source, "layer": "", "reason": "", "passes": "", "problem": "",
        "computations": (0, 0),
    }  # fmt: skip
    start = perf_counter()
    try:
        (found,) = find_layers(context, case, options, lambda _: None)
        answer = found.answer
        row |= {
            "layer": str(answer.layer), "reason": answer.reason, "computations": answer.calls,
            "passes": answer.passes.name if answer.passes is not None else "",
        }  # fmt: skip
    except ConformanceError as error:
        row["problem"] = str(error)
    return row | {"seconds": round(perf_counter() - start, 1)}


if __name__ == "__main__":
    main()
