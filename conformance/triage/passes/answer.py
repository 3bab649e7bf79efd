"""The answer of a pass bisection: the passes, flags and options that matter. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from conformance.model.outcome import Outcome, Stage
from conformance.search.state import PointKind
from conformance.search.trials import SearchAnswer

if TYPE_CHECKING:
    from conformance.engine.job_comparison import StoredJob
    from conformance.ir.change import IrDiff
    from conformance.model.record import Record
    from conformance.search.trials import SearchStep

DISABLED: Final = "xla_disable_hlo_passes"
"""The compiler option, and the XLA flag, that names passes to disable."""
REFUSED: Final = "No such compile option"
"""The message of XLA about a flag that it does not know."""
STAGED: Final = frozenset({Stage.COMPILE, Stage.EXECUTE})
"""Stages that a program reaches only when passes are run on it."""
PASS, FLAG, CONFIG = "pass", "flag", "config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting that a program is tried with.

    Attributes:
        kind: `pass`, `flag` or `config`.
        disabled: The passes that are disabled.
        name: The flag or option that is set; empty for passes.
        value: Its value.
    """

    kind: str = PASS
    disabled: tuple[str, ...] = ()
    name: str = ""
    value: Any = None

    @property
    def options(self) -> dict[str, Any]:
        """The setting as compiler options."""
        if self.kind == PASS:
            return {DISABLED: ",".join(self.disabled)}
        return {self.name: self.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class PassAnswer(SearchAnswer[Setting]):
    """The answer of a pass bisection.

    Attributes:
        bad: The program without any setting.
        passes: The passes that change it, in order; those that act only while others are disabled
            come last.
        culprits: A minimal set of passes whose disabling is enough, in order; empty for none.
        together: The passes that can be disabled all together.
        refused: The passes without which, among those disabled by then, XLA fails.
        changes: The change of its optimised HLO without the culprits; None if it is not known.
        lost: Processes that ended before they answered.
    """

    bad: StoredJob
    passes: tuple[str, ...] = ()
    culprits: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    changes: IrDiff | None = None
    lost: int = 0

    @property
    def is_compiled(self) -> bool:
        """Whether the program gets so far that passes are run on it."""
        return self.bad.record.stage in STAGED

    def steps_of(self, kind: str) -> list[SearchStep[Setting]]:
        """Return the first trials of all settings of a kind."""
        return [step for step in self.steps if step.point.kind == kind and not step.again]

    @property
    def flags(self) -> list[SearchStep[Setting]]:
        """The trials of the flags that the release knows."""
        return [step for step in self.steps_of(FLAG) if not _is_refused(step.samples[0])]

    @property
    def unknown_flags(self) -> list[str]:
        """The flags that the release does not know."""
        refused = (step for step in self.steps_of(FLAG) if _is_refused(step.samples[0]))
        return list(dict.fromkeys(step.point.name for step in refused))

    @property
    def settings(self) -> list[SearchStep[Setting]]:
        """The flags and options that alone are enough."""
        tried = (*self.flags, *self.steps_of(CONFIG))
        return [step for step in tried if step.state and step.state.kind is PointKind.GOOD]

    @property
    def is_explained(self) -> bool:
        """Whether any setting is enough."""
        return bool(self.culprits or self.settings)

    @property
    def confirmed(self) -> bool:
        """Whether there is an answer, and all of it did the same twice."""
        return self.is_explained and not self.flaky


def _is_refused(record: Record) -> bool:
    """Say whether XLA does not know a flag: of a compilation, or of the process."""
    refused = record.error is not None and REFUSED in record.error.message
    return refused or record.outcome is Outcome.UNSUPPORTED
