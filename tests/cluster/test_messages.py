"""Messages: read back as they were, and nothing else is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.cells.lock import Lock, get_host
from conformance.cluster.messages import (
    BatchEnd,
    BatchRequest,
    BatchUpdate,
    ContentPlace,
    JobReport,
    MessageError,
    NodeFacts,
    decode,
    describe_harness,
    encode,
    find_node_problem,
    make_request,
)
from conformance.model.case import Deviation
from conformance.model.outcome import Verdict
from tests.engine.records import record
from tests.engine.worlds import job, planned

CONTENT = ContentPlace(folder="/cache", token="t" * 32)
FACTS = NodeFacts(harness=describe_harness(), host=get_host(), machine="m", processor="p", slots=1)


def test_a_request_has_all_that_a_job_needs(tmp_path: Path) -> None:
    """The node makes the same job of it, with the same key and request."""
    place = planned("0.6.0", devices=4, pins=("numpy==2.0.2",), config={"jax_x": "1"}.items())
    one = job(tmp_path, "case[2]", place, params={"n": 2, "of": [1, 2]}, x64=True,
              deviations=(Deviation(reason="known"),), doc="text")  # fmt: skip
    one = replace(one, alone=True, may_share=True, measure={"sizes": [1, 2]})
    one.case.file.parent.mkdir()
    one.case.file.write_text("pass\n")
    (tmp_path / "family" / "_helpers.py").write_text("X = 1\n")
    locks = {place.cell.id: Lock(text="# lock\n", path=Path("lock.txt"))}
    sent = decode(encode(make_request("k", "t", [one], locks, CONTENT)), BatchRequest)
    cell = sent.cell.make_cell()
    (spec,) = sent.jobs
    assert spec.make_job(cell).request() == one.request()
    assert cell == place
    assert sent.cell.make_lock() == locks[place.cell.id]
    assert {Path(name).name for name in sent.files} == {"topic.py", "_helpers.py"}
    # Only a judge needs them.
    assert (spec.case.deviations, spec.case.doc) == ((), "")


RECORDS = st.builds(
    record, st.text(max_size=9), st.text(max_size=9), st.sampled_from(Verdict),
    artifacts=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)  # fmt: skip


@given(st.lists(RECORDS, max_size=3), st.binary(max_size=20), st.booleans())
def test_updates_are_read_back(records: list[object], artifact: bytes, ended: bool) -> None:
    """Every field."""
    reports = tuple(JobReport(one, {"d": artifact}) for one in records)  # type: ignore[arg-type]  # made by the strategy
    update = BatchUpdate(key="k", jobs=reports, end=BatchEnd(refusal="r") if ended else None)
    assert decode(encode(update), BatchUpdate) == update


@given(st.data())
def test_a_changed_byte_is_never_another_message(data: st.DataObject) -> None:
    """It is an error."""
    update = BatchUpdate(key="k", end=BatchEnd(refusal="no network", cells=("a", "b")))
    content = bytearray(encode(update))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(MessageError):
        decode(bytes(content), BatchUpdate)


def test_a_message_of_another_version_is_refused() -> None:
    """With the versions."""
    content = encode(BatchUpdate(key="k")).replace(b"message 2 ", b"message 9 ")
    with pytest.raises(MessageError, match=r"message 9.*expected.*message 2"):
        decode(content, BatchUpdate)


def test_a_message_of_another_type_is_refused() -> None:
    """It is not taken for the expected one."""
    with pytest.raises(MessageError, match=r"BatchUpdate.*expected.*NodeFacts"):
        decode(encode(BatchUpdate(key="k")), NodeFacts)


def test_a_node_has_the_same_harness_and_architecture() -> None:
    """Else its observations would be those of another harness or processor."""
    assert find_node_problem(FACTS) == ""
    other = NodeFacts(harness="0.0.1 (abc)", host=get_host(), machine="", processor="", slots=1)
    assert "has jax-conformance 0.0.1 (abc), expected" in find_node_problem(other)
    far = NodeFacts(
        harness=describe_harness(), host="linux-s390x", machine="", processor="", slots=1
    )
    assert "is linux-s390x, expected" in find_node_problem(far)
