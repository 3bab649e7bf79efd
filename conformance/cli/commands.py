"""The subcommands in groups: the module and the one-line summary of each.

They are data, so that `conformance --help` answers without importing any of the modules.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Entry(NamedTuple):
    """A subcommand.

    Attributes:
        module: Module whose `command` it is; imported only when the command is called.
        summary: What it does, in one line.
    """

    module: str
    summary: str


GROUPS: Final[dict[str, dict[str, Entry]]] = {
    "Run": {
        "run": Entry("run", "Run cases in cells and report what is unexpected."),
        "list": Entry("list_cases", "List cases without importing them."),
        "plan": Entry("plan", "Show the jobs of a run, and split them across runners."),
        "merge": Entry("merge", "Merge the shards of a run."),
        "suite": Entry("suite", "Run a pytest suite in cells."),
    },
    "Look": {
        "report": Entry("report", "Render runs as a site, Markdown, JUnit XML or JSON."),
        "diff": Entry("diff", "Compare two IRs, cells or runs."),
        "history": Entry("history", "Record runs over time and query them."),
    },
    "Upgrade": {
        "upgrade": Entry("upgrade", "Show what breaks and what changes between two releases."),
    },
    "Reproduce": {
        "bisect": Entry("bisect", "Find the release that changed the behavior of a target."),
        "blame": Entry("blame", "Find the package that changed the behavior of a target."),
        "passes": Entry("passes", "Find the HLO pass or XLA flag that makes a difference."),
        "new": Entry("new", "Create a case from a pasted script."),
        "shrink": Entry("shrink", "Reduce a case or a script to what still fails."),
        "repro": Entry("repro", "Write a one-file reproduction to send upstream."),
    },
    "Nightly": {
        "triage": Entry("triage", "Find the release and package that introduced each failure."),
        "review": Entry("review", "Decide on each pending change: golden, deviation or neither."),
        "accept": Entry("accept", "Store the results of a run as goldens."),
        "notify": Entry("notify", "Open, update and close an issue for each root cause."),
        "calibrate": Entry("calibrate", "Detect flaky jobs on this host."),
    },
    "Environment": {
        "matrix": Entry("matrix", "Show matrices and cells; refresh releases and locks."),
        "doctor": Entry("doctor", "Check that this machine can run the matrix."),
    },
}
COMMANDS: Final[dict[str, Entry]] = {
    name: Entry(f"conformance.cli.{entry.module}", entry.summary)
    for group in GROUPS.values()
    for name, entry in group.items()
}
"""Every subcommand by name, in the order of the groups."""
