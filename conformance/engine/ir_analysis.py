"""Analysis of the IRs of a job: normal forms, facts, and differences from goldens."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from conformance.ir.analysis import analyse
from conformance.ir.change import IrChanges
from conformance.ir.difference import diff_modules
from conformance.ir.excerpts import Excerpts
from conformance.ir.fact_table import render_sharding
from conformance.ir.graph import CROSS_LOWERED, FACTS_IR, IRS, IrSyntaxError, kind_of_artifact
from conformance.ir.hlo.lexing import HloTextError
from conformance.ir.hlo.shardings import read_sharding
from conformance.ir.normal.text import VERSION, loads
from conformance.model.record import IrRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.cache.blobs import BlobStore
    from conformance.model.record import Record

_SHARDINGS: Final = {"parameters": "input", "results": "output"}
"""Facts with shardings, and their names in the compiled object."""
_ESTIMATES: Final = {
    "cost": {"flops": "flops", "bytes": "bytes accessed", "optimal_seconds": "optimal_seconds"},
    "memory": {"temp_bytes": "temp_size_in_bytes", "peak_bytes": "peak_memory_in_bytes"},
}
"""Facts from XLA's analyses, by artifact, with the names in the artifact."""


def analyse_artifacts(artifacts: Mapping[str, bytes]) -> tuple[dict[str, IrRecord], dict[str, Any]]:
    """Compute the normal forms and the facts of the IRs of a job.

    Args:
        artifacts: Artifacts of the job, by name.

    Returns:
        The record of each IR, and the facts. Facts come from the optimised HLO, shardings also
        from the compiled object, and estimates from the cost and memory analyses.
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
            known[text], stated = _analyse_text(text, kind_of_artifact(ir))
            if ir == FACTS_IR and known[text].canonical:
                facts = {**_add_shardings(stated, artifacts), **_read_estimates(artifacts)}
        irs[ir] = known[text]
    return irs, facts


def _analyse_text(text: bytes, kind: str) -> tuple[IrRecord, Mapping[str, Any]]:
    """Return the record of one IR and its facts."""
    try:
        analysis = analyse(_decode(text), kind)
    except IrSyntaxError as error:  # reported, and claims about it are not met
        return IrRecord(version=VERSION, not_understood={str(error): 1}), {}
    record = IrRecord(
        exact=analysis.exact,
        canonical=analysis.canonical,
        version=VERSION,
        not_understood=dict(analysis.not_understood),
    )
    return record, analysis.facts


def render_canonical(record: Record, blobs: BlobStore, ir: str) -> str:
    """Return the canonical form of an IR of a job, as text.

    Raises:
        CorruptBlobError: If its blob is missing or changed.
        IrSyntaxError: If it is not understood.
    """
    text = _decode(blobs.get(record.artifacts[ir]))
    return analyse(text, kind_of_artifact(ir), with_text=True).text


def diff_canonical(golden: str, seen: str) -> IrChanges:
    """Return how two IRs in canonical form differ.

    Args:
        golden: Text of the golden.
        seen: Text of the observation.
    """
    texts = Excerpts(golden, "neutral"), Excerpts(seen, "neutral")
    # The verdict does not depend on the lines of a difference.
    try:
        found = diff_modules(loads(golden), loads(seen), *texts)
    except Exception as error:  # noqa: BLE001 - a bug of ours must not end the run
        problem = (
            f"semantic: the comparison failed ({type(error).__name__}: {error}); please report"
        )
        return IrChanges(changes=(problem,))
    return IrChanges(tuple(change.line for change in found.changes), found.begins)


def diff_rank_texts(ir: str, first: bytes, second: bytes) -> tuple[str, ...]:
    """Return how the canonical forms of two texts of an IR differ, one line per pattern.

    The texts of one program differ between processes in details such as tables of source
    locations. Ranks disagree only if the meaning differs.

    Args:
        ir: Name of the artifact.
        first: Text of one rank.
        second: Text of another rank.

    Returns:
        The lines, none if the texts mean the same.

    Raises:
        IrSyntaxError: If one of them is not understood.
    """
    kind = kind_of_artifact(ir)
    analyses = [analyse(_decode(text), kind, with_text=True) for text in (first, second)]
    if analyses[0].canonical == analyses[1].canonical:
        return ()
    return diff_canonical(analyses[0].text, analyses[1].text).changes


def _decode(artifact: bytes) -> str:
    return artifact.decode("utf-8", "surrogatepass")


def _add_shardings(facts: Mapping[str, Any], artifacts: Mapping[str, bytes]) -> dict[str, Any]:
    """Return facts with shardings of the compiled object where the HLO has none.

    Optimised HLO has no shardings of results, and from jax 0.12.0 on none of parameters.
    """
    # A copy: the analysis of a text is shared by all records with that text.
    stated = dict(facts)
    layout = json.loads(artifacts.get("layout", b"{}"))
    for name, key in _SHARDINGS.items():
        pairs = zip(layout.get(f"{key}s", ()), layout.get(f"{key}_hlo", ()), strict=False)
        # An unused input is no parameter of the compiled program.
        texts = [text for place, text in pairs if place is not None]
        rows = facts.get(name, [])
        # Rows and inputs are paired by position, which is right only if none is missing.
        if len(texts) != len(rows) or any("sharding" in row for row in rows):
            continue
        with suppress(HloTextError):  # an unknown spelling adds no fact
            stated[name] = [
                row
                if text is None
                else {**row, "sharding": render_sharding(read_sharding(text)[0])}
                for row, text in zip(rows, texts, strict=True)
            ]
    return stated


def _read_estimates(artifacts: Mapping[str, bytes]) -> dict[str, float]:
    """Return XLA's estimates of time, work and memory of a program."""
    found: dict[str, float] = {}
    for artifact, names in _ESTIMATES.items():
        # Not msgspec: an estimate may be NaN, which the worker's json writes and only json reads.
        estimates = json.loads(artifacts.get(artifact, b"{}"))
        # A backend without an estimate reports a negative number.
        found |= {
            name: estimates[key] for name, key in names.items() if estimates.get(key, -1) >= 0
        }
    return found
