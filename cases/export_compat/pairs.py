"""What one release exported, loaded by another: every pair, program by program.

JAX promises that what `jax.export` wrote can be loaded for six months by newer releases, and for
three weeks by older ones. `promised` holds it to that: all must give what the program means.
`beyond` has no reference, as nothing is promised there: it records what happens, which is what
somebody with an old file wants to know. What each release exported lies in `_exports/`.
"""

from __future__ import annotations

from conformance.kit import Observed, probe

from ._loading import outcomes, writers


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
    },
)
def promised(env, name):
    """Exports of the last six months, and of the next three weeks, are right."""
    found = outcomes(name, writers(env.cell.release, promised=True))
    return Observed(found, reference=dict.fromkeys(found, "right"))


@probe(
    source="jax-ml/jax#39494",
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
    },
)
def beyond(env, name):
    """Older and newer exports than that: right, wrong, refused, or the end of the process."""
    return outcomes(name, writers(env.cell.release, promised=False))
