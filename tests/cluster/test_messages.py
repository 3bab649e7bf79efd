"""Messages: read back as they were, and nothing else is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.cells.lock import get_host
from conformance.cluster.messages import (
    BatchEnd,
    BatchUpdate,
    ContentPlace,
    JobReport,
    MessageError,
    NodeFacts,
    decode,
    describe_harness,
    encode,
    find_node_problem,
)
from conformance.model.outcome import Verdict
from tests.engine.records import record

CONTENT = ContentPlace(folder="/cache", token="t" * 32)
FACTS = NodeFacts(harness=describe_harness(), host=get_host(), machine="m", processor="p", slots=1)


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
    content = encode(BatchUpdate(key="k")).replace(b"message 3 ", b"message 9 ")
    with pytest.raises(MessageError, match=r"message 9.*expected.*message 3"):
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
