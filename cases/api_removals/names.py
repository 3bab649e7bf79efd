"""Names that moved or went: what code that uses them meets, release by release.

A module that is not there is a `ModuleNotFoundError`, a name within one an `AttributeError`, often
with a hint for a release or two and without one later. Most things that went have a successor
under another name; the cases run both.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, deviation, probe

from ._helpers import ROWS, found, quiet


@probe(
    source="jax-ml/jax#27446",
    platforms=("cpu",),
    params={"old": {"where": "jax.core"}, "new": {"where": "jax.extend.core"}},
    deviations=[
        deviation(
            "jax>=0.6",
            params=("old",),
            error="AttributeError",
            match="jax.core.*(Primitive|ClosedJaxpr|jaxpr_as_fun)",
            reason="it is in jax.extend.core, deprecated here since 0.4.38",
            issue="jax-ml/jax#27446",
        )
    ],
)
def primitive_of_ones_own(env, where):
    """A user's primitive and a jaxpr put together by hand: `jax.core` up to 0.5.3, then extend.

    `jax.extend.core` has `Primitive` and `jaxpr_as_fun` on every release since 0.4.30.
    """
    doubled = found(f"{where}:Primitive")("doubled")
    doubled.def_impl(lambda x: 2 * x)
    doubled.def_abstract_eval(lambda x: x)
    jaxpr = jax.make_jaxpr(lambda x: doubled.bind(x) + 1)(ROWS)
    (value,) = found(f"{where}:jaxpr_as_fun")(jaxpr)(jnp.asarray(ROWS))
    return Observed(value, 2.0 * ROWS.astype(np.float64) + 1)


TREES = {
    "tree_map": (lambda f: f(lambda x: 2 * x, {"a": 1}), {"a": 2}),
    "tree_leaves": (lambda f: f({"b": 2, "a": 1}), [1, 2]),
    "tree_flatten": (lambda f: f([3, None])[0], [3]),
    "tree_structure": (lambda f: f((1, 2)).num_leaves, 2),
}


@probe(
    source="jax-ml/jax@236275ebe1de",
    platforms=("cpu",),
    params={
        "tree_map": {"name": "tree_map"},
        "tree_leaves": {"name": "tree_leaves"},
        "tree_flatten": {"name": "tree_flatten"},
        "tree_structure": {"name": "tree_structure"},
        "in_jax_tree": {"name": "tree_map", "new": True},
    },
    deviations=[
        deviation(
            "jax>=0.6",
            params=("tree_map", "tree_leaves", "tree_flatten", "tree_structure"),
            error="AttributeError",
            match="jax.* (no attribute 'tree_|tree_.* is deprecated|tree_.*removed)|jax.tree_",
            reason="they are in jax.tree and jax.tree_util",
            issue="jax-ml/jax@91a07ea2e891",
        )
    ],
)
def tree_functions(env, name, new=False):
    """`jax.tree_map` and its kin at top level: gone with 0.6.0; `jax.tree.map` works everywhere."""
    call, expected = TREES[name]
    function = found(f"jax.tree:{name.removeprefix('tree_')}" if new else f"jax:{name}")
    return Observed(call(function), expected)


@probe(
    source="jax-ml/jax@7de56b9ca3f7",
    devices=4,
    platforms=("cpu",),
    params={
        "sharded": {"name": "device_put_sharded"},
        "replicated": {"name": "device_put_replicated"},
        "device_put": {"name": "device_put"},
    },
    deviations=[
        deviation(
            "jax>=0.10",
            params=("sharded", "replicated"),
            error="AttributeError",
            match="device_put_",
            reason="gone, with pmap's own sharding",
            issue="jax-ml/jax@7de56b9ca3f7",
        )
    ],
)
def data_for_each_device(env, name):
    """`device_put_sharded` and `device_put_replicated` are gone with 0.10.0.

    What they made is an array with a leading axis over devices: stack, and `device_put` it with a
    NamedSharding of a mesh over them.
    """
    devices, rows = env.devices[:4], [ROWS + k for k in range(4)]
    if name == "device_put":
        spec = jax.sharding.PartitionSpec("x")
        placed = jax.sharding.NamedSharding(env.mesh(4, "x"), spec)
        value = jax.device_put(np.stack(rows), placed)
    else:
        value = found(f"jax:{name}")(rows if name == "device_put_sharded" else ROWS, devices)
    shift = 0 if name == "device_put_replicated" else 1
    return Observed(np.asarray(value), ROWS + shift * np.arange(4, dtype=np.float32)[:, None])


@probe(
    source="jax-ml/jax@de9b98e0a8fb",
    platforms=("cpu",),
    params={"xla_computation": {"old": True}, "lowered": {"old": False}},
    deviations=[
        deviation(
            "jax>=0.4.34",
            params=("xla_computation",),
            error="AttributeError",
            match="xla_computation",
            reason="removed after three months of warning",
            issue="jax-ml/jax@de9b98e0a8fb",
        )
    ],
)
def hlo_of_a_function(env, old):
    """`jax.xla_computation(f)(x).as_hlo_text()` went with 0.4.34.

    `jit(f).lower(x).compiler_ir("hlo")` gives the same object on every release.
    """
    if old:
        computation = found("jax:xla_computation")(jnp.sin)(ROWS)
    else:
        computation = jax.jit(jnp.sin).lower(ROWS).compiler_ir("hlo")
    text = computation.as_hlo_text()
    return Observed({"sines": text.count(" sine(")}, {"sines": 1})


@probe(
    source="jax-ml/jax@cb4d97aa1f79",
    platforms=("cpu",),
    params={
        "extend": {"module": "jax.extend.ffi"},
        "ffi": {"module": "jax.ffi"},
    },
    deviations=[
        deviation(
            "jax>=0.7,<0.8",
            params=("extend",),
            error="AttributeError",
            match="jax.extend.ffi",
            reason="the module was emptied",
            issue="jax-ml/jax@cdf79a31683d",
        ),
        deviation(
            "jax>=0.8",
            params=("extend",),
            error="ModuleNotFoundError",
            match="jax.extend.ffi",
            reason="the module is gone",
            issue="jax-ml/jax@9123e6ab7647",
        ),
        deviation(
            "jax<0.5",
            params=("ffi",),
            error="ModuleNotFoundError",
            match="jax.ffi",
            reason="it was jax.extend.ffi",
            issue="jax-ml/jax@cb4d97aa1f79",
        ),
    ],
)
def address_of_a_foreign_function(env, module):
    """A foreign function as the FFI takes it: `jax.extend.ffi.pycapsule`, `jax.ffi` from 0.5.0."""
    import ctypes  # noqa: PLC0415 - for this case alone

    c_abs = ctypes.CDLL(None).abs
    capsule = found(f"{module}:pycapsule")(c_abs)
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    same = address(capsule, None) == ctypes.cast(c_abs, ctypes.c_void_p).value
    return Observed(
        {"type": type(capsule).__name__, "same": same}, {"type": "PyCapsule", "same": True}
    )


@probe(
    source="jax-ml/jax@92f5dcba89bb",
    platforms=("cpu",),
    params={
        "jax_errors": {"path": "jax.errors:JaxRuntimeError"},
        "xla_client": {"path": "jax.lib:xla_client.XlaRuntimeError"},
        "xla_extension": {"path": "jax.lib:xla_extension.XlaRuntimeError"},
        "runtime_error": {"path": "builtins:RuntimeError"},
    },
    deviations=[
        deviation(
            "jax<0.4.34",
            params=("jax_errors",),
            error="AttributeError",
            match="JaxRuntimeError",
            reason="the public name came with 0.4.34",
            issue="jax-ml/jax@7b53c2f39d4b",
        ),
        deviation(
            "jax>=0.4.34,<0.8",
            params=("jax_errors",),
            outcome="ok",
            reason="it calls itself by its older name",
            issue="jax-ml/jax@92f5dcba89bb",
        ),
        deviation(
            "jax<0.8",
            params=("runtime_error",),
            outcome="ok",
            reason="it calls itself by its older name",
            issue="jax-ml/jax@92f5dcba89bb",
        ),
        deviation(
            "jax<0.5",
            params=("xla_client",),
            outcome="ok",
            reason="it calls itself by its older name",
            issue="jax-ml/jax@92f5dcba89bb",
        ),
        deviation(
            "jax>=0.5",
            params=("xla_client",),
            error="AttributeError",
            match="xla_client",
            reason="removed; the public name is in jax.errors",
            issue="jax-ml/jax@40fe4b8797cb",
        ),
        deviation(
            "jax<0.6",
            params=("xla_extension",),
            outcome="ok",
            reason="it calls itself by its older name",
            issue="jax-ml/jax@92f5dcba89bb",
        ),
        deviation(
            "jax>=0.6",
            params=("xla_extension",),
            error="AttributeError",
            match="xla_extension",
            reason="removed; the public name is in jax.errors",
            issue="jax-ml/jax@9932ff1f79e3",
        ),
    ],
)
def error_of_the_runtime(env, path):
    """Four names to catch an error of the runtime by; a plain RuntimeError is good on all.

    The class calls itself XlaRuntimeError up to 0.7.2 and JaxRuntimeError from 0.8.0.
    """
    caught = found(path)

    def fails(_):
        raise KeyError("on the host")

    call = jax.jit(lambda x: jax.pure_callback(fails, x, x))
    try:
        call(jnp.asarray(ROWS)).block_until_ready()
    except caught as error:
        return Observed({"called": type(error).__name__}, {"called": "JaxRuntimeError"})
    return Observed({"called": ""}, {"called": "JaxRuntimeError"})


@probe(
    source="jax-ml/jax@e3a9b55616ca",
    platforms=("cpu",),
    params={
        "experimental": {"path": "jax.experimental:enable_x64"},
        "jax": {"path": "jax:enable_x64"},
        "flag": {"path": "jax.config:jax_enable_x64"},
    },
    deviations=[
        deviation(
            "jax>=0.9",
            params=("experimental",),
            error="AttributeError|ImportError",
            match="enable_x64",
            reason="it is jax.enable_x64",
            issue="jax-ml/jax@aac5985b25b0",
        ),
        deviation(
            "jax<0.8",
            params=("jax",),
            error="AttributeError",
            match="enable_x64",
            reason="it was in jax.experimental",
            issue="jax-ml/jax@e3a9b55616ca",
        ),
    ],
)
def context_of_64_bits(env, path):
    """`with enable_x64():` lives in jax.experimental up to 0.8.3, and in jax from 0.8.0 on."""
    if path.startswith("jax.config"):
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", True)
        inside = jnp.float64(1) / 3
        jax.config.update("jax_enable_x64", before)
    else:
        with quiet(), found(path)(True):
            inside = jnp.float64(1) / 3
    return Observed({"inside": float(inside)}, {"inside": 1 / 3})
