"""Content files of goldens as bytes: endings (a value or an error) and facts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.golden.value_text import FORMAT, parse_value, render_value
from conformance.ir.normal.text import VERSION as VERSION_OF_FORMS
from conformance.judge.agreement import is_same_error, make_recorded_error
from conformance.judge.errors import VERSION
from conformance.judge.ir import select_gating
from conformance.judge.values import compare_values
from conformance.model.golden import RecordedError
from conformance.model.outcome import Outcome
from conformance.model.value import decode_value, encode_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.judge.tolerance import Tolerance
    from conformance.model.observation import Observation
    from conformance.model.value import Value

HARNESS = Path(__file__).parents[1]
"""Folder of this package, which locations of traced code may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The recorded ending of a job: a value, an error, or neither for a success without a value.

    Attributes:
        value: The value of a job that ended well.
        error: The ending of a job whose outcome is not `ok`.
        tainted: True if written by another version of the normal form of errors.
    """

    value: Value | None = None
    error: RecordedError | None = None
    tainted: bool = False

    @property
    def artifact(self) -> str:
        """Artifact that records the ending: `value`, `error` or `ok`."""
        if self.error is not None:
            return "error"
        return "ok" if self.value is None else "value"


def make_content(observation: Observation) -> Content:
    """Return the ending of an observation as a golden records it."""
    if observation.outcome is not Outcome.OK:
        return Content(error=make_recorded_error(observation))
    return Content(value=observation.value)


def encode(content: Content) -> tuple[bytes, bool]:
    """Encode a value or an error as a content file.

    Args:
        content: An ending that has a file: not `ok`.

    Returns:
        The bytes, and whether they are those of a value that is stored as safetensors because it
        is too large to read as text.
    """
    if content.error is not None:
        return _render_error(content.error).encode(), False
    if content.value is None:
        raise ValueError("an ending without a value has no file")
    text = render_value(content.value)
    return (encode_value(content.value), True) if text is None else (text, False)


def find_host_path(data: bytes, cases: Path) -> str:
    """Return the first path in a content that is about this host, empty if it has none.

    Args:
        data: Content of a golden.
        cases: Folder of all cases. Its files and those of the harness are what may be named.
    """
    folders = "|".join(re.escape(str(folder.resolve())) for folder in (cases, HARNESS))
    found = re.search(rf"(?:{folders})/[\w./-]*".encode(), data)
    return found.group().decode() if found else ""


def encode_facts(facts: Mapping[str, Any]) -> bytes:
    """Encode the gating facts of a job, with the version of the normal form.

    Args:
        facts: All facts of a job.
    """
    # Facts that do not gate change with every release of XLA, and would split the span.
    gated = {"normal form": VERSION_OF_FORMS, **select_gating(dict(facts))}
    return (json.dumps(gated, sort_keys=True, indent=1) + "\n").encode()


def decode_facts(data: bytes) -> dict[str, Any]:
    """Decode facts that `encode_facts` wrote.

    Args:
        data: Bytes of the file.

    Returns:
        The facts; none if they are of another normal form.

    Raises:
        ValueError: If the bytes are not JSON.
        TypeError: If the JSON is not an object.
    """
    facts = json.loads(data)
    if not isinstance(facts, dict):
        raise TypeError(f"no facts: {data[:40]!r}")
    # No error: facts of another normal form are as good as none until they are accepted again.
    return facts if facts.pop("normal form", None) == VERSION_OF_FORMS else {}


def decode(artifact: str, data: bytes) -> Content:
    """Decode the ending that `encode` wrote.

    Args:
        artifact: `value` or `error`.
        data: Bytes of the file.

    Returns:
        The ending.

    Raises:
        ValueError: If the bytes are no such content.
        CorruptValueError: If the bytes of a value are corrupt.
    """
    if artifact == "error":
        return _parse_error(data.decode())
    # Values of up to 512 elements are text; larger ones are safetensors.
    is_text = data.startswith(FORMAT.encode())
    return Content(value=parse_value(data) if is_text else decode_value(data))


def is_same_ending(
    observed: Content, recorded: Content, tolerance: Tolerance | None = None
) -> bool:
    """Say whether an observed ending agrees with a recorded ending.

    Args:
        observed: The ending in a cell.
        recorded: The ending in a golden.
        tolerance: The tolerance that the case declares.

    Returns:
        True for values within the golden tolerance, and for errors with the same outcome, type
        and message; never for a tainted content.
    """
    # A message in another normal form may differ where JAX did not change.
    if observed.tainted or recorded.tainted or observed.artifact != recorded.artifact:
        return False
    if observed.error is not None and recorded.error is not None:
        return is_same_error(observed.error, recorded.error)
    if observed.value is not None and recorded.value is not None:
        return compare_values(observed.value, recorded.value, tolerance).agrees
    return True


def _render_error(error: RecordedError) -> str:
    return (
        f"normaliser: {VERSION}\noutcome: {error.outcome}\nstage: {error.stage}\n"
        f"type: {error.type}\n\n{error.message}\n"
    )


def _parse_error(text: str) -> Content:
    # The message may hold blank lines itself, so only the first ends the head.
    head, blank, message = text.partition("\n\n")
    fields = dict(line.split(": ", 1) for line in head.split("\n"))
    if not blank or fields.keys() != {"normaliser", "outcome", "stage", "type"}:
        raise ValueError(f"no error record: begins {text[:40]!r}")
    error = RecordedError(
        outcome=Outcome(fields["outcome"]),
        stage=fields["stage"],
        type=fields["type"],
        message=message.removesuffix("\n"),
    )
    return Content(error=error, tainted=fields["normaliser"] != str(VERSION))
