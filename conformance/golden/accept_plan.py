"""Input and output of accepting: candidates, and the plan of the files to write."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from conformance.model.case import Case
    from conformance.model.observation import Observation


class AcceptEffect(StrEnum):
    """The effect of accepting one observation on the goldens."""

    ADDED = "added"
    """Nothing was recorded for the release, and no older span shows the same."""
    CHANGED = "changed"
    """Something else was recorded for the release."""
    EXTENDED = "extended"
    """The nearest older span showed the same, and now reaches the release."""
    UNCHANGED = "unchanged"
    """The same is recorded already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One observation to become golden.

    Attributes:
        case: The case.
        variant: Key of the cell variant, see `layout.make_variant_name`.
        release: The cell's jax release.
        observation: Observation of the job.
        text: Returns an IR of the observation in the canonical form, as text; called only for
            IRs that no golden holds yet.
    """

    case: Case
    variant: str
    release: str
    observation: Observation
    text: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptEntry:
    """The effect on one case, variant and release, before or after it is written."""

    case: str
    variant: str
    release: str
    change: AcceptEffect


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptPlan:
    """Files to be written, and their effect on the goldens.

    Attributes:
        entries: The effect of each candidate.
        contents: Content files to write, by path.
        documents: TOML files to write, by path.
        conflicts: Observations left out, one sentence each: another cell of the same case, variant
            and release showed something else, or it holds a path of this host.
    """

    entries: tuple[AcceptEntry, ...] = ()
    contents: Mapping[Path, bytes] = field(default_factory=dict)
    documents: Mapping[Path, str] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()

    def count(self, change: AcceptEffect) -> int:
        """Return how many entries are of a kind."""
        return sum(entry.change is change for entry in self.entries)
