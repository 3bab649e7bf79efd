"""A compiled function keeps the properties of its lowering, and refuses calls that differ.

`jit(f)` adapts to each call; `jit(f).lower(*args).compile()` is fixed: to shapes, dtypes,
shardings, devices, static arguments, donation. A call that differs must be refused, because the
executable would read the buffers wrongly. A call that agrees must do all that jit does, including
donation.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program
from conformance.kit.endings import refusal

from ._helpers import classify_outcome, format_shards


def _affine(x, y):
    return 2.0 * x + y


@program(source="jax-ml/jax#7997", devices=4)
def sharded_call(env):
    """Compilation ahead of time keeps in_shardings and out_shardings, and the values."""
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
    """A compiled function reports the shardings of its lowering, and its results have them."""
    mesh = env.mesh((2, 2), ("a", "b"))
    rows, columns = NamedSharding(mesh, P("a", None)), NamedSharding(mesh, P(None, "b"))
    x = jax.device_put(np.arange(24, dtype=np.float32).reshape(4, 6), rows)
    compiled = jax.jit(lambda z: z + 1, out_shardings=columns).lower(x).compile()
    (input_sharding,) = jax.tree_util.tree_leaves(compiled.input_shardings)
    observed = {
        "input_kept": input_sharding.is_equivalent_to(rows, 2),
        "output_kept": compiled.output_shardings.is_equivalent_to(columns, 2),
        "result": format_shards(compiled(x)),
    }
    result = "0:(4, 3) 1:(4, 3) 2:(4, 3) 3:(4, 3)"
    return Observed(observed, {"input_kept": True, "output_kept": True, "result": result})


@probe(source="jax-ml/jax#8561")
def donation(env):
    """A call deletes a donated argument, with jit as well as compiled ahead of time.

    The argument comes from a jitted function, not from NumPy: a buffer that aliases NumPy's memory
    cannot be donated.
    """
    make = jax.jit(lambda: (jnp.arange(1024.0), jnp.ones(1024)))

    def call_donated(aot):
        # a new function for each, so that they cannot share an executable
        fn = jax.jit(lambda x, y: 2.0 * x + y, donate_argnums=0)
        x, y = make()
        lowered = fn.lower(x, y)
        donated = [bool(a.donated) for a in jax.tree_util.tree_leaves(lowered.args_info)]
        result = (lowered.compile() if aot else fn)(x, y)
        return {"told": donated, "deleted": [x.is_deleted(), y.is_deleted()], "result": result}

    first = {"told": [True, False], "deleted": [True, False]}
    expected = {**first, "result": 2.0 * np.arange(1024.0) + 1.0}
    return Observed(
        {"jit": call_donated(aot=False), "aot": call_donated(aot=True)},
        {"jit": expected, "aot": expected},
    )


@probe(source="jax-ml/jax#7997")
def static_arguments(env):
    """Static arguments are baked in: the compiled function is called without them.

    If passed all the same, they are refused: the function cannot check that they are unchanged.
    """
    x = np.arange(4, dtype=np.float32)
    compiled = jax.jit(lambda z, n: z**n, static_argnums=1).lower(x, 3).compile()
    observed = {"without": compiled(x), "with": classify_outcome(lambda: compiled(x, 3))}
    return Observed(observed, {"without": x.astype(np.float64) ** 3, "with": "TypeError"})


@probe(source="jax-ml/jax#18686")
def refuses(env):
    """A call with another shape, dtype, structure or number of arguments is a TypeError.

    An argument that the function does not use is dropped from the executable, but still checked,
    because its shape may have steered the trace. jax#18686 found that it was not checked.
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
    observed = {
        like: classify_outcome(lambda args=args: compiled(*args)) for like, args in calls.items()
    }
    return Observed(observed, {**dict.fromkeys(calls, "TypeError"), "same": "ok"})


@probe(source="jax-ml/jax#18686", devices=4)
def other_shardings(env):
    """A committed array with another sharding is refused; a NumPy array is placed as required."""
    mesh = env.mesh(4, "x")
    replicated, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("x"))
    x = np.arange(8, dtype=np.float32)
    compiled = jax.jit(lambda y: y + 1).lower(jax.device_put(x, replicated)).compile()
    observed = {
        "committed_elsewhere": classify_outcome(lambda: compiled(jax.device_put(x, rows))),
        "uncommitted": classify_outcome(lambda: compiled(x)),
        "equivalent": classify_outcome(
            lambda: compiled(jax.device_put(x, NamedSharding(mesh, P(None))))
        ),
    }
    return Observed(
        observed, {"committed_elsewhere": "ValueError", "uncommitted": "ok", "equivalent": "ok"}
    )


COMMITTED_ARRAY_MOVED = deviation(
    "jax<0.4.33",
    outcome="ok",
    match="elsewhere",
    reason="an array committed to another single device was accepted, and moved silently",
)


@probe(source="jax-ml/jax#7997", devices=4, deviations=[COMMITTED_ARRAY_MOVED])
def explicit_device(env):
    """A function compiled for a device from shapes alone runs there and nowhere else.

    A NumPy array is placed on that device. An array committed to another device is refused, like an
    array with another sharding; on 0.4.30 and 0.4.31 it was moved silently.
    """
    second, third = env.devices[1:3]
    shape = jax.ShapeDtypeStruct((4,), np.float32, sharding=SingleDeviceSharding(third))
    compiled = jax.jit(lambda x: x + 1).lower(shape).compile()
    x = np.zeros(4, np.float32)
    result = compiled(x)
    observed = {
        "devices": sorted(d.id for d in result.devices()),
        "value": result,
        "elsewhere": classify_outcome(lambda: compiled(jax.device_put(x, second))),
    }
    expected = {"devices": [2], "value": np.ones(4), "elsewhere": "ValueError"}
    return Observed(observed, expected)


@probe(source="jax-ml/jax#8850")
def no_transformation(env):
    """A compiled function is machine code: differentiating, batching or staging it must raise."""
    x = np.arange(4, dtype=np.float32)
    compiled = jax.jit(jnp.sin).lower(x[0]).compile()
    observed = {
        "grad": classify_outcome(lambda: jax.grad(compiled)(x[0])),
        "vmap": classify_outcome(lambda: jax.vmap(compiled)(x)),
        "jit": classify_outcome(lambda: jax.jit(compiled)(x[0])),
    }
    return Observed(observed, dict.fromkeys(observed, "TypeError"))


@probe(source="jax-ml/jax#8241")
def keyword_arguments(env):
    """The keywords of a call are part of its structure, their order is not.

    Unused keyword arguments may be dropped.
    """
    x, y = np.float32(3), np.float32(2)
    compiled = jax.jit(lambda *, a, b, _c: a - b).lower(a=x, b=y, _c=x).compile()
    observed = {
        "reordered": compiled(_c=y, b=y, a=x),
        "positional": classify_outcome(lambda: compiled(x, y, x)),
    }
    return Observed(observed, {"reordered": np.float64(1), "positional": "TypeError"})


UNUSED_ARGUMENT_COUNTS = deviation(
    "jax<0.4.34",
    params=["dropped"],
    outcome="ok",
    reason="the device of an argument that the function does not use counted, too",
    issue="jax-ml/jax@3d1d5e94ab32",
)


@probe(
    source="jax-ml/jax@3d1d5e94ab32",
    devices=2,
    params={"dropped": {"keep": False}, "kept": {"keep": True}},
    deviations=[UNUSED_ARGUMENT_COUNTS],
)
def unused_argument_elsewhere(env, keep):
    """An argument that the function does not use may be committed to another device.

    With `keep_unused=True` it is an argument of the program, whose devices must agree.
    """
    here, there = (jax.device_put(np.float32(1), device) for device in env.devices)
    add = jax.jit(lambda x, _: x + 1, keep_unused=keep)
    observed = refusal(lambda: add(here, there), "incompatible devices")
    return Observed(observed, "ValueError: incompatible devices" if keep else "ran")
