"""The entries of a difference: each has a kind, a count, a severity and a worked example."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Severity(StrEnum):
    """How much a change may matter to whoever runs the program."""

    SEMANTIC = "semantic"
    """Values, their order of evaluation, types, collectives, placement, sharding or donation."""
    STRUCTURAL = "structural"
    """How elements are moved, and how work is grouped; the same values."""
    COSMETIC = "cosmetic"
    """How it is written."""


class ChangeKind(StrEnum):
    """The kind of a change."""

    ADDED = "added"
    REMOVED = "removed"
    REPLACED = "replaced"
    MOVED = "moved"
    CHANGED = "changed"
    REWIRED = "rewired"
    RESULTS = "results"
    DONATION = "donation"
    PLACEMENT = "placement"
    SHARDING = "sharding"
    GROUPED = "grouped"
    """Only how instructions are fused, called, copied or laid out differs."""
    WRITTEN = "written"
    """Only how it is written differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One entry of a difference: something that happened once or often.

    Attributes:
        kind: What happened, see `ChangeKind`.
        count: How often.
        severity: `semantic`, `structural` or `cosmetic`.
        title: In a few words.
        about: What it concerns (`collective`, `value order` ...), empty when nothing special.
        where: Of the worked example: the loops and branches around it, its name stack, and the
            line of the user's source.
        before: Its lines in the first text.
        after: Its lines in the second.
    """

    kind: str
    count: int
    severity: str
    title: str
    about: str = ""
    where: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The entry in one line, e.g. `semantic (value order): reduce-window removed x48`."""
        about = f" ({self.about})" if self.about else ""
        times = f" x{self.count}" if self.count > 1 else ""
        return f"{self.severity}{about}: {self.title}{times}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IrDiff:
    """How two modules differ.

    Attributes:
        kind: `hlo`, `stablehlo` or `jaxpr`.
        equal: Whether they are the same in the form `exact`.
        neutral_equal: Whether they are the same in the form `canonical`.
        changes: What differs, the gravest first; empty if and only if `equal`.
        begins: Where it begins to, see `conformance.ir.divergence`; empty if `neutral_equal`.
        facts: The facts of both, `a` and `b`.
        matched: Instructions of both that correspond and do the same.
        changed: Instructions that correspond and differ.
        unmatched: Instructions of either that correspond to none.
        not_understood: What was compared as text only, with how often it occurs.
    """

    kind: str
    equal: bool
    neutral_equal: bool
    changes: tuple[Change, ...] = ()
    begins: tuple[str, ...] = ()
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    matched: int = 0
    changed: int = 0
    unmatched: int = 0
    not_understood: Mapping[str, int] = field(default_factory=dict)

    @property
    def severity(self) -> Severity | None:
        """The gravest of the changes, None when there is none."""
        found = [Severity(change.severity) for change in self.changes]
        return min(found, key=list(Severity).index, default=None)

    @property
    def aligned(self) -> float:
        """Share of the instructions that correspond; a poor one says not to trust the entries."""
        total = self.matched + self.changed + self.unmatched
        return 1.0 if total == 0 else (self.matched + self.changed) / total
