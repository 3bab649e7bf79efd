"""Variants of programs, on an old, a middle and the newest release."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from conformance.corpus.project import PACKAGE
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.record_judge import load_observation, make_record
from conformance.judge.conformance import judge_conformance
from conformance.model.case import VARIANTS
from conformance.model.outcome import Conformance, Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.job import FinishedJob
    from conformance.model.observation import Observation
    from tests.workbench import Bench

pytestmark = pytest.mark.cell
TOP = """
    import jax, jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P
    TRACER = jax.core.Tracer
"""
TRACED_ONLY = """
def f(x):
    if not isinstance(x, TRACER):
        raise ValueError("traced only")
    return x
"""
CLAIM = f"program(devices=4, same_as={VARIANTS})"


@pytest.fixture
def bench(bench_of_each_age: Bench, tmp_path: Path) -> Bench:
    """The kept worker, with a folder of case files of this test's own."""
    return bench_of_each_age.at(tmp_path)


def load_result(finished: FinishedJob, folder: Path) -> Observation:
    """Return what is stored of a job."""
    blobs = BlobStore(folder / "blobs")
    return load_observation(make_record(finished, blobs), blobs)


def reasons(bench: Bench, body: str, decorator: str, top: str = TOP) -> tuple[str, ...]:
    """Return why a case does not conform."""
    finished = bench.run(body, decorator, top)
    assert finished.outcome is Outcome.OK, finished.error
    answer, why = judge_conformance(finished.job.case, load_result(finished, bench.folder))
    assert answer is (Conformance.DEVIATES if why else Conformance.CONFORMS)
    return why


def test_a_sound_program_agrees_with_its_variants(bench: Bench) -> None:
    """Also with placed and donated arguments and scalars."""
    body = """
        mesh = env.mesh((2, 2), ("x", "y"))
        x = env.put(np.arange(16, dtype=np.float32).reshape(4, 4),
                    NamedSharding(mesh, P("x", "y")))
        def shard(x):
            return jax.lax.psum(x.sum(), ("x", "y")) + x
        f = env.compat.shard_map(shard, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
        return Program(lambda x, n: (f(x), None, n * 2), (x, 3.0), jit={"donate_argnums": 0})
    """
    finished = bench.run(body, CLAIM, TOP)
    seen = load_result(finished, bench.folder)
    assert judge_conformance(finished.job.case, seen) == (Conformance.CONFORMS, ())
    assert seen.value is not None
    assert seen.value.leaves[0].sharding.startswith("tiles[")
    assert tuple(seen.variants) == VARIANTS
    alone = seen.variants["unsharded"].value
    assert alone is not None
    assert alone.leaves[0].sharding == "single"
    assert {f"same_as {way}" for way in VARIANTS} <= set(finished.seconds)


def test_variants_accept_keys_statics_and_keywords(bench: Bench) -> None:
    """A typed key, a static shape, a named argument and a bare 16-bit one."""
    body = """
        def f(key, n, *, scale):
            return jax.random.normal(key, (n,)) * scale, key
        return Program(f, (jax.random.key(1), 3), {"scale": jnp.bfloat16(2)},
                       jit={"static_argnums": 1})
    """
    assert reasons(bench, body, "program(same_as=('jit', 'eager', 'aot', 'vmap_of_one'))") == ()


def test_a_program_that_asks_whether_it_is_traced_disagrees(bench: Bench) -> None:
    """A common mistake: the result depends on `isinstance(x, Tracer)`."""
    body = "return Program(lambda x: x + isinstance(x, TRACER), (np.float32([1, 2]),))"
    (told,) = reasons(bench, body, "program(same_as=('jit', 'eager', 'vmap_of_one'))")
    assert told.startswith("same_as eager: out 2 of 2 elements differ")
    assert "2.0 against 1.0" in told or "3.0 against 2.0" in told


def test_a_program_that_depends_on_its_shards_disagrees(bench: Bench) -> None:
    """E.g. a missing division: a sum instead of a mean."""
    body = """
        f = env.compat.shard_map(lambda x: jax.lax.pmean(x.sum(), "x"), mesh=env.mesh(4, "x"),
                                 in_specs=P("x"), out_specs=P())
        return Program(f, (np.ones(8, np.float32),))
    """
    (told,) = reasons(bench, body, CLAIM)
    assert told.startswith("same_as unsharded: out 2.0 against 8.0")


def test_a_wrong_batching_rule_disagrees(bench: Bench) -> None:
    """The batching rule of a `custom_vmap` adds 1."""
    top = """
        import jax
        from jax.custom_batching import custom_vmap
        @custom_vmap
        def f(x):
            return x
        @f.def_vmap
        def _(size, batched, x):
            return x + 1, True
    """
    body = "return Program(f, (np.float32([1, 2]),))"
    (told,) = reasons(bench, body, "program(same_as=('jit', 'vmap_of_one'))", top)
    assert told.startswith("same_as vmap_of_one: out 2 of 2 elements differ")


@pytest.mark.long(keep=4)
@pytest.mark.parametrize(
    ("body", "way", "told"),
    [
        ("return Program(jnp.sin, (np.float32(1),))", "unsharded",
         "raised CaseError: the program made no mesh of several devices with env.mesh"),
        ("return Program(lambda: jnp.ones(3), ())", "vmap_of_one",
         "raised CaseError: the program has no arguments to map over"),
        ("return Program(lambda tree: tree['n'] * 2, ({'m': None, 'n': 2},))", "vmap_of_one", ""),
        (f"{TRACED_ONLY}\nreturn Program(f, (np.float32(1),))", "eager",
         "raised ValueError: traced only"),
    ],
)  # fmt: skip
def test_a_variant_that_cannot_run_has_a_reason(
    bench: Bench, body: str, way: str, told: str
) -> None:
    """In one sentence; the program's own value is observed."""
    why = reasons(bench, body, f"program(same_as=('{way}',))")
    assert [text.removeprefix(f"same_as {way}: ")[: len(told)] for text in why] == [told] * len(why)
    assert bool(why) is bool(told)


def test_a_crash_in_a_variant_keeps_earlier_results(bench: Bench) -> None:
    """Later variants are not run."""
    body = """
        def f(x):
            if not isinstance(x, TRACER):
                os.abort()
            return x
        return Program(f, (np.float32([1]),), reference=np.float64([1]))
    """
    finished = bench.run(body, "program(same_as=('jit', 'eager', 'aot'))", TOP)
    assert finished.outcome is Outcome.OK
    assert {"hlo", "value", "reference", "same_as-jit"} <= set(finished.blobs)
    _, (told,) = judge_conformance(finished.job.case, load_result(finished, bench.folder))
    assert told == "same_as eager: crashed SIGABRT: the process was ended by SIGABRT"


def test_a_hang_in_a_variant_keeps_earlier_results(bench: Bench) -> None:
    """It ends at the job's own timeout."""
    body = """
        def f(x):
            while not isinstance(x, TRACER):
                time.sleep(1)
            return x
        return Program(f, (np.float32([1]),))
    """
    finished = bench.run(body, "program(timeout=3, same_as=('eager', 'jit'))", TOP)
    assert "value" in finished.blobs
    _, (told,) = judge_conformance(finished.job.case, load_result(finished, bench.folder))
    assert told == "same_as eager: timed_out timeout: no end within the timeout of 3 s"


def test_a_failed_program_has_no_variants(bench: Bench) -> None:
    """Neither has a program with a broken reference."""
    for body in (
        "return Program(lambda x: x + 'a', (1.0,))",
        "return Program(lambda x: x, (np.float32(1),), reference=lambda: 1)",
    ):
        finished = bench.run(body, "program(same_as=('jit',))", TOP)
        assert finished.outcome is Outcome.RAISED
        assert "same_as" not in finished.blobs


def test_every_variant_builds_the_program_again(bench: Bench) -> None:
    """Donated arguments are deleted by each."""
    body = """
        with open("built", "a") as file: file.write("x")
        x = jnp.ones(4)
        return Program(lambda x: x + 1, (x,), jit={"donate_argnums": 0},
                       reference=lambda x: x * len(open("built").read()) * 2)
    """
    decorator = "program(same_as=('jit', 'eager', 'aot', 'vmap_of_one'))"
    assert reasons(bench, body, decorator) == ()


def test_without_same_as_no_variant_is_run(bench: Bench) -> None:
    """No artifact is about variants."""
    finished = bench.run("return Program(jnp.sin, (np.float32(1),))", "program()", TOP)
    assert not [name for name in (*finished.blobs, *finished.seconds) if "same_as" in name]


def test_the_worker_knows_the_variants_that_a_case_may_name() -> None:
    """Those that the static reader does, in their order; read, for the worker needs jax."""
    (table,) = (
        node.value
        for node in ast.parse((PACKAGE / "worker" / "variants.py").read_text()).body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "VARIANTS"
    )
    assert isinstance(table, ast.Dict)
    assert tuple(ast.literal_eval(key) for key in table.keys if key is not None) == VARIANTS
