"""Outcomes and errors of programs, in the terms of jobs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.engine.workers.printed_exceptions import find_exception
from conformance.engine.workers.transcript import classify_raised, name_signal
from conformance.judge.errors import make_signature
from conformance.model.outcome import Outcome
from conformance.model.record import ErrorInfo
from conformance.triage.programs import process
from conformance.triage.programs.program import ProgramKind
from conformance.worker.processes import find_refused_flags

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.cells.secret_masking import Masker
    from conformance.engine.job import PlannedCell
    from conformance.triage.programs.process import CompletedProgram

_SUGGESTION: Final = re.compile(r"\. Did you mean: .*\?\Z")
"""The suggestion that a traceback appends to a message; the exception does not have it."""
_LOGGED: Final = re.compile(r"^[WIEF]\d{4} |^WARNING:")
"""Lines of the logs of libraries."""
_REFUSED: Final = 2
"""Exit status of programs that refuse their command line."""
_USAGE: Final = re.compile(r"^usage: .*(?:\n[ \t]+.*)*", re.MULTILINE | re.IGNORECASE)
_DEVICES_NEEDED: Final = "devices needed"
"""Type of the error of a program that was given one device and needs several."""


def make_devices_error(count: int) -> ErrorInfo:
    """Return the error of a program that needs several devices.

    Args:
        count: The number of devices.
    """
    return make_error_info(_DEVICES_NEEDED, f"{count}; search with --platform cpu{count}")


def read_devices_error(error: ErrorInfo | None) -> int:
    """Return the number of devices of an error that `make_devices_error` made, 0 for any other.

    Args:
        error: The error, if any.
    """
    if error is None or error.type != _DEVICES_NEEDED:
        return 0
    return int(error.message.partition(";")[0])


def list_given_flags(planned: PlannedCell, flags: tuple[str, ...]) -> set[str]:
    """Return the names of the XLA flags that a program is given, without those it sets itself.

    Args:
        planned: Cell of the program.
        flags: Flags after those of the cell.
    """
    given = (*planned.cell.place.xla_flags, *planned.cell.xla_flags, *flags)
    return {flag.removeprefix("--").partition("=")[0] for flag in given}


def classify_outcome(
    ended: CompletedProgram, note: ErrorInfo | None, timeout: float, given: set[str]
) -> tuple[Outcome, ErrorInfo | None]:
    """Return the outcome and the error of a program.

    Args:
        ended: The completed process.
        note: The exception that the process noted, if any.
        timeout: Timeout of the program in seconds.
        given: Names of the XLA flags that the program was run with.
    """
    if ended.exit == 0:
        return Outcome.OK, None
    # Before signals: a program that is ended from outside dies of one, too.
    if ended.cut:
        return _describe_cut(ended.cut, timeout)
    refused = find_refused_flags(ended.stderr.decode("utf-8", "replace"))
    # A flag that the program sets itself may be the failure that is searched.
    if given.intersection(re.findall(r"\w+", refused)):
        return Outcome.UNSUPPORTED, make_error_info("unsupported", refused)
    if ended.signal is not None:
        name = name_signal(ended.signal)
        return Outcome.CRASHED, make_error_info(name, f"the process was ended by {name}")
    error = note or _read_last_words(ended)
    return classify_raised(error), error


def _read_last_words(ended: CompletedProgram) -> ErrorInfo:
    """Return the error of a program that left no note, by its traceback or exit status."""
    text = ended.stderr.decode("utf-8", "replace")
    if found := find_exception(text):
        type_, message = found
        return make_error_info(type_.rpartition(".")[2], _SUGGESTION.sub("", message))
    # The last line of a log would be another one in each run.
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _LOGGED.match(line)]
    last = f": {lines[-1]}" if lines else ""
    return make_error_info("exit", f"status {ended.exit}{last}")


def find_usage(ended: CompletedProgram) -> str:
    """Return the usage line of a script that refused its command line, otherwise empty."""
    if ended.exit != _REFUSED:
        return ""
    found = _USAGE.search(ended.stderr.decode("utf-8", "replace"))
    return " ".join(found[0].split()) if found else ""


def _describe_cut(why: str, timeout: float) -> tuple[Outcome, ErrorInfo]:
    """Return the outcome of a program that was ended from outside."""
    if why == "timeout":
        late = f"no end within the timeout of {timeout:g} s"
        return Outcome.TIMED_OUT, make_error_info("timeout", late)
    if why == "output":
        much = f"printed more than {process.LARGEST >> 20} MiB"
        return Outcome.CRASHED, make_error_info("output", much)
    return Outcome.NOT_RUN, make_error_info("interrupted", "the search was interrupted")


def make_error_info(type_: str, message: str, where: str = "") -> ErrorInfo:
    """Return an error with its signature.

    Args:
        type_: Type of the exception, or kind of the ending.
        message: Message of the exception.
        where: Place where it was raised.
    """
    fields = make_signature(type_, message)
    return ErrorInfo(type=type_, message=message, signature=fields, where=where)


def read_note(note: Path, kind: ProgramKind, masker: Masker) -> ErrorInfo | None:
    """Return the exception that ended a program, None if it left no note.

    Args:
        note: Note of the program: JSON for a script, pytest's report for a test.
        kind: Kind of the program.
        masker: Masks secrets.
    """
    try:
        data = masker.mask_content(note.read_bytes())
    except OSError:
        return None
    return _parse_test_report(data) if kind is ProgramKind.TEST else _parse_script_note(data)


def _parse_script_note(data: bytes) -> ErrorInfo | None:
    try:
        fields: dict[str, Any] = msgspec.json.decode(data, type=dict[str, str])
    except msgspec.DecodeError:  # killed while it wrote
        return None
    return make_error_info(fields["type"], fields["message"], fields["where"])


def _parse_test_report(data: bytes) -> ErrorInfo | None:
    """Return the first failure of pytest's own report."""
    try:
        report = ET.fromstring(data)  # noqa: S314 - pytest's
    except ET.ParseError:
        return None
    failed = next((one for kind in ("failure", "error") for one in report.iter(kind)), None)
    if failed is None:
        return None
    type_, sign, message = failed.get("message", "").partition(": ")
    return make_error_info(type_, message) if sign else make_error_info("failure", type_)
