"""What one release exported, loaded by another: every pair, program by program.

JAX promises that what `jax.export` wrote can be loaded for six months by newer releases, and for
three weeks by older ones. `promised` holds it to that: all must give what the program means.
`beyond` has no reference, as nothing is promised there: it records what happens, which is what
somebody with an old file wants to know. What each release exported lies in `_exports/`: as it does
by default, and `_without_tracebacks`, with `jax_traceback_in_locations_limit` 0.
"""

from __future__ import annotations

from conformance.kit import Observed, deviation, probe

from ._loading import outcomes, was_refused, writers


@probe(
    source="jax-ml/jax#21976",
    devices=4,
    platforms=("cpu",),
    params={
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
    },
    deviations=[
        deviation(
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
            reason="what LAPACK needs was set up where a program is traced, not where it is loaded",
            issue="jax-ml/jax#29610",
        )
    ],
)
def promised(env, name):
    """Exports of the last six months, and of the next three weeks, are right.

    Up to 0.9.2 one that calls LAPACK ends a process that has traced no such program itself: call a
    function of `jnp.linalg` under `jit` before. Releases 0.6 also lack kernels that 0.5.0 wrote.
    """
    among = writers(env.cell.release, promised=True)
    wanted = {one: "not exported" if was_refused(name, one) else "right" for one in among}
    return Observed(outcomes(name, among), reference=wanted)


@probe(
    source="jax-ml/jax#39494",
    records="no release promises to read what newer ones write",
    devices=4,
    platforms=("cpu",),
    xla_flags=["--xla_backend_optimization_level=0"],
    params={
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
    },
)
def beyond(env, name):
    """Older and newer exports than that: right, wrong, refused, or the end of the process."""
    return outcomes(name, writers(env.cell.release, promised=False))
