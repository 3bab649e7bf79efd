"""What one recorded ending holds, as bytes: value, error or facts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.golden.layout import content_name
from conformance.judge.agreement import recorded_error, same_ending
from conformance.judge.conformance import unmet_claims
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
    """One recorded ending: exactly one of its parts.

    Attributes:
        value: The value, when there was one.
        error: The ending, when it was not `ok`.
        facts: The facts, when the job ended well without a value.
        tainted: Whether it was written by another version of the normal form of errors.
    """

    value: Value | None = None
    error: RecordedError | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    tainted: bool = False

    @property
    def artifact(self) -> str:
        """Which part it is: `value`, `error` or `facts`."""
        if self.error is not None:
            return "error"
        return "facts" if self.value is None else "value"


def content_of(observation: Observation) -> Content:
    """Return what a golden keeps of an observation."""
    if observation.outcome is not Outcome.OK:
        return Content(error=recorded_error(observation))
    if observation.value is not None:
        return Content(value=observation.value)
    return Content(facts=observation.facts)


def encode(content: Content) -> tuple[str, bytes]:
    """Return the file name and the bytes of a content."""
    if content.error is not None:
        data = _error_text(content.error).encode()
    elif content.value is not None:
        data = encode_value(content.value)
    else:
        data = (json.dumps(content.facts, sort_keys=True, indent=1) + "\n").encode()
    return content_name(content.artifact, data), data


def decode(artifact: str, data: bytes) -> Content:
    """Return the content that `encode` wrote.

    Args:
        artifact: `value`, `error` or `facts`.
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
            return Content(facts=json.loads(data))


def same(observed: Content, recorded: Content, tolerance: Tolerance | None = None) -> bool:
    """Say whether what is observed belongs into the span of what is recorded.

    Args:
        observed: What a cell showed.
        recorded: What a golden holds.
        tolerance: What the case states.

    Returns:
        True for values within the golden tolerance, for endings with the same outcome, type and
        message, and where all recorded facts hold; never for a tainted content.
    """
    if observed.tainted or recorded.tainted or observed.artifact != recorded.artifact:
        return False
    if observed.error is not None and recorded.error is not None:
        return same_ending(observed.error, recorded.error)
    if observed.value is not None and recorded.value is not None:
        return compare_values(observed.value, recorded.value, tolerance).agrees
    return not any(unmet_claims(recorded.facts, observed.facts))


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
