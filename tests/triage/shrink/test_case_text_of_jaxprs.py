"""Cases with an inlined jaxpr."""

from __future__ import annotations

from typing import Any

from conformance.triage.shrink.case_text import inline_jaxpr
from tests.ir.jaxpr.documents import AVALS, F32, document, eqn, jaxpr

CASE = """\
from conformance.kit import Program, program
from jax import lax
import numpy as np

@program(devices=4)
def case(env):
    fn = env.mapped(lambda x: lax.psum(x, 'x'))
    return Program({0}, args=({1}))"""
INNER = jaxpr(eqn("psum", [0], axes=["x"]), inputs=(F32,), out=(1,))
MAPPED: dict[str, Any] = {
    "mesh": ["mesh", ["x", 4]], "in_specs": [[["x"]]], "out_specs": [[]], "jaxpr": {"jaxpr": 1},
}  # fmt: skip


def made(call: str, *jaxprs: dict[str, Any], arguments: str = "np.ones(4),") -> str | None:
    """Return the body of the case that runs some jaxprs."""
    text = inline_jaxpr(
        CASE.replace("{0}", call).replace("{1}", arguments),
        "case", document(*jaxprs, avals=AVALS).encode(), "0.8.0",
    )  # fmt: skip
    return None if text is None else text.partition("def case(env):\n")[2]


def test_inlined_jaxpr_has_a_statement_per_operation() -> None:
    """They come before the call; meshes come from `env`."""
    entry = jaxpr(eqn("shard_map", [0], **MAPPED), inputs=(F32,), out=(1,))
    keywords = "mesh=mesh, in_specs=(P('x'),), out_specs=P()"
    assert (made("fn", entry, INNER) or "").splitlines() == [
        "    fn = env.mapped(lambda x: lax.psum(x, 'x'))",
        "    mesh = env.mesh(4, 'x')",
        "",
        "    def steps(x):",
        "",
        "        def shard(x_shard):",
        "            psum = lax.psum(x_shard, 'x')",
        "            return psum",
        f"        mapped = env.compat.shard_map(shard, {keywords})(x)",
        "        return mapped",
        "    return Program(steps, args=(np.ones(4),))",
    ]


def test_inlined_program_without_arguments_has_none() -> None:
    """Its arguments were constants of the trace."""
    assert made("fn", jaxpr(inputs=(), out=([F32, 1.0],))) is None  # no literal has a shape
    nothing = made("fn", jaxpr(inputs=(), out=()))
    assert (nothing or "").splitlines()[-1] == "    return Program(steps)"


def test_jaxpr_without_code_is_not_inlined() -> None:
    """Neither is a call that takes more than its arguments."""
    assert made("fn", jaxpr(eqn("odd", [0]), inputs=(F32,), out=(1,))) is None
    assert made("fn, kwargs={}", jaxpr(inputs=(F32,), out=(0,))) is None
