"""The transcripts of the ranks of one job, merged into how the job ended. Pure."""

from __future__ import annotations

import signal
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from conformance.engine.job import FinishedJob
from conformance.engine.workers.messages import RankEnd, ValueHeader, read_message
from conformance.engine.workers.shard_layout import DisagreementError, assemble_value
from conformance.engine.workers.transcript import (
    Transcript,
    build_value,
    classify_raised,
    classify_termination,
    encode_output,
    make_crash_error,
    make_error,
    make_timeout_notes,
    was_killed,
)
from conformance.ir.graph import CROSS_LOWERED, IRS, IrSyntaxError
from conformance.judge.errors import make_signature
from conformance.model.observation import RANKS_DIFFER
from conformance.model.outcome import Outcome, Stage
from conformance.model.traceback import FRAMES
from conformance.model.value import encode_value
from conformance.wording import plural
from conformance.worker.processes import find_refused_flags

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.job import Job
    from conformance.engine.workers.messages import JobEnd
    from conformance.engine.workers.shard_layout import RankValue
    from conformance.model.record import ErrorInfo
    from conformance.model.value import Value

ORDER = ("jaxpr", "stablehlo", "hlo", "layout")
"""Artifacts in causal order: a difference in one explains those in later ones."""
SHOWN = 120
"""Characters that are shown of a differing line."""
STAGES = list(Stage)


class RankTranscripts:
    """The events of all ranks of one job so far, with the interface of `Transcript`.

    Args:
        count: Number of ranks.
    """

    def __init__(self, count: int) -> None:
        self._ranks = [Transcript() for _ in range(count)]
        self._values: dict[str, dict[int, RankValue]] = {"value": {}, "reference": {}}
        self._lost: dict[int, RankEnd] = {}
        self._left: set[int] = set()
        self._ended = False

    def take(self, header: Mapping[str, Any], body: bytes) -> None:
        """Take one event, as `conformance.worker.stages` and `conformance.worker.ranks` emit them.

        Args:
            header: The event, with the rank that sent it.
            body: Bytes of the event.
        """
        rank = header.get("rank")
        match header:
            case {"end": True} if rank is None:
                self._ended = True
            case {"lost": ending}:
                self._lost[header["rank"]] = read_message(ending, RankEnd)
            # The launcher ended it while it waited for a failed rank: its end explains nothing.
            case {"left": True}:
                self._left.add(header["rank"])
            case _ if rank is None:  # sent before the ranks were forked, e.g. by a failed import
                for transcript in self._ranks:
                    transcript.take(header, body)
            case {"value": head}:
                self._values["value"][rank] = (read_message(head, ValueHeader), body)
            case {"reference": head}:
                self._values["reference"][rank] = (read_message(head, ValueHeader), body)
            case _:
                self._ranks[header["rank"]].take(header, body)

    def finish(self, job: Job, done: JobEnd) -> FinishedJob:
        """Return how the job ended.

        Args:
            job: Job of the ranks.
            done: The supervisor's report of the process.

        Returns:
            The finished job, with the artifacts on which all ranks agree. A disagreement is an
            error of type `RanksDiffer`, and each rank's artifact is kept as e.g. `hlo.rank1`.
        """
        outcome, error, stage = self._find_ending(job, done)
        blobs, values, differences = self._merge_artifacts()
        if outcome in {Outcome.OK, Outcome.RAISED} and differences:
            message = "; ".join(differences)
            suffix = f"; besides, {error.type}: {error.message}" if error else ""
            outcome, error = Outcome.RAISED, make_error(RANKS_DIFFER, message + suffix, job)
        if outcome is not Outcome.OK:
            blobs |= encode_output(done)
        return FinishedJob(
            job=job,
            outcome=outcome,
            stage=stage,
            error=error,
            blobs=blobs,
            values=values,
            seconds={**self._find_max_seconds(), "job": done.seconds},
            max_rss_bytes=done.max_rss_bytes,
            killed=was_killed(done)
            or any(end.signal == signal.SIGKILL for end in self._lost.values()),
            refused=done.ended == "infra",
            notes=make_timeout_notes(done, job),
        )

    def _find_ending(self, job: Job, done: JobEnd) -> tuple[Outcome, ErrorInfo | None, Stage]:
        """Return outcome and error, and the stage that the responsible ranks reached."""
        every_rank = list(range(len(self._ranks)))
        if done.ended:
            outcome, text = classify_termination(done, job)
            slowest = self._find_slowest(
                [rank for rank in every_rank if not self._ranks[rank].ended]
            )
            # In a collective all ranks wait for the slowest rank, so that is the rank to name.
            if outcome is Outcome.TIMED_OUT and slowest:
                stage = self._find_min_stage(slowest)
                text += f"; {self._name_ranks(slowest)} did not get beyond {stage}"
            error = make_error(done.ended, text, job)
            return outcome, error, self._find_min_stage(slowest or every_rank)
        # XLA ends every rank at an unknown flag, which is no crash of the program.
        if self._lost and (refused := find_refused_flags(done.stderr)):
            error = make_error("unsupported", refused, job)
            return Outcome.UNSUPPORTED, error, self._find_min_stage(every_rank)
        if self._lost:
            ending = self._find_decisive_end()
            lost = [rank for rank, other in self._lost.items() if other == ending]
            if ending.garbled:
                text = f"{self._name_ranks(lost)} wrote into the worker's own channel"
                error = make_error("garbled", text, job)
            else:
                error = make_crash_error(ending, job, self._name_ranks(lost))
            return Outcome.CRASHED, error, self._find_min_stage(lost[:1])
        if not self._ended:
            error = make_crash_error(done, job, "the launcher of the ranks")
            return Outcome.CRASHED, error, self._find_min_stage(every_rank)
        return self._collect_endings(job)

    def _find_decisive_end(self) -> RankEnd:
        """Return the end that caused the others: the first that is no abort.

        A rank aborts when it loses another one, and its end may be seen first.
        """
        every = list(self._lost.values())
        return next((end for end in every if end.signal != signal.SIGABRT), every[0])

    def _collect_endings(self, job: Job) -> tuple[Outcome, ErrorInfo | None, Stage]:
        """Return the ending of the job if every rank reported its own ending."""
        # By signature: ranks may raise the same error with other addresses or numbers.
        endings: dict[str, list[int]] = {}
        for rank, transcript in enumerate(self._ranks):
            if rank in self._left:
                continue
            if transcript.unsupported is not None:
                endings.setdefault(f"unsupported: {transcript.unsupported}", []).append(rank)
            elif transcript.error is not None:
                endings.setdefault(transcript.error.signature, []).append(rank)
        if not endings:
            return Outcome.OK, None, self._find_min_stage([0])
        failed = next(iter(endings.values()))
        first = self._ranks[failed[0]]
        alone = len(failed) < len(self._ranks)
        # A feature that only some ranks lack is a fault, and no lack of the release.
        if len(endings) > 1 or (alone and first.unsupported is not None):
            texts = [f"{self._name_ranks(ranks)} {text}" for text, ranks in endings.items()]
            error = make_error(RANKS_DIFFER, "; ".join(texts), job)
            return Outcome.RAISED, error, self._find_min_stage(failed)
        if first.unsupported is not None:
            error = make_error("unsupported", first.unsupported, job)
            return Outcome.UNSUPPORTED, error, self._find_min_stage(failed)
        assert first.error is not None  # noqa: S101 - only ranks with either are collected
        raised_by = first.error
        if alone:
            message = f"on {self._name_ranks(failed)} only: {raised_by.message}"
            named = make_signature(raised_by.type, message)
            raised_by = replace(raised_by, message=message, signature=named)
        return classify_raised(raised_by), raised_by, self._find_min_stage(failed)

    def _name_ranks(self, ranks: list[int]) -> str:
        count = len(self._ranks)
        if len(ranks) == count:
            return f"each of {plural(count, 'rank')}"
        numbers = " and ".join(map(str, sorted(ranks)))
        return f"rank{'s' if len(ranks) > 1 else ''} {numbers} of {count}"

    def _find_slowest(self, ranks: list[int]) -> list[int]:
        """Return the ranks that are furthest behind."""
        stage = self._find_min_stage(ranks) if ranks else None
        return [rank for rank in ranks if self._ranks[rank].stage is stage]

    def _find_min_stage(self, ranks: list[int]) -> Stage:
        return min((self._ranks[rank].stage for rank in ranks), key=STAGES.index)

    def _find_max_seconds(self) -> dict[str, float]:
        """Return the seconds of each stage on its slowest rank."""
        seconds: dict[str, float] = {}
        for transcript in self._ranks:
            for name, taken in transcript.seconds.items():
                seconds[name] = max(taken, seconds.get(name, 0.0))
        return seconds

    def _merge_artifacts(self) -> tuple[dict[str, bytes], dict[str, Value], list[str]]:
        """Return the artifacts of all ranks, their values, and how ranks differ."""
        blobs: dict[str, bytes] = {}
        values: dict[str, Value] = {}
        differences: list[str] = []
        names = dict.fromkeys(name for rank in self._ranks for name in rank.blobs)
        for name in sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else 9):
            texts = {n: r.blobs[name] for n, r in enumerate(self._ranks) if name in r.blobs}
            problem = self._find_difference(name, texts)
            if problem is None:
                blobs[name] = next(iter(texts.values()))
                continue
            blobs |= {f"{name}.rank{rank}": text for rank, text in texts.items()}
            if name not in {"traceback", FRAMES}:  # differing errors are reported as endings
                differences.append(problem)
        for name, wires in self._values.items():
            if not wires or (name == "value" and len(wires) < len(self._ranks)):
                continue  # a failed job: parts of its value are missing
            try:
                values[name] = assemble_value(wires)
                blobs[name] = encode_value(values[name])
            except DisagreementError as problem:
                differences.append(f"{name}: {problem}")
                for rank, (head, body) in wires.items():
                    blobs[f"{name}.rank{rank}"] = encode_value(build_value(head, body))
        return blobs, values, differences

    def _find_difference(self, name: str, texts: Mapping[int, bytes]) -> str | None:
        """Return how the ranks differ in an artifact, None if they agree."""
        # A rank that failed lacks the artifacts of later stages, and does not disagree.
        for rank, transcript in enumerate(self._ranks):
            if rank not in texts and transcript.ended and transcript.error is None:
                return f"{name}: rank {rank} has none, rank {min(texts)} has"
        first = min(texts)
        for rank, text in texts.items():
            if text != texts[first] and (
                how := _describe_difference(name, first, texts[first], rank, text)
            ):
                return f"{name}: {how}"
        return None


def _describe_difference(name: str, rank: int, text: bytes, other: int, other_text: bytes) -> str:
    """Return how an artifact of two ranks differs, empty if its meaning is the same."""
    if name in (*IRS, *CROSS_LOWERED):
        with suppress(IrSyntaxError):  # then the texts are compared line by line
            # The parsers are imported by the few runs whose ranks differ.
            from conformance.engine.ir_analysis import diff_rank_texts  # noqa: PLC0415

            lines = diff_rank_texts(name, text, other_text)
            more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
            return f"of ranks {rank} and {other}: {lines[0]}{more}" if lines else ""
    return _find_differing_line(rank, text, other, other_text)


def _find_differing_line(rank: int, text: bytes, other: int, other_text: bytes) -> str:
    """Return the first line in which two texts differ."""
    pairs = zip_longest(*(t.decode("utf-8", "replace").splitlines() for t in (text, other_text)))
    for number, (line, other_line) in enumerate(pairs, 1):
        if line != other_line:
            lines = f"{_quote(line)}, of rank {other} {_quote(other_line)}"
            return f"line {number} of rank {rank} is {lines}"
    return f"ranks {rank} and {other} differ in how their lines end"


def _quote(line: str | None) -> str:
    return "missing" if line is None else f"`{line.strip()[:SHOWN]}`"
