"""Questions to the workers of a cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformance.cells.lock import get_host
from conformance.cluster import nodes
from conformance.cluster.messages import NodeFacts, describe_harness, encode
from conformance.cluster.nodes import SAMPLE, find_host_hash
from conformance.engine.cache.results import hash_host


def answer(processor: str, harness: str = "") -> Any:
    """Return the ended task of a worker with a processor."""
    facts = NodeFacts(
        harness=harness or describe_harness(), host=get_host(), machine="m", processor=processor,
        slots=1,
    )  # fmt: skip
    return SimpleNamespace(result=lambda **_: encode(facts))


def fail(**_: object) -> bytes:
    """Raise the error of a task that does not end in time."""
    raise TimeoutError


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Function that asks a cluster whose workers give some answers."""

    def find(*answers: Any) -> str:
        left = list(answers)
        client = SimpleNamespace(
            scheduler_info=lambda **_: {"workers": dict.fromkeys(range(len(left)))},
            cancel=lambda _: None,
        )
        monkeypatch.setattr(nodes, "connect", lambda *_: client)
        monkeypatch.setattr(nodes, "ask_node", lambda *_: left.pop(0))
        return find_host_hash("tls://far:8786")

    return find


def test_the_processor_of_most_workers_counts(ask: Any) -> None:
    """Results of the others are not cached."""
    assert ask(answer("a"), answer("b"), answer("b")) == "b"


def test_workers_that_are_not_used_do_not_count(ask: Any) -> None:
    """One with another harness, and one that does not answer."""
    silent = SimpleNamespace(result=fail)
    assert ask(answer("a", "0.0.1 (x)"), silent, answer("b")) == "b"


def test_without_an_answer_it_is_this_host(ask: Any) -> None:
    """A cluster may have no worker yet."""
    assert ask() == hash_host()
    assert ask(SimpleNamespace(result=fail)) == hash_host()


def test_a_large_cluster_is_sampled(ask: Any) -> None:
    """Not every one of its workers is asked."""
    assert ask(*[answer("a")] * SAMPLE, *[answer("b")] * 2 * SAMPLE) == "a"
