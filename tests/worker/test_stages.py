"""The stages of a case: each leaves its artifacts, also if a later one fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from conformance.model.outcome import Outcome, Stage
from conformance.model.value import decode_value, to_array
from tests.workbench import leaf_of, value_of

if TYPE_CHECKING:
    from tests.workbench import Bench

pytestmark = pytest.mark.cell
TOP = "import jax, jax.numpy as jnp\nDIE = lambda _: os.abort()\n"
IR = ["jaxpr", "stablehlo", "hlo"]


def test_a_program_leaves_an_artifact_of_every_stage(bench: Bench) -> None:
    """IR as text, cost and layout as JSON, value and reference as values."""
    body = "return Program(jnp.sin, (np.float32([1, 2]),), reference=np.sin)"
    finished = bench.run(body, "program()", TOP)
    assert finished.error is None
    assert {*IR, "cost", "memory", "layout", "value", "reference"} <= set(finished.blobs)
    assert json.loads(finished.blobs["jaxpr"])["form"] == 1
    assert b'"stablehlo.sine"(' in finished.blobs["stablehlo"]
    assert b"HloModule" in finished.blobs["hlo"]
    assert set(finished.seconds) == {
        "import",
        "build",
        "trace",
        "lower",
        "cross_lower",
        "compile",
        "execute",
        "job",
    }


def test_an_unavailable_artifact_leaves_its_reason(bench: Bench) -> None:
    """The program is unaffected."""
    top = """
        import jax.numpy as jnp
        from conformance.worker import capture
        def cost(compiled): raise NotImplementedError("no cost here")
    """
    body = "capture.render_cost = cost; return Program(jnp.sin, (np.float32([1, 2]),))"
    finished = bench.run(body, "program()", top)
    assert finished.outcome is Outcome.OK
    assert "cost" not in finished.blobs
    assert finished.blobs["no_cost"] == b"NotImplementedError: no cost here"


@pytest.mark.long(keep=4)
@pytest.mark.parametrize(
    ("body", "stage", "left"),
    [
        ("raise ValueError", Stage.BUILD, []),
        ("return 3", Stage.BUILD, []),
        ("return None", Stage.BUILD, []),
        ("return Program(lambda x: x + 'a', (1.0,))", Stage.TRACE, []),
        ("return Program(lambda x: x, (), )", Stage.TRACE, []),
        (
            "return Program(lambda x: jax.pure_callback(DIE, x, x), (jnp.ones(2),))",
            Stage.EXECUTE,
            IR,
        ),
    ],
)
def test_a_failed_program_keeps_earlier_artifacts(
    bench: Bench, body: str, stage: Stage, left: list[str]
) -> None:
    """And the stage that it reached, even after a crash."""
    finished = bench.run(body, "program()", TOP)
    assert finished.outcome in {Outcome.RAISED, Outcome.CRASHED}
    assert finished.stage is stage
    assert [name for name in IR if name in finished.blobs] == left
    assert "value" not in finished.blobs


@pytest.mark.long(keep=4)
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("Program(lambda x, n: x * n, (jnp.ones(2), 3), jit={'static_argnums': 1})", [3, 3]),
        ("Program(lambda x, n: x * n, (jnp.ones(2), 3), jit={'static_argnums': (-1,)})", [3, 3]),
        (
            "Program(lambda x, n: x * n, (jnp.ones(2),), {'n': 3}, jit={'static_argnames': 'n'})",
            [3, 3],
        ),
        ("Program(jax.jit(lambda x: -x), (np.float32([1, 2]),))", [-1, -2]),
        ("Program(lambda x: x + 1, (jnp.ones(2),), jit={'donate_argnums': 0})", [2, 2]),
    ],
)
def test_arguments_reach_the_program(bench: Bench, program: str, expected: list[int]) -> None:
    """Static, named, donated; jitted by the author or by the harness."""
    finished = bench.run(f"return {program}", "program()", TOP)
    assert to_array(leaf_of(finished)).tolist() == expected


def test_the_reference_gets_copies_of_arguments(bench: Bench) -> None:
    """A donated argument is deleted by the run."""
    body = """
        def reference(x):
            assert type(x) is np.ndarray
            return x + 1
        return Program(lambda x: x + 1, (jnp.ones(4),), reference=reference,
                       jit={"donate_argnums": 0})
    """
    finished = bench.run(body, "program()", TOP)
    assert decode_value(finished.blobs["reference"]).leaves[0].kind == "numpy"
    assert json.loads(finished.blobs["layout"])["donated"] == [True]


def test_a_broken_reference_is_the_cases_fault(bench: Bench) -> None:
    """The program ran; the error names the reference and its line."""
    body = "return Program(jnp.sin, (1.0,), reference=lambda x: 1 / 0)"
    finished = bench.run(body, "program()", TOP)
    assert finished.error is not None
    assert finished.error.type == "CaseError"
    assert "the reference raised ZeroDivisionError" in finished.error.message
    assert "value" in finished.blobs


def test_an_expected_error_is_kept_with_the_raised_error(bench: Bench) -> None:
    """`raises(...)` is a reference like any other, also when the program fails."""
    body = "return Program(lambda x: x + 'a', (1.0,), reference=raises('TypeError', 'add'))"
    finished = bench.run(body, "program()", TOP)
    assert finished.outcome is Outcome.RAISED
    assert json.loads(finished.blobs["raises"]) == {"type": "TypeError", "match": "add"}


def test_a_probe_may_emit_artifacts(bench: Bench) -> None:
    """In addition to its value."""
    finished = bench.run(
        "return Observed({'n': 1}, reference=lambda: {'n': 2}, artifacts={'note': 'é'})"
    )
    assert finished.blobs["note"] == "é".encode()
    assert leaf_of(finished).data == b"1"
    assert decode_value(finished.blobs["reference"]).leaves[0].data == b"2"


def test_parameters_reach_the_function(bench: Bench) -> None:
    """One job for each entry of `params`."""
    source = (
        "from conformance.kit import probe\n"
        "@probe(params={'one': {'n': 1}, 'two': {'n': 2}})\ndef case(env, n): return n\n"
    )
    assert [leaf_of(bench.worker.run(job)).data for job in bench.jobs(source)] == [b"1", b"2"]


def test_env_describes_the_cell(bench: Bench) -> None:
    """Release, platform, versions, and devices in order."""
    body = """
        return [env.cell.id, env.cell.release, env.cell.platform, env.cell.versions["jax"],
                [device.id for device in env.devices]]
    """
    leaves = value_of(bench.run(body, "probe(devices=2)")).leaves
    release = repr(bench.planned.release).encode()
    cell = bench.planned.cell
    assert [leaf.data for leaf in leaves] == [
        repr(cell.id).encode(), release, b"'cpu'", release, b"0", b"1"
    ]  # fmt: skip


def test_a_mesh_that_is_too_large_names_the_remedy(bench: Bench) -> None:
    """The case requested fewer devices than its mesh needs."""
    finished = bench.run("env.mesh((2, 2), ('a', 'b'))", "probe(devices=2)")
    assert finished.error is not None
    assert "needs 4 devices, got 2: raise `devices=` of the case" in finished.error.message


def test_random_numbers_for_arguments_are_the_same_everywhere(bench: Bench) -> None:
    """`env.rng` does not depend on the NumPy of the cell."""
    leaf = leaf_of(bench.run("return env.rng(7).integers(0, 1000, 4)"))
    assert to_array(leaf).tolist() == [944, 625, 684, 897]


def test_env_compat_works_on_every_release(bench: Bench) -> None:
    """shard_map, pvary and axis_size."""
    body = """
        from jax.sharding import PartitionSpec as P
        mesh = env.mesh(2, "x")
        def step(x):
            one = env.compat.pvary(jnp.float32(1), "x")
            return jax.lax.psum(x + one, "x") * env.compat.axis_size("x")
        mapped = env.compat.shard_map(step, mesh=mesh, in_specs=P("x"), out_specs=P())
        return Program(mapped, (np.float32([1, 2]),), reference=lambda x: np.float32([10]))
    """
    assert to_array(leaf_of(bench.run(body, "program(devices=2)", TOP))).tolist() == [10]
