"""A compiled function keeps what it was lowered for, and refuses what it was not.

`jit(f)` adapts to each call; `jit(f).lower(*args).compile()` is fixed: to shapes, dtypes,
shardings, devices, static arguments, donation. A call that differs must be refused, since the
executable would read the buffers wrongly; a call that agrees must do all that jit does, donate
included.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program

from ._helpers import outcome, tiles


def _affine(x, y):
    return 2.0 * x + y


@program(source="jax-ml/jax#7997", devices=4)
def sharded_call(env):
    """in_shardings and out_shardings survive ahead-of-time compilation, and so do the values."""
    mesh = env.mesh((2, 2), ("a", "b"))
    rows, columns = NamedSharding(mesh, P("a", None)), NamedSharding(mesh, P(None, "b"))
    x, y = env.rng().standard_normal((2, 4, 6)).astype(np.float32)
    return Program(
        _affine,
        args=(env.put(x, rows), env.put(y, columns)),
        jit={"in_shardings": (rows, columns), "out_shardings": columns},
        reference=_affine,
    )


@probe(source="jax-ml/jax#7997", devices=4)
def shardings_are_told(env):
    """A compiled function reports the shardings it was given, and its results have them."""
    mesh = env.mesh((2, 2), ("a", "b"))
    rows, columns = NamedSharding(mesh, P("a", None)), NamedSharding(mesh, P(None, "b"))
    x = jax.device_put(np.arange(24, dtype=np.float32).reshape(4, 6), rows)
    compiled = jax.jit(lambda z: z + 1, out_shardings=columns).lower(x).compile()
    (given,) = jax.tree_util.tree_leaves(compiled.input_shardings)
    seen = {
        "input_kept": given.is_equivalent_to(rows, 2),
        "output_kept": compiled.output_shardings.is_equivalent_to(columns, 2),
        "result": tiles(compiled(x)),
    }
    result = "0:(4, 3) 1:(4, 3) 2:(4, 3) 3:(4, 3)"
    return Observed(seen, {"input_kept": True, "output_kept": True, "result": result})


@probe(source="jax-ml/jax#8561")
def donation(env):
    """A donated argument is gone after the call, whether called or compiled ahead of time.

    The argument comes from a jitted function, not from NumPy: a buffer that aliases NumPy's
    memory cannot be donated.
    """
    made = jax.jit(lambda: (jnp.arange(1024.0), jnp.ones(1024)))

    def called(aot):
        # a function of its own for each, so that neither is given what the other compiled
        fn = jax.jit(lambda x, y: 2.0 * x + y, donate_argnums=0)
        x, y = made()
        lowered = fn.lower(x, y)
        told = [bool(a.donated) for a in jax.tree_util.tree_leaves(lowered.args_info)]
        result = (lowered.compile() if aot else fn)(x, y)
        return {"told": told, "deleted": [x.is_deleted(), y.is_deleted()], "result": result}

    first = {"told": [True, False], "deleted": [True, False]}
    expected = {**first, "result": 2.0 * np.arange(1024.0) + 1.0}
    return Observed(
        {"jit": called(aot=False), "aot": called(aot=True)}, {"jit": expected, "aot": expected}
    )


@probe(source="jax-ml/jax#7997")
def static_arguments(env):
    """Static arguments are baked in: the compiled function is called without them.

    Given all the same, they are refused: there is no way to see that they are the old ones.
    """
    x = np.arange(4, dtype=np.float32)
    compiled = jax.jit(lambda z, n: z**n, static_argnums=1).lower(x, 3).compile()
    seen = {"without": compiled(x), "with": outcome(lambda: compiled(x, 3))}
    return Observed(seen, {"without": x.astype(np.float64) ** 3, "with": "TypeError"})


@probe(source="jax-ml/jax#18686")
def refuses(env):
    """A call unlike the lowering is a TypeError: another shape, dtype, structure, or count.

    An argument that the function does not use is dropped from the executable, but still checked:
    jax#18686 found it was not. Its shape may have steered the trace.
    """
    four, five = np.ones(4, np.float32), np.ones(5, np.float32)
    calls = {
        "shape": ({"x": five}, four),
        "dtype": ({"x": np.ones(4, np.int32)}, four),
        "tree": ({"z": four}, four),
        "missing": ({"x": four},),
        "unused_shape": ({"x": four}, five),
        "same": ({"x": four}, four),
    }
    compiled = jax.jit(lambda d, _: d["x"] + 1.0).lower({"x": four}, four).compile()
    seen = {like: outcome(lambda args=args: compiled(*args)) for like, args in calls.items()}
    return Observed(seen, {**dict.fromkeys(calls, "TypeError"), "same": "ok"})


@probe(source="jax-ml/jax#18686", devices=4)
def other_shardings(env):
    """A committed array with another sharding is refused; NumPy is placed as compiled for."""
    mesh = env.mesh(4, "x")
    replicated, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("x"))
    x = np.arange(8, dtype=np.float32)
    compiled = jax.jit(lambda y: y + 1).lower(jax.device_put(x, replicated)).compile()
    seen = {
        "committed_elsewhere": outcome(lambda: compiled(jax.device_put(x, rows))),
        "uncommitted": outcome(lambda: compiled(x)),
        "equivalent": outcome(lambda: compiled(jax.device_put(x, NamedSharding(mesh, P(None))))),
    }
    return Observed(
        seen, {"committed_elsewhere": "ValueError", "uncommitted": "ok", "equivalent": "ok"}
    )


@probe(
    source="jax-ml/jax#7997",
    devices=4,
    deviations=[
        deviation(
            "jax<0.4.33",
            outcome="ok",
            match="elsewhere",
            reason="an array committed to another single device was accepted, and moved silently",
        )
    ],
)
def explicit_device(env):
    """Compiled for a named device from shapes alone, it runs there and nowhere else.

    NumPy is placed on the device compiled for. An array committed to another device is refused,
    as one with another sharding is; on 0.4.30 and 0.4.31 it was moved without a word.
    """
    second, third = env.devices[1:3]
    shape = jax.ShapeDtypeStruct((4,), np.float32, sharding=SingleDeviceSharding(third))
    compiled = jax.jit(lambda x: x + 1).lower(shape).compile()
    x = np.zeros(4, np.float32)
    result = compiled(x)
    seen = {
        "devices": sorted(d.id for d in result.devices()),
        "value": result,
        "elsewhere": outcome(lambda: compiled(jax.device_put(x, second))),
    }
    expected = {"devices": [2], "value": np.ones(4), "elsewhere": "ValueError"}
    return Observed(seen, expected)


@probe(source="jax-ml/jax#8850")
def no_transformation(env):
    """A compiled function is machine code: differentiating, batching or staging it must raise."""
    x = np.arange(4, dtype=np.float32)
    compiled = jax.jit(jnp.sin).lower(x[0]).compile()
    seen = {
        "grad": outcome(lambda: jax.grad(compiled)(x[0])),
        "vmap": outcome(lambda: jax.vmap(compiled)(x)),
        "jit": outcome(lambda: jax.jit(compiled)(x[0])),
    }
    return Observed(seen, dict.fromkeys(seen, "TypeError"))


@probe(source="jax-ml/jax#8241")
def keyword_arguments(env):
    """Keywords are part of the call's structure, their order is not; unused ones may be dropped."""
    x, y = np.float32(3), np.float32(2)
    compiled = jax.jit(lambda *, a, b, _c: a - b).lower(a=x, b=y, _c=x).compile()
    seen = {
        "reordered": compiled(_c=y, b=y, a=x),
        "positional": outcome(lambda: compiled(x, y, x)),
    }
    return Observed(seen, {"reordered": np.float64(1), "positional": "TypeError"})
