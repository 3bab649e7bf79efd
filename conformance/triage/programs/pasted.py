"""A report that somebody pasted, as a script that can be run: code, variables and versions."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.engine.run_directory import RunDirectory
from conformance.files import write_atomically
from conformance.triage.programs.paste import (
    parses,
    pins_named,
    read_paste,
    release_seen_on,
    with_echoes,
)
from conformance.triage.programs.program import ProgramKind, ProgramTarget

if TYPE_CHECKING:
    from collections.abc import Callable

_TEXTS: Final = frozenset({".md", ".markdown", ".rst", ".txt"})


def is_report(file: Path) -> bool:
    """Say whether a file is text that holds a script, and not a script itself."""
    if not file.is_file() or file.suffix not in {".py", *_TEXTS}:
        return False
    if file.suffix in _TEXTS:
        return True
    return not parses(file.read_text("utf-8", "replace"))


def script_of_report(
    text: str, name: str, folder: Path, say: Callable[[str], None]
) -> ProgramTarget:
    """Write the script of a report, and return it with what the report says to run it with.

    Args:
        text: The report.
        name: What it is called, for messages.
        folder: Where the script goes, in a folder of its own.
        say: Gets what was read from the report, a line each.

    Raises:
        UsageError: If it holds no Python.
        InfrastructureError: If the disk refuses.
    """
    pasted = read_paste(text, name)
    script = with_echoes(pasted.text) if pasted.echoes else pasted.text
    digest = hashlib.sha256(script.encode()).hexdigest()[:8]
    stem = Path(name).stem
    file = folder / f"{stem}-{digest}" / f"{stem}.py"
    RunDirectory(file.parent).make()
    write_atomically(file, script.encode())
    preferred = pins_named(text, pasted.text)
    variables = [f"{name}={value}" for name, value in pasted.variables.items()]
    parts = [f"{name}: its script is {file}", *pasted.notes]
    seen_on = release_seen_on(text)
    parts += [f"seen on jax {seen_on}"] if seen_on else []
    parts += [f"with {' '.join((*variables, *preferred))}"] if variables or preferred else []
    say("; ".join(parts))
    return ProgramTarget(
        kind=ProgramKind.SCRIPT,
        text=str(file),
        variables=pasted.variables,
        preferred=preferred,
        seen_on=seen_on,
    )
