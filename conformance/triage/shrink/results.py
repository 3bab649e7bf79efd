"""Results of candidates in a cell, decoded only as far as necessary."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from conformance.bench.measured import MEASUREMENTS
from conformance.engine.record_judge import load_observation, make_record
from conformance.engine.runs.stored_job import StoredJob
from conformance.engine.workers.transcript import is_variant_artifact
from conformance.model.value import decode_value
from conformance.search.predicates import read_output

if TYPE_CHECKING:
    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.job import FinishedJob
    from conformance.model.observation import Observation
    from conformance.model.outcome import Outcome
    from conformance.model.record import Record
    from conformance.model.value import Value

FACT_ARTIFACTS: Final = ("hlo", "cost", "memory", MEASUREMENTS)
"""Artifacts that facts and metrics are read from."""
OWN_FRAME: Final = "the case"
"""The frame that raised, if it is not one of a library."""
_FRAME: Final = re.compile(r'^  File "(.*/)?([^"/]+)", line \d+, in (\S+)$', re.MULTILINE)
_LIBRARY: Final = re.compile(r"/site-packages/|/lib/python3")


# No slots: cached properties need a `__dict__`.
@dataclass(frozen=True)
class TrialResult:
    """The result of a candidate in a cell.

    Attributes:
        job: The job, or its record.
        blobs: Where artifacts go.
    """

    job: FinishedJob | Record
    blobs: BlobStore

    @property
    def outcome(self) -> Outcome:
        """Its outcome."""
        return self.job.outcome

    @property
    def ending(self) -> str:
        """Its outcome, or the signature of its error."""
        return str(self.outcome) if self.job.error is None else self.job.error.signature

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.job.seconds.get("job", 0.0)

    @cached_property
    def frame(self) -> str:
        """The function that raised, with its file; empty if it is unknown."""
        return ""


@dataclass(frozen=True)
class ScriptResult(TrialResult):
    """The result of a script."""

    job: Record

    @cached_property
    def output(self) -> str:
        """Its output, without the facts of its environment."""
        return read_output(StoredJob(self.job, self.blobs))


@dataclass(frozen=True)
class CaseResult(TrialResult):
    """The result of a case."""

    job: FinishedJob

    @cached_property
    def frame(self) -> str:
        """The function that raised, with its file; empty if it is unknown."""
        text = self.job.blobs.get("traceback", b"").decode("utf-8", "replace")
        # jax raises again in traceback_util.py, which filters tracebacks.
        found = [match for match in _FRAME.finditer(text) if match[2] != "traceback_util.py"]
        if not found:
            return ""
        folder, file, function = found[-1].groups()
        return f"{file}:{function}" if _LIBRARY.search(folder or "") else OWN_FRAME

    @cached_property
    def value(self) -> Value | None:
        """Its value, if it has one."""
        data = self.job.blobs.get("value")
        return None if data is None else decode_value(data)

    @property
    def required_value(self) -> Value:
        """Its value.

        Raises:
            ValueError: If it has none.
        """
        if self.value is None:
            raise ValueError(f"{self.job.job.case.id}: has no value")
        return self.value

    @cached_property
    def stored_job(self) -> StoredJob:
        """Its record, with the facts of its HLO."""
        # The other IRs of a candidate are not analysed: no criterion reads them.
        blobs = {n: data for n, data in self.job.blobs.items() if n in FACT_ARTIFACTS}
        return StoredJob(make_record(replace(self.job, blobs=blobs), self.blobs), self.blobs)

    @cached_property
    def observation(self) -> Observation:
        """Its value, error and facts, to be judged by the case's own reference and claims."""
        # Blobs that are not judged would be stored for each candidate.
        judged = {*FACT_ARTIFACTS, "value", "reference", "raises"}
        blobs = {
            name: data
            for name, data in self.job.blobs.items()
            if name in judged or is_variant_artifact(name)
        }
        record = make_record(replace(self.job, blobs=blobs), self.blobs)
        return load_observation(record, self.blobs)

    @cached_property
    def measures(self) -> tuple[int, int] | None:
        """Equations of its jaxpr, and elements of its arguments; None without a jaxpr."""
        data = self.job.blobs.get("jaxpr")
        if data is None:
            return None
        document = json.loads(data)
        jaxprs, avals = document["jaxprs"], document["avals"]
        elements = (math.prod(avals[number][1]) for number in jaxprs[0]["in"])
        return sum(len(jaxpr["eqns"]) for jaxpr in jaxprs), sum(map(int, elements))
