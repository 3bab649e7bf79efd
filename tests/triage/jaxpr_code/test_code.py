"""Whole jaxprs as code, which traces to the same program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.ir.analysis import analyse
from conformance.triage.jaxpr_code.code import render_jaxpr
from conformance.triage.jaxpr_code.literals import IMPORTS
from conformance.triage.jaxpr_code.program import UnsupportedJaxprError
from tests.ir.jaxpr.documents import document, eqn, jaxpr

from .documents import F32, KEY, S32, WEAK, code

if TYPE_CHECKING:
    from tests.workbench import Bench


def test_function_has_all_inputs_as_parameters() -> None:
    """Also those that nothing reads."""
    made = code(jaxpr(inputs=(F32, WEAK, S32), out=(0,)), name="wave")
    assert (made.name, made.parameters) == ("wave", ("x", "y", "z"))
    assert made.statements == ("def wave(x, y, z):\n    return x",)


def test_small_constants_are_in_the_code() -> None:
    """The jaxpr has only a hash of a large constant."""
    consts = [F32, [1.0, 2.0, 3.0, 4.0]], [F32, "sha256:00"]
    entry = jaxpr(eqn("mul", [0, 1]), inputs=(F32,), out=(2,), consts=consts[:1])
    assert code(entry).statements[0].splitlines() == [
        "def f(x):",
        "    constant = np.array([1.0, 2.0, 3.0, 4.0], jnp.float32)",
        "    product = lax.mul(constant, x)",
        "    return product",
    ]
    with pytest.raises(UnsupportedJaxprError, match=r"constant: of float32.* not recorded"):
        code(jaxpr(eqn("mul", [0, 1]), inputs=(F32,), out=(2,), consts=consts[1:]))


def test_dead_equations_are_left_out() -> None:
    """Also those that have no code."""
    entry = jaxpr(eqn("odd", [0]), eqn("neg", [0]), inputs=(F32,), out=(2,))
    assert code(entry).statements == ("def f(x):\n    neg = -x\n    return neg",)


@pytest.mark.parametrize(
    ("made", "expected_message"),
    [
        (eqn("debug_callback", [0], (), **{"ctx effects": ["D"]}), "debug_callback: no public"),
        (eqn("odd", [0]), "odd: no public function is known for it"),
        (eqn("neg", [0], new_option=3), "neg, parameter new_option: unsupported value 3"),
        (eqn("add", [0, [KEY, None]]), "literal: of type key<fry>"),
    ],
)
def test_unsupported_equations_are_refused(made: list[Any], expected_message: str) -> None:
    """The message has the primitive and the parameter."""
    with pytest.raises(UnsupportedJaxprError, match=expected_message):
        code(jaxpr(made, inputs=(F32,), out=(1,) if made[2] else ()))


def test_symbolic_dimensions_are_refused() -> None:
    """Code needs sizes."""
    text = document(jaxpr(inputs=(0,), out=(0,)), avals=[["float32", ["n"]]])
    with pytest.raises(UnsupportedJaxprError, match="symbolic"):
        render_jaxpr(text.encode(), release="0.6.2")


TOP = """
    import jax, jax.numpy as jnp
    from jax import lax
    from jax.sharding import NamedSharding, PartitionSpec as P
    X = np.linspace(-1, 2, 8, dtype=np.float32)
    inner = jax.jit(lambda x: (x * 2, x + 1))
    def several(x):
        a, b = inner(x)
        return jnp.where(a > 0, b, inner(a)[0])
    def loops(x):
        n, y = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))
        return lax.scan(lambda c, v: (c * v, c + n), jnp.float32(1), y)
"""
MAPPED = """lambda x: env.compat.shard_map(lambda x: {body}, mesh=env.mesh(4, "x"),
    in_specs=P("x"), out_specs=P({out}))(x)"""
PROGRAMS = {
    "elementwise": "lambda x: jnp.clip(x, 0, 1) * 2 + jnp.sin(x) ** 3 / (1 + abs(x))",
    "reductions": "lambda x: x.sum() + x.max() - jnp.mean(x) * (x.astype(jnp.int32) % 3).min()",
    "indexing": "lambda x: x.at[jnp.arange(3)].add(x[x.astype(int)[:3]])[1:5]",
    "random": "lambda x: x + jax.random.normal(jax.random.PRNGKey(3), (8,))",
    "calls": "several",
    "loops": "loops",
    "gradient": """jax.grad(lambda x: lax.scan(
        lambda c, v: (c * v, jnp.sin(c)), jnp.float32(1), x)[1].sum())""",
    "branches": "lambda x: lax.cond(x[0] > 0, lambda y: y * 2, jnp.cos, x)",
    "sorting": "lambda x: (jnp.sort(-x), jnp.argsort(-x), jnp.cumsum(x), lax.top_k(x, 2)[0])",
    "constants": "lambda x: x * np.arange(8, dtype=np.float32) + jnp.float32(3)",
    "sum of shards": MAPPED.format(body='lax.psum(jnp.sin(x), "x")', out=""),
    "ring": MAPPED.format(body='lax.ppermute(x, "x", [(0, 1), (1, 0)]) * 2.0', out='"x"'),
    "placed": """lambda x: 1 + lax.with_sharding_constraint(
        x, NamedSharding(env.mesh(2, "x"), P("x")))""",
}


@pytest.mark.long(keep=8)
@pytest.mark.cell
@pytest.mark.parametrize("name", PROGRAMS)
def test_code_traces_to_the_same_jaxpr(bench: Bench, name: str) -> None:
    """Traced in the same release it gives the same jaxpr and the same values.

    Sums of derivatives are an exception: they have a separate primitive.
    """
    first = bench.run(f"return Program({PROGRAMS[name]}, (X,))", "program(devices=4)", TOP)
    traced = first.blobs["jaxpr"]
    made = render_jaxpr(traced, release=bench.planned.cell.release, name="written")
    lines = [*IMPORTS.values(), *made.statements, "return Program(written, (X,))"]
    body = "\n".join(lines)
    again = bench.run(body, "program(devices=4)", TOP)
    assert again.blobs.get("value"), again.error
    assert again.blobs["value"] == first.blobs["value"]
    texts = (traced.decode(), again.blobs["jaxpr"].decode())
    one, other = (analyse(text.replace("add_any", "add"), "jaxpr") for text in texts)
    assert one.canonical == other.canonical, body
