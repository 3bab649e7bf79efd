"""The entries of an IR diff: each has a kind, a count, a severity and an example."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Severity(StrEnum):
    """How much a change may matter to the user of the program."""

    # The gravest first: reports and `IrDiff.severity` sort by this order.

    SEMANTIC = "semantic"
    """Values, the order of reductions, types, collectives, placement, sharding or donation."""
    STRUCTURAL = "structural"
    """The movement of elements and the grouping of work, with the same values."""
    COSMETIC = "cosmetic"
    """The text only."""


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
    """Instructions are fused, called, copied or laid out in another way."""
    WRITTEN = "written"
    """Only the text differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An entry of an IR diff: a change in one or several places.

    Attributes:
        kind: A `ChangeKind`.
        count: Number of places.
        severity: `semantic`, `structural` or `cosmetic`.
        title: A short description, e.g. `reduce-window removed`.
        about: Subject (`collective`, `value order` ...), empty if there is no special one.
        where: Place of the example: loops and branches around it, name stack, and the line of the
            user's source.
        before: Lines of the example in the first text.
        after: Lines of the example in the second text.
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
        """The entry on a line, e.g. `semantic (value order): reduce-window removed x48`."""
        about = f" ({self.about})" if self.about else ""
        times = f" x{self.count}" if self.count > 1 else ""
        return f"{self.severity}{about}: {self.title}{times}"


class IrChanges(NamedTuple):
    """The differences of an IR from its golden, as a record holds them.

    Attributes:
        changes: One line per pattern, the most severe first.
        begins: Places where they begin to differ.
    """

    changes: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IrDiff:
    """The differences of two modules.

    Attributes:
        kind: `hlo`, `stablehlo` or `jaxpr`.
        equal: Whether their exact forms are equal.
        neutral_equal: Whether their canonical forms are equal.
        changes: The changes by severity, the gravest first; empty if and only if `equal`.
        begins: The first operations that differ, see `conformance.ir.divergence`; empty if
            `neutral_equal`.
        facts: The facts of both, `a` and `b`.
        matched: Number of pairs of equal instructions.
        changed: Number of pairs of instructions that differ.
        unmatched: Number of instructions without a counterpart.
        not_understood: Counts of the parts that were compared as text only, by description.
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
        """The gravest severity of the changes, None without changes."""
        # Changes hold plain strings, which JSON keeps, so the order comes from the enumeration.
        found = [Severity(change.severity) for change in self.changes]
        return min(found, key=list(Severity).index, default=None)

    @property
    def aligned_share(self) -> float:
        """Share of instructions that are paired, 0 to 1; a low one makes entries unreliable."""
        total = self.matched + self.changed + self.unmatched
        # Two empty modules are aligned completely.
        return 1.0 if total == 0 else (self.matched + self.changed) / total
