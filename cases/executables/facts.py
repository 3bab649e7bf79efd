"""Facts of compiled programs that are no text of HLO: costs, memory, layouts, shardings."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, probe

defaults(platforms=("cpu",))


def matrix(size=16):
    """Return a square of ones."""
    return np.ones((size, size), np.float32)


FLOPS = {
    "matmul": (lambda a: a @ a, 2 * 16**3),
    "batched_matmul": (lambda a: jnp.einsum("bi,bij->bj", a, a[:, :, None] * a[:, None]), None),
    "matvec": (lambda a: a @ a[0], 2 * 16**2),
    "add": (lambda a: a + a, 16**2),
    "sum": (lambda a: a.sum(), 16**2 - 1),
    "transpose": (lambda a: a.T, 0),
    "grad_of_matmul": (jax.grad(lambda a: (a @ a).sum()), None),
    "scan": (lambda a: lax.scan(lambda c, _: (c @ a, None), a, None, length=4)[0], None),
    "exp": (jnp.exp, None),
}


def _cost(compiled):
    cost = compiled.cost_analysis()
    return cost[0] if isinstance(cost, list) else cost


@probe(
    source="jax-ml/jax#12204",
    records="the compiler's own estimate; it follows its rewrites",
)
def flops(env):
    """XLA's count of operations and transcendentals of the compiled program."""
    result = {}
    for name, (f, _) in FLOPS.items():
        cost = _cost(jax.jit(f).lower(matrix()).compile())
        result[name] = [cost.get("flops", 0), cost.get("transcendentals", 0)]
    return result


MEMORY = {
    "two_arguments": (lambda a, b: (a + b, a.sum()), {}, (2048, 1044, 0)),
    "unused_argument": (lambda a, _: a + 1, {}, (1024, 1024, 0)),
    "donated": (lambda a, b: a + b, {"donate_argnums": 0}, (2048, 1024, 1024)),
    "donated_twice": (lambda a, b: (a + 1, b * 2), {"donate_argnums": (0, 1)}, (2048, 2064, 2048)),
    "forwarded": (lambda a, b: (a, b + 1), {}, (2048, 2064, 0)),
}


def _memory(compiled):
    stats = compiled.memory_analysis()
    return [getattr(stats, f"{name}_size_in_bytes") for name in ("argument", "output", "alias")]


@probe(source="jax-ml/jax#12204", params=[*MEMORY])
def memory(env, name):
    """Bytes of arguments, results and aliases of a compiled program are as counted by hand.

    Two results take 16 bytes more, for the pointers of a tuple.
    """
    f, keywords, exact = MEMORY[name]
    compiled = jax.jit(f, **keywords).lower(matrix(), matrix()).compile()
    found = _memory(compiled)
    return Observed(found, reference=list(exact))


@probe(source="jax-ml/jax#12204", devices=4)
def memory_of_a_shard(env):
    """Sizes are those of one device: a quarter of a sharded argument, all of a replicated one."""
    mesh = env.mesh(4, "x")
    rows, whole = (jax.device_put(matrix(), NamedSharding(mesh, spec)) for spec in (P("x"), P()))
    compiled = jax.jit(lambda a, b: a + b, out_shardings=rows.sharding).lower(rows, whole).compile()
    return Observed(_memory(compiled), reference=[256 + 1024, 256, 0])


SPECS = {
    "rows": (lambda x: x * 2, P("x")),
    "transposed": (lambda x: x.T, P("x", "y")),
    "summed": (lambda x: x.sum(0), P("x", "y")),
    "product": (lambda x: x @ x.T, P("x", None)),
    "reshaped": (lambda x: x.reshape(-1), P("x", None)),
    "sorted": (lambda x: jnp.sort(x, axis=1), P("x", None)),
    "constant": (jnp.zeros_like, P("x", "y")),
}


@probe(
    source="jax-ml/jax#7997",
    devices=4,
    records="the compiler chooses the sharding of a result",
)
def output_shardings(env):
    """The shardings that the compiler chooses for results, of arguments on a 2 x 2 mesh."""
    mesh = env.mesh((2, 2), ("x", "y"))
    result = {}
    for name, (f, spec) in SPECS.items():
        x = jax.ShapeDtypeStruct((8, 8), np.float32, sharding=NamedSharding(mesh, spec))
        compiled = jax.jit(f).lower(x).compile()
        out = compiled.output_shardings
        rank = len(jax.eval_shape(f, x).shape)
        shape = (8, 8)[:rank] if name != "reshaped" else (64,)
        result[name] = list(out.shard_shape(shape))
    return result


@probe(source="jax-ml/jax#7997", devices=4)
def input_shardings(env):
    """`input_shardings` has the tree of the arguments, positional and by keyword."""
    mesh = env.mesh(4, "x")
    rows = NamedSharding(mesh, P("x"))
    x = jax.ShapeDtypeStruct((8,), np.float32, sharding=rows)
    compiled = (
        jax.jit(lambda t, *, scale: t["a"] * scale + t["b"][0])
        .lower({"a": x, "b": [x]}, scale=np.float32(2))
        .compile()
    )
    positional, keywords = compiled.input_shardings
    result = {
        "a": positional[0]["a"].is_equivalent_to(rows, 1),
        "b": positional[0]["b"][0].is_equivalent_to(rows, 1),
        "scale": keywords["scale"].is_fully_replicated,
        "devices": len(keywords["scale"].device_set),
    }
    return Observed(result, reference={"a": True, "b": True, "scale": True, "devices": 4})
