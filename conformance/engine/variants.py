"""Results of the variants of a program: from events of the worker to artifacts, and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.engine.blobs import CorruptBlobError
from conformance.files import MALFORMED
from conformance.model.codec import decode_value
from conformance.model.observation import VariantResult
from conformance.model.outcome import Outcome
from conformance.model.record import ErrorInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.engine.blobs import BlobStore

WAYS: Final = "same_as"
"""Artifact that says how each way ended."""
CUT_SHORT: Final = frozenset({Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY})
"""Endings of a job that ended while a way was run."""


class VariantEnding(msgspec.Struct, frozen=True):
    """How a way ended, as the artifact keeps it; `outcome` is None while it runs."""

    outcome: Outcome | None = None
    error: ErrorInfo | None = None


@dataclass(slots=True)
class VariantTranscript:
    """The events of a worker about the variants of its program so far."""

    _endings: dict[str, VariantEnding] = field(default_factory=dict)

    def begin(self, way: str) -> None:
        """Take that a way begins."""
        self._endings[way] = VariantEnding()

    def end(self, way: str, outcome: Outcome, error: ErrorInfo | None = None) -> None:
        """Take how it ended."""
        self._endings[way] = VariantEnding(outcome, error)

    @property
    def running(self) -> str:
        """The way that began and has not ended, empty if there is none."""
        return next((way for way, one in self._endings.items() if one.outcome is None), "")

    def cut(self, outcome: Outcome, error: ErrorInfo | None, asked: Iterable[str]) -> None:
        """Take that the job ended while a way was run, before those that were to follow.

        Args:
            outcome: How the job ended.
            error: Why.
            asked: All ways that were to be run.
        """
        culprit = self.running
        self.end(culprit, outcome, error)
        said = f"{culprit} had ended the process"
        for way in asked:
            if way not in self._endings:
                missed = ErrorInfo(type="not_run", message=said, signature=f"not_run: {said}")
                self.end(way, Outcome.NOT_RUN, missed)

    def artifact(self) -> bytes:
        """Return the endings as they are kept."""
        return msgspec.json.encode(self._endings)


def variant_artifact(way: str) -> str:
    """Return the name of the artifact that holds what a way gave."""
    return f"{WAYS}-{way}"


def is_variant_artifact(artifact: str) -> bool:
    """Say whether an artifact is about a program in other ways."""
    return artifact.partition("-")[0] == WAYS


def load_variants(artifacts: Mapping[str, str], blobs: BlobStore) -> dict[str, VariantResult]:
    """Return what came of a program in other ways, by way.

    Args:
        artifacts: Blob hash by artifact.
        blobs: Where they are.

    Raises:
        CorruptBlobError: If a blob is missing or changed.
        CorruptValueError: If a blob is no value.
    """
    found = {}
    for way, ending in _endings(artifacts, blobs).items():
        blob = artifacts.get(variant_artifact(way))
        found[way] = VariantResult(
            outcome=ending.outcome or Outcome.NOT_RUN,
            error=ending.error,
            value=None if blob is None else decode_value(blobs.get(blob)),
        )
    return found


def was_cut_short(artifacts: Mapping[str, str], blobs: BlobStore) -> bool:
    """Say whether a way ended as it may have through the host's fault."""
    return any(one.outcome in CUT_SHORT for one in _endings(artifacts, blobs).values())


def _endings(artifacts: Mapping[str, str], blobs: BlobStore) -> dict[str, VariantEnding]:
    if WAYS not in artifacts:
        return {}
    try:
        return msgspec.json.decode(blobs.get(artifacts[WAYS]), type=dict[str, VariantEnding])
    except MALFORMED as error:
        raise CorruptBlobError(f"{artifacts[WAYS]}: no endings of variants: {error}") from None
