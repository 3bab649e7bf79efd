"""Repeated computations: in the release that recorded them, and in another one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.job import Job
from conformance.engine.worker_probes import make_worker_probe
from tests.bench import Bench, planned_cell, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conformance.engine.job import FinishedJob

pytestmark = pytest.mark.cell
OTHER = "0.7.2"
PROGRAMS = """
    import jax, jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P
    from conformance.worker.instrumentation.recorder import record
    SIX = np.float32([1, 2, 3, 4, 5, 6])
    SQUARE = np.float32([[4, 1], [1, 3]])
    def call_all(env):
        mesh = env.mesh(2, "x")
        spread = env.put(SIX, NamedSharding(mesh, P("x")))
        add = env.compat.shard_map(
            lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
        jax.jit(lambda x: jax.lax.scan(lambda c, v: (c + v, c * v), 0.0, x))(SIX)
        jnp.linalg.cholesky(SQUARE)
        jax.jit(lambda x: x + 1, donate_argnums=0)(jnp.asarray(SIX))
        jax.jit(lambda x: x[::-1] * 2)(spread)
        jax.jit(add)(spread)
        jax.pmap(lambda x: x / 3)(SIX[:2])
        jax.jit(lambda x: x.astype(jnp.bfloat16))(SIX)
        with env.compat.enable_x64():
            jax.jit(lambda n: n * 2**40)(np.int64([1, 2]))
        for _ in range(2):
            jax.jit(lambda key: jax.random.bits(key))(jax.random.key(3))
        jax.jit(lambda x: jax.pure_callback(np.sin, x, x))(SIX)
"""


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A worker of another release."""
    with Bench(planned_cell(OTHER), tmp_path_factory.mktemp("cases")) as made:
        yield made


def run_probe(bench: Bench, name: str, **params: Any) -> FinishedJob:
    """Run a probe of the module in a cell with two devices."""
    case = replace(make_worker_probe(name, params, "call_replay"), devices=2)
    return bench.worker.run(Job(case=case, planned=bench.planned))


def find_version(bench: Bench) -> str:
    """Return the version of StableHLO that a cell reads."""
    finished = run_probe(bench, "describe_writer")
    assert finished.error is None, finished.error
    answers: dict[str, str] = json.loads(finished.blobs["writer"])
    assert answers["missing"] == ""
    return answers["version"]


def load_lines(file: Path) -> list[dict[str, Any]]:
    """Return the lines of a recording or of results."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def record_programs(
    bench: Bench, folder: Path, versions: list[str], calls: str = "call_all(env)"
) -> list[dict[str, Any]]:
    """Return the lines of a recording of programs."""
    body = f"""
        with record({str(folder)!r}, {versions}):
            {calls}
        return 1
    """
    finished = bench.run(body, "probe(devices=2)", PROGRAMS)
    assert finished.error is None, finished.error
    return load_lines(folder / "computations.jsonl")


def replay(
    bench: Bench, source: Path, target: Path, version: str, numbers: list[int] | None = None
) -> list[dict[str, Any]]:
    """Return the results of a recording in a cell."""
    finished = run_probe(
        bench, "replay",
        source=str(source), target=str(target), version=version, numbers=numbers,
    )  # fmt: skip
    value_of(finished)
    return load_lines(target / "results.jsonl")


def test_the_same_release_gives_the_same_bytes(bench: Bench, tmp_path: Path) -> None:
    """Of each call that is not refused."""
    version = find_version(bench)
    recorded = record_programs(bench, tmp_path / "r", [version])
    results = replay(bench, tmp_path / "r", tmp_path / "t", version)
    assert [line["number"] for line in results] == [line["number"] for line in recorded]
    refused = [line["number"] for line in recorded if line["reasons"]]
    assert len(refused) == 1
    for line, result in zip(recorded, results, strict=True):
        assert result["reasons"] == line["reasons"]
        assert result["error"] is None
        assert result["outputs"] == line["outputs"]
        assert (result["hlo"] is None) == bool(line["reasons"])


def test_equal_calls_are_repeated_once(bench: Bench, tmp_path: Path) -> None:
    """The second one refers to the first."""
    version = find_version(bench)
    calls = "f = jax.jit(lambda x: x + 1); [f(x) for x in (SIX, SIX, SIX * 2)]"
    record_programs(bench, tmp_path / "r", [version], calls)
    results = replay(bench, tmp_path / "r", tmp_path / "t", version)
    assert [line["same_as"] for line in results] == [None, 0, None]
    assert results[0]["outputs"] == results[1]["outputs"] != results[2]["outputs"]


def test_another_release_repeats_the_calls(bench: Bench, other: Bench, tmp_path: Path) -> None:
    """These programs do not depend on the compiler; what it cannot read has a reason."""
    version = find_version(other)
    recorded = record_programs(bench, tmp_path / "r", [version])
    results = replay(other, tmp_path / "r", tmp_path / "t", version)
    usable = [line["reasons"] == [] for line in results]
    assert usable == [line["reasons"] == [] for line in recorded]
    for line, result in zip(recorded, results, strict=True):
        assert result["error"] is None
        assert result["outputs"] == line["outputs"]


def test_chosen_calls_are_repeated(bench: Bench, tmp_path: Path) -> None:
    """A caller goes on after a crash; lines are appended."""
    version = find_version(bench)
    calls = "f = jax.jit(lambda x: x + 1); [f(SIX * n) for n in range(4)]"
    record_programs(bench, tmp_path / "r", [version], calls)
    replay(bench, tmp_path / "r", tmp_path / "t", version, [1])
    results = replay(bench, tmp_path / "r", tmp_path / "t", version, [3])
    assert [line["number"] for line in results] == [1, 3]


def test_what_a_cell_lacks_is_a_reason(bench: Bench, tmp_path: Path) -> None:
    """A device, an artifact or a kernel; the compiler is not to blame."""
    version = find_version(bench)
    calls = "jax.jit(lambda x: x + 1)(SIX); jnp.linalg.cholesky(SQUARE)"
    lines = record_programs(bench, tmp_path / "r", [version], calls)
    blob = tmp_path / "r" / "blobs" / lines[1]["modules"][version]
    blob.write_bytes(blob.read_bytes().replace(b"lapack_spotrf", b"lapack_missin"))
    lines[0]["options"]["devices"] = [9]
    lines += [{**lines[0], "number": 7, "modules": {}, "unwritten": {version: "no such op"}}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "r" / "computations.jsonl").write_text(text)
    results = replay(bench, tmp_path / "r", tmp_path / "t", version)
    assert [line["error"] for line in results] == [None] * 3
    assert results[0]["reasons"] == ["the cell has no devices [9]"]
    assert "lapack_missin" in results[1]["reasons"][0]
    assert results[2]["reasons"] == [f"no artifact for StableHLO {version}: no such op"]


def test_errors_of_the_compiler_are_results(bench: Bench, tmp_path: Path) -> None:
    """As in the release that recorded the call."""
    version = find_version(bench)
    calls = """
            try: jax.jit(lambda x: x, compiler_options={"no_such_option": True})(SIX)
            except Exception: pass"""
    (line,) = record_programs(
        bench,
        tmp_path / "r",
        [version],
        calls.strip().replace("\n            except", "\n            except"),
    )
    (result,) = replay(bench, tmp_path / "r", tmp_path / "t", version)
    assert result["error"] == line["error"]
    assert result["outputs"] is None
