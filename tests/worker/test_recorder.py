"""Recorded computations, on an old and on the newest release."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.bench import Bench

pytestmark = pytest.mark.cell
TOP = """
    import json
    import jax, jax.numpy as jnp
    from pathlib import Path
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    from conformance.worker.instrumentation.recorder import record
    from conformance.worker.instrumentation.recording_format import get_current_version
    OWN = get_current_version()
    SIX = np.float32([1, 2, 3, 4, 5, 6])
    def observe(value=1):
        return Observed(value, artifacts={"lines": Path("r/computations.jsonl").read_text()})
    def load(array):
        parts = [Path("r/blobs", name).read_bytes() for name in array["shards"]]
        return [np.frombuffer(part, array["dtype"]).tolist() for part in parts]
"""


def record_lines(bench: Bench, body: str, decorator: str = "probe()") -> list[dict[str, Any]]:
    """Return the lines that a probe with this body records in its folder `r`."""
    finished = bench.run(body, decorator, TOP)
    assert finished.error is None, finished.error
    return [json.loads(line) for line in finished.blobs["lines"].decode().splitlines()]


def test_each_call_has_a_line(bench: Bench) -> None:
    """Also those that jax would answer without Python, from the second call on."""
    body = """
        with record("r", [OWN]):
            called = jax.jit(lambda x: x + 1)
            compiled = jax.jit(lambda x: x * 2).lower(SIX).compile()
            mapped = jax.pmap(lambda x: x - 1)
            for function in (called, compiled, mapped):
                for _ in range(3):
                    function(SIX[:2])if function is mapped else function(SIX)
        called(SIX)
        return observe()
    """
    lines = record_lines(bench, body, "probe(devices=2)")
    assert [line["number"] for line in lines] == list(range(9))
    assert [line["stage"] for line in lines] == ["execute"] * 9
    assert [line["reasons"] for line in lines] == [[]] * 9
    # Equal calls share everything that they refer to.
    for first in (0, 3, 6):
        same = [{**line, "number": 0, "seconds": 0} for line in lines[first : first + 3]]
        assert same[0] == same[1] == same[2]


def test_inputs_are_those_of_the_executable(bench: Bench) -> None:
    """Unused ones are left out, and one that the call deletes has its data."""
    body = """
        x, key = jax.device_put(SIX), jax.random.key(7)
        x.block_until_ready(), jax.block_until_ready(key)
        with record("r", [OWN]):
            function = jax.jit(lambda x, _, key, n: (x + n, key), donate_argnums=0)
            out, _ = function(x, SIX, key, 2)
        assert x.is_deleted()
        (line,) = map(json.loads, Path("r/computations.jsonl").read_text().splitlines())
        assert line["donated"] == [0], line["donated"]
        assert [load(array) for array in line["inputs"]] == [[SIX.tolist()], [[0, 7]], [[2]]]
        assert load(line["outputs"][0]) == [out.tolist()]
        return observe()
    """
    (line,) = record_lines(bench, body)
    assert [array["dtype"] for array in line["inputs"]] == ["float32", "uint32", "int32"]
    assert [array["shape"] for array in line["outputs"]] == [[6], [2]]


def test_shards_are_in_the_order_of_the_device_assignment(bench: Bench) -> None:
    """Not in the order of the ids of the devices."""
    body = """
        mesh = Mesh(np.array(jax.devices()[::-1]), ("x",))
        with record("r", [OWN]):
            x = jax.device_put(SIX, NamedSharding(mesh, P("x")))
            jax.jit(lambda x: x * 2)(x)
        (line,) = map(json.loads, Path("r/computations.jsonl").read_text().splitlines())
        assert load(line["inputs"][0]) == [[1, 2, 3], [4, 5, 6]]
        assert load(line["outputs"][0]) == [[2, 4, 6], [8, 10, 12]]
        return observe()
    """
    (line,) = record_lines(bench, body, "probe(devices=2)")
    assert line["options"]["devices"] == [1, 0]
    assert line["options"]["partitions"] == 2
    assert line["outputs"][0]["shape"] == [6]
    assert line["outputs"][0]["shard_shape"] == [3]


def test_effects_are_reasons(bench: Bench) -> None:
    """Such a call has no data; a callback that itself computes is recorded, too."""
    body = """
        def callback(x):
            return np.asarray(jnp.sin(x) + 1)
        with record("r", [OWN]):
            sine = jax.jit(lambda x: jax.pure_callback(callback, x, x))(SIX)
            jax.jit(lambda x: x + 1)(sine)
        return observe(sine)
    """
    lines = record_lines(bench, body)
    (refused,) = [line for line in lines if line["reasons"]]
    assert refused["reasons"] == ["host callbacks"]
    assert refused["inputs"] is None
    assert refused["outputs"] is None
    assert refused["modules"]
    assert len(lines) >= 3


def test_an_error_of_the_compiler_has_a_line(bench: Bench) -> None:
    """The program gets the same error."""
    body = """
        with record("r", [OWN]):
            try:
                jax.jit(lambda x: x, compiler_options={"no_such_option": True})(SIX)
            except Exception as error:
                message = str(error)
        (line,) = map(json.loads, Path("r/computations.jsonl").read_text().splitlines())
        assert line["error"]["message"] == message
        return observe()
    """
    (line,) = record_lines(bench, body)
    assert line["stage"] == line["error"]["stage"] == "compile"
    assert "no_such_option" in line["error"]["message"]
    assert line["inputs"] is None


def test_a_recording_has_limits(bench: Bench) -> None:
    """A large array is left out; the last line says that calls are missing."""
    body = """
        with record("r", [OWN], largest=100, most_calls=3):
            double = jax.jit(lambda x: x * 2)
            for size in (4, 100, 5, 6, 7):
                double(np.zeros(size, np.float32))
        return observe()
    """
    *lines, last = record_lines(bench, body)
    assert last == {"truncated": "more than 3 calls"}
    assert [bool(line["reasons"]) for line in lines] == [False, True, False]
    assert "MiB of arrays" in lines[1]["reasons"][0]


def test_modules_are_written_for_each_reader(bench: Bench) -> None:
    """In no newer version than the release has; an impossible version has a reason."""
    body = """
        with record("r", [OWN, "99.0.0", "0.0.1"]):
            jax.jit(lambda x: x + 1)(SIX)
        return observe()
    """
    (line,) = record_lines(bench, body)
    assert len({line["modules"][version] for version in line["modules"]}) == 1
    assert len(line["modules"]) == 2
    assert list(line["unwritten"]) == ["0.0.1"]
    assert line["unwritten"]["0.0.1"]
