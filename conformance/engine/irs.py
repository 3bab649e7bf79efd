"""The IRs of a job: brought into their normal forms, and compared with what goldens hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from conformance.ir.analysis import analyse
from conformance.ir.difference import diff_modules
from conformance.ir.excerpts import Excerpts
from conformance.ir.fact_table import STATED_BY
from conformance.ir.graph import IRS, IrSyntaxError
from conformance.ir.normal.forms import VERSION
from conformance.ir.normal.text import loads
from conformance.model.record import IrRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.blobs import BlobStore
    from conformance.model.record import Record

_COST: Final = "cost"
_COSTS: Final = {"flops": "flops", "bytes": "bytes accessed"}
"""Facts that the cost analysis states, by its names for them."""

ANALYSED: Final = frozenset({*IRS, _COST})
"""The artifacts that `analysed` looks at."""


def analysed(artifacts: Mapping[str, bytes]) -> tuple[dict[str, IrRecord], dict[str, Any]]:
    """Bring the IRs of a job into their normal forms.

    Args:
        artifacts: What the job produced, by name.

    Returns:
        What is kept of each IR; and the facts, stated by the optimised HLO and, of flops and
        bytes, by the cost analysis.
    """
    irs: dict[str, IrRecord] = {}
    facts: dict[str, Any] = {}
    for ir in IRS:
        if ir not in artifacts:
            continue
        try:
            analysis = analyse(_text(artifacts[ir]), ir)
        except IrSyntaxError as error:  # said, and a claim on what was not read is not met
            irs[ir] = IrRecord(version=VERSION, not_understood={str(error): 1})
            continue
        irs[ir] = IrRecord(
            structure=analysis.structure,
            neutral=analysis.neutral,
            version=VERSION,
            not_understood=dict(analysis.not_understood),
        )
        if ir == STATED_BY:
            facts = {**analysis.facts, **_costs(artifacts.get(_COST, b"{}"))}
    return irs, facts


def neutral_text(record: Record, blobs: BlobStore, ir: str) -> str:
    """Return an IR of a job in the form `neutral`, as text.

    Raises:
        CorruptBlobError: If its blob is missing or changed.
        IrSyntaxError: If it is not understood.
    """
    return analyse(_text(blobs.get(record.artifacts[ir])), ir, with_text=True).text


def changed_lines(golden: str, seen: str) -> tuple[str, ...]:
    """Return how two IRs in the form `neutral` differ, one line for each pattern.

    Args:
        golden: Text of the one.
        seen: Text of the other.
    """
    texts = Excerpts(golden, "neutral"), Excerpts(seen, "neutral")
    try:
        found = diff_modules(loads(golden), loads(seen), *texts)
    except Exception as error:  # noqa: BLE001 - that they differ is known, and ends no run
        return (f"semantic: how cannot be said ({type(error).__name__}: {error}); please report",)
    return tuple(change.line for change in found.changes)


def _text(artifact: bytes) -> str:
    return artifact.decode("utf-8", "surrogatepass")


def _costs(cost: bytes) -> dict[str, float]:
    """Return what XLA estimates of a program's work, as far as the backend says it."""
    # Not msgspec: estimates may be NaN, which the worker's json writes and only json reads.
    said = json.loads(cost)
    return {name: said[key] for name, key in _COSTS.items() if key in said}
