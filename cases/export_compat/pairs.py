"""Exports of every release, loaded by every release, program by program.

JAX promises that newer releases can load what `jax.export` wrote for six months, and older releases
for three weeks. `promised` checks this: all exports must compute the result of the program.
`beyond` has no reference, because JAX promises nothing for its pairs: it records the outcomes, for
users with an old file. The exports of each release are in `_exports/`: with the defaults of JAX,
and `_without_tracebacks`, with `jax_traceback_in_locations_limit` 0.
"""

from __future__ import annotations

from conformance.kit import Observed, deviation, probe

from ._loading import collect_outcomes, list_writers, was_refused

EXPORTS = {
    "elementwise": {"name": "elementwise"},
    "dynamic_shape": {"name": "dynamic_shape"},
    "control_flow": {"name": "control_flow"},
    "gradient": {"name": "gradient"},
    "sharded": {"name": "sharded"},
    "shard_map": {"name": "shard_map"},
    "cholesky": {"name": "cholesky"},
    "solve": {"name": "solve"},
    "eigenvalues": {"name": "eigenvalues"},
    "singular_values": {"name": "singular_values"},
    "random_bits": {"name": "random_bits"},
    "typed_key": {"name": "typed_key"},
    "top_k": {"name": "top_k"},
    "special_function": {"name": "special_function"},
    "two_platforms": {"name": "two_platforms"},
    "narrow_types": {"name": "narrow_types"},
    "elementwise_without_tracebacks": {"name": "elementwise_without_tracebacks"},
    "dynamic_shape_without_tracebacks": {"name": "dynamic_shape_without_tracebacks"},
    "control_flow_without_tracebacks": {"name": "control_flow_without_tracebacks"},
    "gradient_without_tracebacks": {"name": "gradient_without_tracebacks"},
    "sharded_without_tracebacks": {"name": "sharded_without_tracebacks"},
    "shard_map_without_tracebacks": {"name": "shard_map_without_tracebacks"},
    "cholesky_without_tracebacks": {"name": "cholesky_without_tracebacks"},
    "solve_without_tracebacks": {"name": "solve_without_tracebacks"},
    "eigenvalues_without_tracebacks": {"name": "eigenvalues_without_tracebacks"},
    "singular_values_without_tracebacks": {"name": "singular_values_without_tracebacks"},
    "random_bits_without_tracebacks": {"name": "random_bits_without_tracebacks"},
    "typed_key_without_tracebacks": {"name": "typed_key_without_tracebacks"},
    "top_k_without_tracebacks": {"name": "top_k_without_tracebacks"},
    "special_function_without_tracebacks": {"name": "special_function_without_tracebacks"},
    "two_platforms_without_tracebacks": {"name": "two_platforms_without_tracebacks"},
    "narrow_types_without_tracebacks": {"name": "narrow_types_without_tracebacks"},
}
"""The exports of each program: with the defaults of JAX, and without tracebacks."""


LAPACK_SET_UP_AT_TRACING = deviation(
    "jax<0.10",
    params=[
        "cholesky",
        "cholesky_without_tracebacks",
        "solve",
        "solve_without_tracebacks",
        "eigenvalues",
        "eigenvalues_without_tracebacks",
        "singular_values",
        "singular_values_without_tracebacks",
    ],
    outcome="ok",
    match="crashed|NOT_FOUND|kernels missing",
    reason="LAPACK was set up where a program is traced, not where an export is loaded",
    issue="jax-ml/jax#29610",
)


@probe(
    source="jax-ml/jax#21976",
    devices=4,
    platforms=("cpu",),
    params=EXPORTS,
    deviations=[LAPACK_SET_UP_AT_TRACING],
)
def promised(env, name):
    """Exports of the last six months, and of the next three weeks, are right.

    Up to 0.9.2 an export that calls LAPACK crashes a process that has traced no such program
    itself: call a function of `jnp.linalg` under `jit` first. The 0.6 releases also lack kernels
    that 0.5.0 wrote.
    """
    releases = list_writers(env.cell.release, promised=True)
    expected = {r: "not exported" if was_refused(name, r) else "right" for r in releases}
    return Observed(collect_outcomes(name, releases), reference=expected)


@probe(
    source="jax-ml/jax#39494",
    records="JAX promises nothing for exports older or newer than these",
    devices=4,
    platforms=("cpu",),
    xla_flags=["--xla_backend_optimization_level=0"],
    params=EXPORTS,
)
def beyond(env, name):
    """Older and newer exports are right, wrong or refused, or they crash the process."""
    return collect_outcomes(name, list_writers(env.cell.release, promised=False))
