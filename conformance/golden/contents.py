"""The content files of goldens as bytes: endings (a value, an error), facts and texts of IRs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.ir.fact_table import gating
from conformance.ir.normal.forms import VERSION as VERSION_OF_FORMS
from conformance.judge.agreement import recorded_error, same_ending
from conformance.judge.errors import VERSION
from conformance.judge.values import compare_values
from conformance.model.codec import decode_value, encode_value
from conformance.model.golden import RecordedError
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.judge.tolerance import Tolerance
    from conformance.model.observation import Observation
    from conformance.model.value import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One recorded ending: a value, an error, or neither for a job that ended well without one.

    Attributes:
        value: The value, when there was one.
        error: The ending, when it was not `ok`.
        tainted: Whether it was written by another version of the normal form of errors.
    """

    value: Value | None = None
    error: RecordedError | None = None
    tainted: bool = False

    @property
    def artifact(self) -> str:
        """Which it is: `value`, `error` or `ok`."""
        if self.error is not None:
            return "error"
        return "ok" if self.value is None else "value"


def content_of(observation: Observation) -> Content:
    """Return what a golden keeps of an observation."""
    if observation.outcome is not Outcome.OK:
        return Content(error=recorded_error(observation))
    if observation.value is not None:
        return Content(value=observation.value)
    return Content()


def encode(content: Content) -> bytes:
    """Return the bytes of a content file."""
    if content.error is not None:
        return _error_text(content.error).encode()
    return _OK if content.value is None else encode_value(content.value)


_OK = b"ended well, without a value\n"


def encode_facts(facts: Mapping[str, Any]) -> bytes:
    """Return the bytes of a file of facts: those that gate, and the normal form's version.

    Args:
        facts: All facts of a job.
    """
    kept = {"normal form": VERSION_OF_FORMS, **gating(dict(facts))}
    return (json.dumps(kept, sort_keys=True, indent=1) + "\n").encode()


def decode_facts(data: bytes) -> dict[str, Any]:
    """Return the facts that `encode_facts` wrote, none if by another normal form.

    Args:
        data: The file's bytes.

    Raises:
        ValueError: If the bytes are no such facts.
    """
    facts = json.loads(data)
    if not isinstance(facts, dict):
        raise TypeError(f"no facts: {data[:40]!r}")
    return facts if facts.pop("normal form", None) == VERSION_OF_FORMS else {}


def decode(artifact: str, data: bytes) -> Content:
    """Return the content that `encode` wrote.

    Args:
        artifact: `value`, `error` or `ok`.
        data: The file's bytes.

    Returns:
        The content.

    Raises:
        ValueError: If the bytes are not such a content.
        CorruptValueError: If a value's bytes are corrupt.
    """
    match artifact:
        case "value":
            return Content(value=decode_value(data))
        case "error":
            return _parse_error(data.decode())
        case _:
            return Content()


def same(observed: Content, recorded: Content, tolerance: Tolerance | None = None) -> bool:
    """Say whether what is observed belongs into the span of what is recorded.

    Args:
        observed: What a cell showed.
        recorded: What a golden holds.
        tolerance: What the case states.

    Returns:
        True for values within the golden tolerance and for endings with the same outcome, type
        and message; never for a tainted content.
    """
    if observed.tainted or recorded.tainted or observed.artifact != recorded.artifact:
        return False
    if observed.error is not None and recorded.error is not None:
        return same_ending(observed.error, recorded.error)
    if observed.value is not None and recorded.value is not None:
        return compare_values(observed.value, recorded.value, tolerance).agrees
    return True


def _error_text(error: RecordedError) -> str:
    return (
        f"normaliser: {VERSION}\noutcome: {error.outcome}\nstage: {error.stage}\n"
        f"type: {error.type}\n\n{error.message}\n"
    )


def _parse_error(text: str) -> Content:
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
