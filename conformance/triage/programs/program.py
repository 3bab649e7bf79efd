"""A program of the user: a script, a pytest test or a command line."""

from __future__ import annotations

import hashlib
import os
import shlex
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.engine.input_files import READ_FILES, decode_inputs
from conformance.errors import UsageError
from conformance.search.equivalence import SILENT, format_ending
from conformance.triage.programs.needed_devices import count_named_devices

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.engine.cache.blobs import BlobStore
    from conformance.model.record import Record

NODE: Final = "::"
"""Separates the parts of a pytest node id."""


class ProgramKind(StrEnum):
    """The kind of a program."""

    SCRIPT = "script"
    TEST = "test"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTarget:
    """A program that is run in the environments of cells.

    Attributes:
        kind: Kind of the program.
        text: Path of the script, node id, or command line.
        variables: Environment variables of the program in addition to those of a cell.
        preferred: Requirements of a pasted report, which apply if they can be installed.
        seen_on: Release of jax on which a pasted report saw the behaviour.
    """

    kind: ProgramKind
    text: str
    variables: Mapping[str, str] = field(default_factory=dict)
    preferred: tuple[str, ...] = ()
    seen_on: str = ""

    @property
    def name(self) -> str:
        """The case name in records: the kind, and a name without slashes."""
        last = self.text if self.kind is ProgramKind.COMMAND else Path(self.text).name
        return f"{self.kind}/{last.replace('/', ' ')}"

    @property
    def source(self) -> str:
        """Text of a script, which may declare requirements; empty for other kinds."""
        if self.kind is not ProgramKind.SCRIPT:
            return ""
        return Path(self.text).read_text("utf-8", "replace")

    @property
    def platform(self) -> str:
        """The platform on which it runs if no other is chosen.

        One CPU device, as outside of the harness, or as many as the source names.
        """
        return f"cpu{max(count_named_devices(self.source), 1)}"

    def hash(self, *, timeout: float, wanted: Iterable[str]) -> str:
        """Return a hash of everything that decides the outcome, except cell and input files.

        Args:
            timeout: Timeout in seconds.
            wanted: Requirements in addition to the packages of the cells.
        """
        more = (*sorted(wanted), *map("=".join, sorted(self.variables.items())))
        # The timeout decides whether a slow program is timed out, so it is part of the outcome.
        parts = (self.kind, self.text, f"{timeout:g}", *more)
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape"))
        for file in self.files:
            digest.update(file.read_bytes())
        return digest.hexdigest()[:16]

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that the program names: its source, or files among the words of a command."""
        if self.kind is not ProgramKind.COMMAND:
            return (Path(self.text.partition(NODE)[0]),)
        try:
            words = shlex.split(self.text)
        except ValueError:  # the shell reports it when the command runs
            return ()
        return tuple(file for file in map(Path, words) if file.is_file())

    @property
    def roots(self) -> tuple[Path, ...]:
        """Folders in which files are the user's own."""
        return (Path.cwd(), *(file.absolute().parent for file in self.files[:1]))

    def make_command(self, python: Path, runner: Path, note: Path) -> Sequence[str]:
        """Return the command that runs the program.

        Args:
            python: Interpreter of the environment.
            runner: `conformance/worker/script.py`.
            note: File for the note of an exception, or for pytest's report.
        """
        match self.kind:
            case ProgramKind.SCRIPT:
                return [str(python), str(runner), str(note), self.text]
            case ProgramKind.TEST:
                options = ["-q", "--tb=short", "-p", "no:cacheprovider", f"--junitxml={note}"]
                return [str(python), "-m", "pytest", *options, self.text]
            case ProgramKind.COMMAND:
                return ["/bin/sh", "-c", self.text]


def find_program(text: str, *, command: bool = False) -> ProgramTarget | None:
    """Return the program that a text names, None if the text may name a case.

    Args:
        text: Path of a script, node id of a test, or a command line.
        command: True if the text is known to be a command line.

    Raises:
        UsageError: If the text names a missing file.
    """
    if command:
        return ProgramTarget(kind=ProgramKind.COMMAND, text=text)
    file = text.partition(NODE)[0]
    is_python = file.endswith(".py")
    if is_python and Path(file).is_file():
        kind = ProgramKind.TEST if NODE in text else ProgramKind.SCRIPT
        return ProgramTarget(kind=kind, text=text)
    # A name of a case has no spaces, so several words are a command line.
    if len(_split_words(text)) > 1:
        return ProgramTarget(kind=ProgramKind.COMMAND, text=text)
    if Path(text).is_file() and os.access(text, os.X_OK):
        # An absolute path: the shell looks up a bare name on PATH only.
        return ProgramTarget(kind=ProgramKind.COMMAND, text=shlex.quote(str(Path(text).absolute())))
    if is_python:
        raise UsageError(f"{file}: no such file, expected a Python script or test")
    return None


def _split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text}: no command line: {str(error).lower()}") from None


def refuse_other_files(record: Record, blobs: BlobStore, script: ProgramTarget) -> None:
    """Refuse a script that depends on other files of the user.

    Args:
        record: Record of the script.
        blobs: Artifacts of the record.
        script: The script.

    Raises:
        UsageError: If the script did not run, or reads other files of the user.
    """
    if record.outcome in SILENT:
        raise UsageError(f"{record.cell}: {format_ending(record)}")
    own = Path(script.text).resolve()
    read = decode_inputs(blobs.get(record.artifacts[READ_FILES]))
    # Resolved: Python names a script in a linked folder by the path that it was given.
    others = [path for path, content in read.items() if content and Path(path).resolve() != own]
    if others:
        raise UsageError(
            f"{own.name}: reads {', '.join(others)}, expected a script of one file; "
            "copy the code that it needs into the script"
        )
