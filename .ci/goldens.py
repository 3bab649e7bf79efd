"""Rejects commits that change both goldens and the harness: `goldens.py BASE HEAD`.

The reviewer of a golden must see that the observation changed, and not the harness that made it. A
commit may change cases and their goldens, as a new case or `conformance review` does.
"""

from __future__ import annotations

import re
import subprocess
import sys

GOLDEN = re.compile(r"(cases|examples)/(.+/)?goldens?/")
CODE = re.compile(r"conformance/|matrix/locks/")
MARK = "commit "


def find_mixed_commits(log: str) -> dict[str, tuple[str, str]]:
    """Return the commits that change both, each with a golden and a file of the harness.

    Args:
        log: Output of `git log --name-only`, with a mark before each commit.
    """
    found = {}
    for entry in log.split(f"\n{MARK}"):
        commit, _, names = entry.removeprefix(MARK).partition("\n")
        files = names.split("\n")
        golden = next(filter(GOLDEN.match, files), None)
        code = next(filter(CODE.match, files), None)
        if golden and code:
            found[commit] = (golden, code)
    return found


def main(base: str, head: str) -> int:
    """Check the commits of a range, and return the exit status."""
    command = ["git", "log", "--no-merges", "--name-only", f"--format={MARK}%h"]
    ending = subprocess.run(
        [*command, f"{base}..{head}", "--"], check=True, capture_output=True, text=True
    )
    found = find_mixed_commits(ending.stdout)
    for commit, (golden, code) in found.items():
        sys.stderr.write(
            f"{commit}: changes {golden} and {code}, expected goldens in a commit of their own; "
            "conformance review makes it\n"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
