"""The passes and flags of XLA behind a difference of one recorded computation. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.search.ddmin import SetResult
from conformance.triage.passes.pass_bisection import find_passes
from conformance.triage.passes.settings import Setting, format_flags
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFinding:
    """Passes or flags that give the good result with the compiler that gives the bad one.

    Attributes:
        culprits: A minimal set of passes whose disabling is enough, in order; empty for none.
        changing: Number of passes that change the module.
        flags: The flags each of which is enough.
        tried: Number of flags that were tried.
    """

    culprits: tuple[str, ...] = ()
    changing: int = 0
    flags: tuple[Setting, ...] = ()
    tried: int = 0

    @property
    def name(self) -> str:
        """The passes, or else the first flag, in a few words; empty if nothing was found."""
        if self.culprits:
            passes = "pass" if len(self.culprits) == 1 else "passes"
            return f"{passes} {', '.join(self.culprits)}"
        return f"flag {_format(self.flags[0])}" if self.flags else ""


def find_module_passes(
    list_dumps: Callable[[Sequence[str]], Sequence[str]],
    classify: Callable[[Setting], SetResult],
    flags: Iterable[Setting],
    *,
    unfinished: bool,
) -> PassFinding:
    """Find what gives the good result of a computation: a set of passes, and flags.

    Args:
        list_dumps: Returns the files that XLA dumps while some passes are disabled.
        classify: Says whether the result with a setting is the good one.
        flags: The flags to try, one at a time.
        unfinished: Whether the bad result is a failure of the compilation.
    """

    def classify_twice(setting: Setting) -> SetResult:
        # Uninitialised memory may be like the good result once.
        result = classify(setting)
        return classify(setting) if result is SetResult.ENOUGH else result

    found = find_passes(
        list_dumps, lambda passes: classify_twice(Setting(disabled=passes)), unfinished=unfinished
    )
    tried = list(flags)
    helping = tuple(flag for flag in tried if classify_twice(flag) is SetResult.ENOUGH)
    return PassFinding(
        culprits=found.culprits, changing=len(found.passes), flags=helping, tried=len(tried)
    )


def render_passes(finding: PassFinding, bad: str) -> Iterator[str]:
    """Yield the lines of a finding.

    Args:
        finding: The finding.
        bad: Name of the bad release.
    """
    tried = (
        f"tried {plural(finding.changing, 'pass that changes', 'passes that change')} the module"
        f" and {plural(finding.tried, 'flag')}"
    )
    ways = [f"without the {finding.name}"] if finding.culprits else []
    ways += [f"with {_format(flag)}" for flag in finding.flags]
    if ways:
        yield f"the XLA of {bad} gives the good result {', or '.join(ways)} ({tried})"
    else:
        yield f"no pass or flag of the XLA of {bad} gives the good result ({tried})"


def _format(flag: Setting) -> str:
    return format_flags(flag.options)[0]
