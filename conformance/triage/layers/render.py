"""The layer behind a difference in words and as JSON. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.triage.layers.answer import BAD, GOOD, Layer
from conformance.triage.layers.passes import render_passes
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.triage.layers.answer import LayerAnswer


def describe_layer(answer: LayerAnswer) -> str:
    """Return the layer in a line, with the reason.

    Args:
        answer: The answer.
    """
    found = answer.passes.name if answer.passes is not None else ""
    layer = f"{answer.layer}, {found}" if found else str(answer.layer)
    return f"{layer} ({answer.reason})" if answer.reason else layer


def render_layer(answer: LayerAnswer, good: str, bad: str) -> Iterator[str]:
    """Yield the lines of an answer.

    Args:
        answer: The answer.
        good: Name of the good release.
        bad: Name of the bad release.
    """
    yield f"layer: {describe_layer(answer)}"
    if answer.layer is Layer.NONE:
        return
    names = {GOOD: good, BAD: bad}
    if answer.table:
        yield f"computation {answer.call}:"
        width = max(len(good), len(bad))
        for one in answer.table:
            producer, compiler = names[one.producer], names[one.compiler]
            yield f"  StableHLO of {producer:<{width}}  XLA of {compiler:<{width}}  {one.summary}"
    elif answer.call:
        yield f"computation {answer.call}"
    if answer.passes is not None:
        yield from render_passes(answer.passes, bad)
    if not any(answer.calls):
        return
    counts = plural(answer.calls[BAD], "computation")
    differing = f"{answer.differing} with another result"
    yield f"{counts} in {bad}, {answer.calls[GOOD]} in {good}; {differing}"


def make_layer_json(answer: LayerAnswer, good: str, bad: str) -> dict[str, Any]:
    """Return an answer as `--json` has it.

    Args:
        answer: The answer.
        good: Name of the good release.
        bad: Name of the bad release.
    """
    names = {GOOD: good, BAD: bad}
    return {
        "good": good,
        "bad": bad,
        "verdict": str(answer.layer),
        "reason": answer.reason,
        "computation": answer.call,
        "computations": {"good": answer.calls[GOOD], "bad": answer.calls[BAD]},
        "table": [
            {
                "producer": names[one.producer],
                "compiler": names[one.compiler],
                "outcome": one.kind,
                "signature": one.summary,
            }
            for one in answer.table
        ],
        "passes": None
        if answer.passes is None
        else {
            "culprits": answer.passes.culprits,
            "changing": answer.passes.changing,
            "flags": {flag.name: flag.value for flag in answer.passes.flags},
            "flags_tried": answer.passes.tried,
        },
    }
