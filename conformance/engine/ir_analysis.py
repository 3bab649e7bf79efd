"""The IRs of a job: brought into their normal forms, and compared with what goldens hold."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.ir.analysis import analyse
from conformance.ir.difference import diff_modules
from conformance.ir.excerpts import Excerpts
from conformance.ir.fact_table import STATED_BY, render_sharding
from conformance.ir.graph import CROSS_LOWERED, IRS, IrSyntaxError, kind_of_artifact
from conformance.ir.hlo.lexing import HloTextError
from conformance.ir.hlo.shardings import read_sharding
from conformance.ir.normal.forms import VERSION
from conformance.ir.normal.text import loads
from conformance.model.record import SOURCES, IrRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.blobs import BlobStore
    from conformance.model.record import Record

_SHARDINGS: Final = {"parameters": "input", "results": "output"}
"""Facts that state shardings, and what the compiled object calls them."""
_ESTIMATES: Final = {
    "cost": {"flops": "flops", "bytes": "bytes accessed", "optimal_seconds": "optimal_seconds"},
    "memory": {"temp_bytes": "temp_size_in_bytes", "peak_bytes": "peak_memory_in_bytes"},
}
"""Facts that XLA's analyses state, by the artifact and by its names for them."""

ANALYSED: Final = frozenset({*IRS, *CROSS_LOWERED, *SOURCES})
"""The artifacts that `analyse_artifacts` looks at."""


def analyse_artifacts(artifacts: Mapping[str, bytes]) -> tuple[dict[str, IrRecord], dict[str, Any]]:
    """Bring the IRs of a job into their normal forms.

    Args:
        artifacts: What the job produced, by name.

    Returns:
        What is kept of each IR; and the facts, stated by the optimised HLO, of shardings also by
        the compiled object, and of time, work and memory by the cost and memory analyses.
    """
    irs: dict[str, IrRecord] = {}
    facts: dict[str, Any] = {}
    # Most programs are lowered to the same text for every platform.
    known: dict[bytes, IrRecord] = {}
    for ir in (*IRS, *CROSS_LOWERED):
        text = artifacts.get(ir)
        if text is None:
            continue
        if text not in known:
            known[text], said = _one(text, kind_of_artifact(ir))
            if ir == STATED_BY and known[text].neutral:
                facts = {**_with_shardings(said, artifacts), **_estimates(artifacts)}
        irs[ir] = known[text]
    return irs, facts


def _one(text: bytes, kind: str) -> tuple[IrRecord, Mapping[str, Any]]:
    """Return what is kept of one IR, and the facts that it states."""
    try:
        analysis = analyse(_text(text), kind)
    except IrSyntaxError as error:  # said, and a claim on what was not read is not met
        return IrRecord(version=VERSION, not_understood={str(error): 1}), {}
    kept = IrRecord(
        structure=analysis.exact,
        neutral=analysis.canonical,
        version=VERSION,
        not_understood=dict(analysis.not_understood),
    )
    return kept, analysis.facts


def render_canonical(record: Record, blobs: BlobStore, ir: str) -> str:
    """Return an IR of a job in the form `neutral`, as text.

    Raises:
        CorruptBlobError: If its blob is missing or changed.
        IrSyntaxError: If it is not understood.
    """
    text = _text(blobs.get(record.artifacts[ir]))
    return analyse(text, kind_of_artifact(ir), with_text=True).text


class IrChanges(NamedTuple):
    """How two IRs differ.

    Attributes:
        changes: A line for each pattern, the gravest first.
        begins: Where they begin to differ.
    """

    changes: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()


def diff_canonical(golden: str, seen: str) -> IrChanges:
    """Return how two IRs in the form `neutral` differ.

    Args:
        golden: Text of the one.
        seen: Text of the other.
    """
    texts = Excerpts(golden, "neutral"), Excerpts(seen, "neutral")
    try:
        found = diff_modules(loads(golden), loads(seen), *texts)
    except Exception as error:  # noqa: BLE001 - that they differ is known, and ends no run
        said = f"semantic: how cannot be said ({type(error).__name__}: {error}); please report"
        return IrChanges(changes=(said,))
    return IrChanges(tuple(change.line for change in found.changes), found.begins)


def diff_rank_texts(ir: str, one: bytes, other: bytes) -> tuple[str, ...]:
    """Return how two texts of an IR differ in the form `neutral`, one line for each pattern.

    Texts of one program differ from process to process in what is no part of it, such as tables of
    source locations; so they do not agree only where their meaning differs.

    Args:
        ir: Name of the artifact.
        one: The one text.
        other: The other.

    Returns:
        The lines, none where the texts mean the same.

    Raises:
        IrSyntaxError: If one of them is not understood.
    """
    kind = kind_of_artifact(ir)
    said = [analyse(_text(text), kind, with_text=True) for text in (one, other)]
    if said[0].canonical == said[1].canonical:
        return ()
    return diff_canonical(said[0].text, said[1].text).changes


def _text(artifact: bytes) -> str:
    return artifact.decode("utf-8", "surrogatepass")


def _with_shardings(facts: Mapping[str, Any], artifacts: Mapping[str, bytes]) -> dict[str, Any]:
    """Return facts with the shardings of the compiled object where the HLO states none.

    Optimised HLO states no shardings of results, and from jax 0.12.0 on none of parameters.
    """
    stated = dict(facts)
    said = json.loads(artifacts.get("layout", b"{}"))
    for name, key in _SHARDINGS.items():
        pairs = zip(said.get(f"{key}s", ()), said.get(f"{key}_hlo", ()), strict=False)
        # An input that the program does not use is no parameter.
        texts = [text for place, text in pairs if place is not None]
        rows = facts.get(name, [])
        if len(texts) != len(rows) or any("sharding" in row for row in rows):
            continue
        with suppress(HloTextError):  # another spelling states nothing
            stated[name] = [
                row
                if text is None
                else {**row, "sharding": render_sharding(read_sharding(text)[0])}
                for row, text in zip(rows, texts, strict=True)
            ]
    return stated


def _estimates(artifacts: Mapping[str, bytes]) -> dict[str, float]:
    """Return what XLA estimates of a program's time, work and memory, as far as it says it."""
    found: dict[str, float] = {}
    for artifact, names in _ESTIMATES.items():
        # Not msgspec: estimates may be NaN, which the worker's json writes and only json reads.
        said = json.loads(artifacts.get(artifact, b"{}"))
        # A backend that cannot tell says a negative number.
        found |= {name: said[key] for name, key in names.items() if said.get(key, -1) >= 0}
    return found
