"""From the events of ranks to the finished job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.workers.messages import JobEnd
from conformance.engine.workers.rank_transcripts import RankTranscripts
from conformance.model.outcome import Outcome
from tests.engine.worlds import job

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.job import FinishedJob

END = {"end": True}


def error(message: str = "bad", type_: str = "ValueError") -> dict[str, Any]:
    """Return the event of an error."""
    return {"error": {"type": type_, "message": message, "where": "", "traceback": "Trace"}}


def finish(folder: Path, *events: tuple[int | None, Any], **done: Any) -> FinishedJob:
    """Return the finished job of two ranks with events; rank None is their launcher."""
    ranks = RankTranscripts(2)
    for rank, event in events:
        header, body = event if isinstance(event, tuple) else (event, b"")
        place = {} if rank is None else {"rank": rank}
        ranks.take({"kind": "event", "job": "1", "body": 0, **header, **place}, body)
    return ranks.finish(job(folder), JobEnd(**{"exit": 0, **done}))


def both(*events: Any) -> list[tuple[int | None, Any]]:
    """Return events that both ranks say."""
    return [(rank, event) for event in events for rank in (0, 1)]


SEGV, ABORT = {"exit": None, "signal": 11}, {"exit": None, "signal": 6}


@pytest.mark.parametrize(
    ("events", "done", "ending"),
    [
        (both(END), {}, ("ok", None, "")),
        (both(error(), END), {}, ("raised", "ValueError", "bad")),
        (both({"unsupported": "no"}, END), {}, ("unsupported", "unsupported", "no")),
        ([(None, error()), (None, END)], {}, ("raised", "ValueError", "bad")),
        (
            [(1, error()), (1, END), (0, {"left": True})],
            {}, ("raised", "ValueError", "on rank 1 of 2 only: bad"),
        ),
        (
            [(1, error()), (1, END), (0, END)],
            {}, ("raised", "ValueError", "on rank 1 of 2 only: bad"),
        ),
        (
            [(1, error()), (0, error("worse")), *both(END)],
            {},
            ("raised", "RanksDiffer", "rank 0 of 2 ValueError: worse; rank 1 of 2 ValueError: bad"),
        ),
        (
            [(0, {"unsupported": "no"}), *both(END)],
            {}, ("raised", "RanksDiffer", "rank 0 of 2 unsupported: no"),
        ),
        (
            both(error("RESOURCE_EXHAUSTED"), END),
            {}, ("out_of_memory", "ValueError", "RESOURCE_EXHAUSTED"),
        ),
        (
            [(1, {"lost": SEGV}), (0, {"lost": ABORT})],
            {}, ("crashed", "SIGSEGV", "rank 1 of 2 was ended by SIGSEGV"),
        ),
        (  # seen after what follows from it
            [(1, {"lost": ABORT}), (0, {"lost": {"exit": 3, "signal": None}})],
            {}, ("crashed", "exit", "rank 0 of 2 exited with status 3 before the job ended"),
        ),
        (
            both({"lost": ABORT}),
            {}, ("crashed", "SIGABRT", "each of 2 ranks was ended by SIGABRT"),
        ),
        (
            [(1, {"lost": SEGV}), (0, {"lost": SEGV})],
            {}, ("crashed", "SIGSEGV", "each of 2 ranks was ended by SIGSEGV"),
        ),
        (
            [(1, {"lost": {"garbled": True}}), (0, {"left": True})],
            {}, ("crashed", "garbled", "rank 1 of 2 wrote into the worker's own channel"),
        ),
        (
            [*both({"stage": "build"}), (0, {"stage": "compile"})],
            {"ended": "timeout"},
            (
                "timed_out", "timeout",
                "no end within the timeout of 60 s; rank 1 of 2 did not get beyond build",
            ),
        ),
        (
            [(0, END), *both({"stage": "build"})],
            {"ended": "memory"},
            ("out_of_memory", "memory", "resident beyond the limit of 4096 MiB"),
        ),
    ],
)  # fmt: skip
def test_each_end_has_one_outcome(
    tmp_path: Path,
    events: list[tuple[int | None, Any]],
    done: dict[str, Any],
    ending: tuple[str, str | None, str],
) -> None:
    """The supervisor's report comes first, then events of the job, then the end of the process."""
    finished = finish(tmp_path, *events, (None, END), **done)
    seen = finished.error
    found = (finished.outcome, seen and seen.type, seen.message if seen else "")
    assert found == ending


def test_a_launcher_that_dies_is_a_crash(tmp_path: Path) -> None:
    """Its ranks die with it."""
    finished = finish(tmp_path, *both(END), exit=70)
    assert finished.outcome is Outcome.CRASHED
    assert finished.error is not None
    assert "launcher" in finished.error.message


def test_differing_artifacts_are_reported_in_order_of_stages(tmp_path: Path) -> None:
    """With the first difference of each; each rank's artifact is kept."""
    finished = finish(
        tmp_path,
        *both(({"artifact": "jaxpr"}, b"same")),
        (0, ({"artifact": "hlo"}, b"a\nb\n")),
        (1, ({"artifact": "hlo"}, b"a\nc\n")),
        (0, ({"artifact": "stablehlo"}, b"only")),
        *both(END),
        (None, END),
    )
    assert finished.error is not None
    assert finished.error.message == (
        "stablehlo: rank 1 has none, rank 0 has; hlo: line 2 of rank 0 is `b`, of rank 1 `c`"
    )
    assert set(finished.blobs) == {"jaxpr", "stablehlo.rank0", "hlo.rank0", "hlo.rank1"}


def hlo(*, file: str, value: int) -> bytes:
    """Return a module as XLA prints it, with the table of files it knows of."""
    return f"""HloModule jit_f

FileNames
1 "{file}"

ENTRY %main () -> s32[] {{
  ROOT %constant.1 = s32[] constant({value})
}}
""".encode()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (hlo(file="b.py", value=1), None),
        (
            hlo(file="a.py", value=2),
            "hlo: of ranks 0 and 1: semantic (constant): value of constant",
        ),
    ],
)
def test_irs_with_equal_canonical_forms_agree(
    tmp_path: Path, other: bytes, said: str | None
) -> None:
    """Programs that a process traced earlier are in its location tables."""
    finished = finish(
        tmp_path,
        (0, ({"artifact": "hlo"}, hlo(file="a.py", value=1))),
        (1, ({"artifact": "hlo"}, other)),
        *both(END),
        (None, END),
    )
    assert (finished.error and finished.error.message) == said
    assert ("hlo" in finished.blobs) == (said is None)


def test_artifacts_that_an_ended_rank_lacks_are_no_difference(tmp_path: Path) -> None:
    """The rank was ended because another rank had raised."""
    finished = finish(
        tmp_path,
        (0, ({"artifact": "jaxpr"}, b"x")),
        (0, error()),
        (0, END),
        (1, {"left": True}),
        (None, END),
    )
    assert finished.error is not None
    assert (finished.error.type, finished.blobs["jaxpr"]) == ("ValueError", b"x")


def test_seconds_are_those_of_the_slowest_rank(tmp_path: Path) -> None:
    """Stages overlap; the job waits for the last."""
    finished = finish(
        tmp_path,
        (0, {"seconds": ["build", 1.0]}),
        (1, {"seconds": ["build", 2.0]}),
        *both(END),
        (None, END),
        seconds=3.0,
    )
    assert finished.seconds == {"build": 2.0, "job": 3.0}


def test_variants_are_unsupported_among_ranks(tmp_path: Path) -> None:
    """They are neither a difference nor a failure."""
    way = [{"same_as": "jit"}, {"same_as": "jit", "skipped": "several processes"}]
    finished = finish(tmp_path, *both(*way, END), (None, END))
    assert finished.outcome is Outcome.OK
    assert b'"outcome":"unsupported"' in finished.blobs["same_as"]
