"""Regressions by root cause: where they stand, and what happened to them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.engine.digests import JobState


class Standing(StrEnum):
    """Where a regression stands, or what happened to it."""

    NEW = "new"
    """One run showed it, once."""
    CONFIRMED = "confirmed"
    """Two runs showed it, or one in which it was repeated."""
    KNOWN = "known"
    """An issue is linked, since it was opened last."""
    FIXED = "fixed"
    """Every job of it has run since, and shows it no more."""
    REOPENED = "reopened"
    """It was fixed, and is open again."""


@dataclass(frozen=True, slots=True)
class Link:
    """An issue of a regression, and the newest run when it was linked."""

    issue: str
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something happened to a regression.

    Attributes:
        kind: What.
        regression: Id of the regression.
        run: Number of the run that showed it.
        places: Where: the places that came to show it, or ceased to; all of a confirmation.
    """

    kind: Standing
    regression: str
    run: int
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """Jobs of a case that were unexpected for the same reason.

    Attributes:
        id: Stays the same as long as case, verdict and cause do.
        case: The case.
        state: What its first job showed.
        standing: Where it stands.
        issue: The linked issue, empty if there is none.
        first: Number of the first run that showed it, as far as runs are kept.
        last: Number of the last run that showed it.
        fixed_in: Number of the run that first showed it gone; None while it is open.
        reopened: How often it came back.
        places: Every place that ever showed it.
        open_places: The places that still do, as far as is known.
    """

    id: str
    case: str
    state: JobState
    standing: Standing
    issue: str
    first: int
    last: int
    fixed_in: int | None
    reopened: int
    places: tuple[str, ...]
    open_places: tuple[str, ...]
