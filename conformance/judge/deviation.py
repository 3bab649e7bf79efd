"""Declared deviations: which apply to a cell, and which an observation shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.judge.conformance import is_expected
from conformance.judge.errors import without_label
from conformance.model.outcome import Conformance, Outcome
from conformance.model.record import ErrorInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.model.case import Case, Deviation
    from conformance.model.observation import Observation


def applicable(
    case: Case, release: str, platform: str, versions: Mapping[str, str]
) -> tuple[Deviation, ...]:
    """Return the deviations a case declares for a cell.

    Args:
        case: The case.
        release: The cell's jax release.
        platform: The cell's platform.
        versions: Package versions of the cell.

    Returns:
        Those whose release range, platform and packages cover the cell.
    """
    return tuple(d for d in case.deviations if d.covers(release, platform, versions))


def shows(
    deviation: Deviation,
    observation: Observation,
    conforms: Conformance,
    reasons: tuple[str, ...] = (),
) -> bool:
    """Say whether an observation shows a declared deviation.

    Args:
        deviation: What is declared.
        observation: What was seen.
        conforms: Whether the observation conforms.
        reasons: Why it does not.

    Returns:
        True when outcome, error type and message are as declared. For `outcome="ok"` the program
        ran but deviates, and the pattern is searched in the reasons.
    """
    if observation.outcome != deviation.outcome:
        return False
    if observation.outcome is Outcome.OK:
        return conforms is Conformance.DEVIATES and is_expected(
            "", deviation.match, _as_error(reasons)
        )
    return is_expected(deviation.error, deviation.match, observation.error)


def described(deviation: Deviation) -> str:
    """Return a deviation in a few words: range, platform and thread.

    Args:
        deviation: What is declared.

    Returns:
        E.g. `deviation jax<0.6 (jax-ml/jax#27664)`.
    """
    where = f"jax{deviation.releases}" if deviation.releases else "every release"
    where += f" on {deviation.platform}" if deviation.platform else ""
    return f"deviation {where}" + (f" ({deviation.issue})" if deviation.issue else "")


def _as_error(reasons: tuple[str, ...]) -> ErrorInfo:
    # Declared patterns, `inf against 1.26`, hold with the label of the number and without.
    texts = dict.fromkeys((*reasons, *map(without_label, reasons)))
    return ErrorInfo(type="", message="\n".join(texts))
