"""Examples are drawn and shrunk alike by every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from conformance.kit import strategies as st
from conformance.laws.example_server import serve
from conformance.laws.launch import add_server
from conformance.worker.example_codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.kit.strategies import Strategy

GIVEN = {"x": st.arrays("float32", (2, 2)), "n": st.integers(0, 9)}


def make_request(given: Mapping[str, Strategy], examples: int = 20) -> dict[str, Any]:
    """Return the first message of a job."""
    return {"given": {k: encode(v) for k, v in given.items()}, "seed": 5, "examples": examples}


def draw(
    given: Mapping[str, Strategy], reply: Callable[[dict[str, Any]], str] = lambda _: "holds"
) -> tuple[list[str], dict[str, Any]]:
    """Return the examples of a law, and the last message of the server."""
    texts: list[str] = []

    def ask(message: Mapping[str, Any]) -> str:
        texts.append(message["text"])
        return reply(decode(message["example"]))

    return texts, serve(make_request(given), ask)


def test_the_first_example_is_the_simplest() -> None:
    """IRs of programs are those of this example."""
    texts, last = draw(GIVEN)
    assert texts[0] == 'x = np.array([[0.0, 0.0], [0.0, 0.0]], "float32"); n = 0'
    assert last == {"holds": 20}
    assert len(set(texts)) > 15


def test_every_process_draws_the_same_examples() -> None:
    """With other hashes of texts, other modules and other environment variables."""
    command = add_server({"law": {}})["law"]["command"]
    conversations = set()
    for number in (0, 1):
        variables = {**os.environ, "PYTHONHASHSEED": str(number), "CI": "true" * number}
        first = json.dumps(make_request(GIVEN))
        replies = '{"reply": "holds"}\n' * 20
        ended = subprocess.run(
            command, input=f"{first}\n{replies}", env=variables, text=True, check=True,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        conversations.add(ended.stdout)
    (conversation,) = conversations
    messages = [json.loads(line) for line in conversation.splitlines()]
    assert [message["text"] for message in messages[:-1]] == draw(GIVEN)[0]
    assert command[0] == sys.executable


def test_a_falsifying_example_is_shrunk_and_run_last() -> None:
    """To the simplest one with an error of the same type."""
    texts, last = draw(GIVEN, lambda drawn: "LawError" if drawn["n"] > 3 else "holds")
    assert last == {"falsified": 'x = np.array([[0.0, 0.0], [0.0, 0.0]], "float32"); n = 4'}
    assert texts[-1] == last["falsified"]


def test_rejected_examples_do_not_count() -> None:
    """Others are drawn in their place."""
    texts, last = draw(GIVEN, lambda drawn: "rejected" if drawn["n"] % 2 else "holds")
    assert last == {"holds": 20}
    assert len(texts) > 20


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"x": st.arrayss("float32", 3)},
            "given, x: Hypothesis has no strategy arrayss; did you mean arrays?",
        ),
        ({"x": st.integers(3, 2)}, "given, x: Cannot have max_value=2 < min_value=3"),
        ({"x": 3}, "given, x: 'int' object has no attribute 'validate'"),
        ({"x": st.integers(low=3)}, "given, x: integers() got an unexpected keyword argument"),
        ({"x": st.binary()}, "given draws a value that cannot be sent: a bytes is no plain data"),
    ],
)
def test_a_wrong_strategy_is_reported(given: dict[str, Any], reason: str) -> None:
    """With the parameter."""
    _, last = draw(given)
    assert reason in last["wrong"]


def test_a_law_that_fails_only_sometimes_is_reported() -> None:
    """With the example."""
    replies = iter(["holds", "LawError", *["holds"] * 1000])
    _, last = draw({"n": st.integers()}, lambda _: next(replies))
    assert last["wrong"].startswith("the law does not always fail for\nn = ")


@pytest.mark.parametrize(
    ("strategy", "dtype", "largest"),
    [
        (st.arrays("float32", 5), "float32", 8),
        (st.arrays("bfloat16", 5), "bfloat16", 8),
        (st.arrays("complex64", 5), "complex64", 8),
        (st.arrays("int8", 5), "int8", 128),
        (st.arrays("bool", 5), "bool", 1),
        (st.arrays("float32", 5, elements=st.floats(10, 20, width=32)), "float32", 20),
    ],
)
def test_arrays_have_tame_elements_by_default(
    strategy: Strategy, dtype: str, largest: float
) -> None:
    """Of the wanted dtype; other elements are an argument."""
    seen: list[Any] = []

    def keep(drawn: dict[str, Any]) -> str:
        seen.append(drawn["x"])
        return "holds"

    draw({"x": strategy}, keep)
    assert {array.dtype.name for array in seen} == {dtype}
    assert all(abs(array.astype(complex)).max() <= largest for array in seen)
