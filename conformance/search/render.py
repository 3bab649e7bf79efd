"""Answers of searches in words and as JSON: the parts that they have in common. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.search.trials import SearchAnswer, SearchStep

CONFIRMED = "confirmed: both sides showed the same once more"


def origin_of(step: SearchStep[Any]) -> str:
    """Return a remark on a step that comes from the log or confirms another one."""
    return " (from the log)" if step.replayed else " (again)" if step.again else ""


def name_some(names: Sequence[str], most: int) -> str:
    """Return some names of many in words, e.g. `a, b and 3 more`.

    Args:
        names: The names.
        most: How many are named.
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def render_flaky(subject: str, seen: Mapping[str, int]) -> str:
    """Return in a line that something does not do the same twice.

    Args:
        subject: What was tried.
        seen: What it showed, by how often.
    """
    total = sum(seen.values())
    counts = ", ".join(f"{what} {count} of {total}" for what, count in seen.items())
    return f"flaky: {subject} does not show the same twice: {counts}"


def seconds_in(steps: Iterable[SearchStep[Any]]) -> str:
    """Return the seconds of all trials, in words."""
    return f"{sum(step.seconds for step in steps):.1f} s in them"


def predicate_json(answer: SearchAnswer[Any]) -> dict[str, str]:
    """Return the predicate of an answer as `--json` has it."""
    return {"name": answer.predicate.name, "about": answer.predicate.about}
