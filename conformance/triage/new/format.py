"""The formatter and linter of the project's own, where it is installed: what people commit with."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

RUFF: Final = "ruff"


def find_ruff() -> str | None:
    """Return the program, None where there is none."""
    beside = Path(sys.executable).with_name(RUFF)
    return str(beside) if beside.exists() else shutil.which(RUFF)


def format_file(text: str, file: Path) -> str:
    """Return a file as the formatter leaves it; as it is where there is no formatter.

    What the linter still finds in it is marked to be passed over: its script came with that.

    Args:
        text: Content of the file.
        file: Its path: the configuration is that of its folder.
    """
    for command in (["check", "--fix-only", "--exit-zero"], ["format"]):
        text = _ruff(command, text, file) or text
    marked = _marked(text, _ruff(["check", "--output-format", "json", "--exit-zero"], text, file))
    return _ruff(["format"], marked, file) or marked


def _ruff(command: Sequence[str], text: str, file: Path) -> str:
    """Return what a command prints of a text; nothing where it refuses, or cannot be run."""
    ruff = find_ruff()
    if ruff is None:
        return ""
    folder = next(parent for parent in file.parents if parent.is_dir())
    done = subprocess.run(
        [ruff, *command, "--quiet", "--stdin-filename", str(file), "-"],
        input=text, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout if done.returncode == 0 else ""


def _marked(text: str, report: str) -> str:
    """Return a text with marks for the linter where its report, as JSON, has a finding."""
    try:
        findings = msgspec.json.decode(report, type=list[dict[str, Any]])
    except msgspec.DecodeError:
        return text
    codes: dict[int, set[str]] = {}
    for one in findings:
        if one.get("code"):
            row = one.get("noqa_row") or one["location"]["row"]
            codes.setdefault(row, set()).add(one["code"])
    lines = text.splitlines()
    for row, found in codes.items():
        before, mark, rest = lines[row - 1].partition("  # noqa: ")
        listed = ", ".join(sorted(found))
        lines[row - 1] = f"{before}  # noqa: {listed}{', ' if mark else ''}{rest}"
    return "\n".join(lines) + "\n"
