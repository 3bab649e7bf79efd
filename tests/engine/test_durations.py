"""Durations of jobs: updated from runs, stored in a file, estimated if unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.durations import UNKNOWN, Durations, decode_durations, update_durations
from conformance.errors import UsageError

from .worlds import job, planned
from .written_runs import record

CELL = "jax0.6.0-py311-cpu8"
SECONDS = st.dictionaries(
    st.sampled_from(["cpu", "tpu"]), st.dictionaries(st.text(max_size=9), st.floats(0.01, 99))
)


def test_the_median_duration_counts() -> None:
    """Over the releases of a kind of platform."""
    took = {"jax0.6.0-py311-cpu8": 1.0, "jax0.6.1-py311-cpu8": 2.0, "jax0.7.0-py311-cpu4-x64": 9.0}
    records = [record("family/one", cell, seconds={"job": s}) for cell, s in took.items()]
    topology = record("family/one", "jax0.6.0-py311-tpu.v5e.2x2", seconds={"job": 30.0})
    found = update_durations([*records, topology], Durations())
    assert found.seconds == {"cpu": {"family/one": 2.0}, "tpu": {"family/one": 30.0}}


def test_durations_without_a_record_stay() -> None:
    """A run of some cases does not remove the others."""
    before = Durations(seconds={"cpu": {"family/one": 1.0, "family/two": 2.0}})
    found = update_durations([record("family/two", CELL, seconds={"job": 5.0})], before)
    assert found.seconds == {"cpu": {"family/one": 1.0, "family/two": 5.0}}


def test_an_unknown_case_takes_the_median_of_its_platform() -> None:
    """A fixed estimate without any durations."""
    known = Durations(seconds={"cpu": {"family/a": 1.0, "family/b": 2.0, "family/c": 30.0}})
    assert known.estimate(job(Path(), "a")) == 1.0
    assert known.estimate(job(Path(), "new")) == 2.0
    assert known.estimate(job(Path(), "a", planned(platform="tpu:v5e:2x2"))) == UNKNOWN


@given(SECONDS)
def test_durations_round_trip(seconds: dict[str, dict[str, float]]) -> None:
    """The same bytes for the same content in any order."""
    known = Durations(seconds=seconds)
    again = Durations(seconds={kind: dict(reversed(of.items())) for kind, of in seconds.items()})
    assert decode_durations(known.encode(), "durations.json") == known
    assert again.encode() == known.encode()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"seconds": {"cpu": 1}}', b"\xff"])
def test_a_malformed_file_of_durations(content: bytes) -> None:
    """It is named, with the command that writes it again."""
    with pytest.raises(UsageError, match=r"durations.json: expected durations of jobs: .* --learn"):
        decode_durations(content, "durations.json")
