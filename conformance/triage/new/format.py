"""The formatter and linter of the project's own, where it is installed: what people commit with."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RUFF: Final = "ruff"


def find_ruff() -> str | None:
    """Return the program, None where there is none."""
    beside = Path(sys.executable).with_name(RUFF)
    return str(beside) if beside.exists() else shutil.which(RUFF)


def formatted(text: str, file: Path) -> str:
    """Return a file as the formatter leaves it; as it is where there is no formatter.

    Args:
        text: Content of the file.
        file: Where it is to stand: the configuration is that of its folder.
    """
    ruff = find_ruff()
    if ruff is None:
        return text
    for command in (["check", "--fix-only", "--exit-zero"], ["format"]):
        text = _run([ruff, *command, "--quiet", "--stdin-filename", str(file), "-"], text, file)
    marked = _marked(text, _found(ruff, text, file))
    return _run([ruff, "format", "--quiet", "--stdin-filename", str(file), "-"], marked, file)


def _run(command: Sequence[str], text: str, file: Path) -> str:
    """Return what a command makes of a text; the text itself where it refuses."""
    folder = next(parent for parent in file.parents if parent.is_dir())
    done = subprocess.run(
        command, input=text, cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 and done.stdout else text


def _found(ruff: str, text: str, file: Path) -> Mapping[int, set[str]]:
    """Return what the linter still finds: codes by the line that a mark belongs to."""
    options = ["--output-format", "json", "--quiet", "--exit-zero"]
    command = [ruff, "check", *options, "--stdin-filename", str(file), "-"]
    folder = next(parent for parent in file.parents if parent.is_dir())
    done = subprocess.run(
        command, input=text, cwd=folder, capture_output=True, text=True, check=False
    )
    try:
        said: list[dict[str, Any]] = msgspec.json.decode(done.stdout, type=list[dict[str, Any]])
    except msgspec.DecodeError:
        return {}
    found: dict[int, set[str]] = {}
    for one in said:
        row = one.get("noqa_row") or one["location"]["row"]
        if one.get("code"):
            found.setdefault(row, set()).add(one["code"])
    return found


def _marked(text: str, found: Mapping[int, set[str]]) -> str:
    """Return a text in which the linter is told to pass over what a script came with."""
    lines = text.splitlines()
    for row, codes in found.items():
        line = lines[row - 1]
        here, mark, rest = line.partition("  # noqa: ")
        listed = ", ".join(sorted(codes))
        lines[row - 1] = f"{here}{mark}{listed}, {rest}" if mark else f"{line}  # noqa: {listed}"
    return "\n".join(lines) + "\n"
