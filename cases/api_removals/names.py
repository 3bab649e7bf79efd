"""Names that were moved or removed: the errors on each release for code that uses them.

A missing module is a `ModuleNotFoundError`, a missing name in a module an `AttributeError`, often
with a hint for a release or two and without one later. Most removed APIs have a successor under
another name; the cases run both.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import ROWS, ignore_warnings, resolve_without_warnings

defaults(platforms=("cpu",))


CORE_NAMES_REMOVED = deviation(
    "jax>=0.6",
    params=("old",),
    error="AttributeError",
    match="jax.core.*(Primitive|ClosedJaxpr|jaxpr_as_fun)",
    reason="removed in favour of jax.extend.core, deprecated in jax.core since 0.4.38",
    issue="jax-ml/jax#27446",
)


@probe(
    source="jax-ml/jax#27446",
    params={"old": {"where": "jax.core"}, "new": {"where": "jax.extend.core"}},
    deviations=[CORE_NAMES_REMOVED],
)
def primitive_of_ones_own(env, where):
    """`Primitive` and `jaxpr_as_fun` left `jax.core` with 0.6.0: use `jax.extend.core`.

    The case defines a primitive, and runs a jaxpr that contains it as a function. `jax.extend.core`
    has both names on every release since 0.4.30.
    """
    doubled = resolve_without_warnings(f"{where}:Primitive")("doubled")
    doubled.def_impl(lambda x: 2 * x)
    doubled.def_abstract_eval(lambda x: x)
    jaxpr = jax.make_jaxpr(lambda x: doubled.bind(x) + 1)(ROWS)
    (value,) = resolve_without_warnings(f"{where}:jaxpr_as_fun")(jaxpr)(jnp.asarray(ROWS))
    return Observed(value, 2.0 * ROWS.astype(np.float64) + 1)


TREES = {
    "tree_map": (lambda f: f(lambda x: 2 * x, {"a": 1}), {"a": 2}),
    "tree_leaves": (lambda f: f({"b": 2, "a": 1}), [1, 2]),
    "tree_flatten": (lambda f: f([3, None])[0], [3]),
    "tree_structure": (lambda f: f((1, 2)).num_leaves, 2),
}


TREE_FUNCTIONS_REMOVED = deviation(
    "jax>=0.6",
    params=("tree_map", "tree_leaves", "tree_flatten", "tree_structure"),
    error="AttributeError",
    match="jax.* (no attribute 'tree_|tree_.* is deprecated|tree_.*removed)|jax.tree_",
    reason="removed in favour of jax.tree and jax.tree_util",
    issue="jax-ml/jax@91a07ea2e891",
)


@probe(
    source="jax-ml/jax@236275ebe1de",
    params={
        "tree_map": {"name": "tree_map"},
        "tree_leaves": {"name": "tree_leaves"},
        "tree_flatten": {"name": "tree_flatten"},
        "tree_structure": {"name": "tree_structure"},
        "in_jax_tree": {"name": "tree_map", "new": True},
    },
    deviations=[TREE_FUNCTIONS_REMOVED],
)
def tree_functions(env, name, new=False):
    """`jax.tree_map` and similar functions are removed in 0.6.0; use `jax.tree.map` everywhere."""
    call, expected = TREES[name]
    function = resolve_without_warnings(
        f"jax.tree:{name.removeprefix('tree_')}" if new else f"jax:{name}"
    )
    return Observed(call(function), expected)


DEVICE_PUT_VARIANTS_REMOVED = deviation(
    "jax>=0.10",
    params=("sharded", "replicated"),
    error="AttributeError",
    match="device_put_",
    reason="removed together with PmapSharding",
    issue="jax-ml/jax@7de56b9ca3f7",
)


@probe(
    source="jax-ml/jax@7de56b9ca3f7",
    devices=4,
    params={
        "sharded": {"name": "device_put_sharded"},
        "replicated": {"name": "device_put_replicated"},
        "device_put": {"name": "device_put"},
    },
    deviations=[DEVICE_PUT_VARIANTS_REMOVED],
)
def data_for_each_device(env, name):
    """`device_put_sharded` and `device_put_replicated` are removed in 0.10.0.

    They return an array with a leading axis over devices. Instead, stack the data, and `device_put`
    the stack with a NamedSharding of a mesh over these devices.
    """
    devices, rows = env.devices[:4], [ROWS + k for k in range(4)]
    if name == "device_put":
        spec = jax.sharding.PartitionSpec("x")
        placed = jax.sharding.NamedSharding(env.mesh(4, "x"), spec)
        value = jax.device_put(np.stack(rows), placed)
    else:
        value = resolve_without_warnings(f"jax:{name}")(
            rows if name == "device_put_sharded" else ROWS, devices
        )
    shift = 0 if name == "device_put_replicated" else 1
    return Observed(np.asarray(value), ROWS + shift * np.arange(4, dtype=np.float32)[:, None])


XLA_COMPUTATION_REMOVED = deviation(
    "jax>=0.4.34",
    params=("xla_computation",),
    error="AttributeError",
    match="xla_computation",
    reason="removed after three months of deprecation warnings",
    issue="jax-ml/jax@de9b98e0a8fb",
)


@probe(
    source="jax-ml/jax@de9b98e0a8fb",
    params={"xla_computation": {"old": True}, "lowered": {"old": False}},
    deviations=[XLA_COMPUTATION_REMOVED],
)
def hlo_of_a_function(env, old):
    """`jax.xla_computation(f)(x).as_hlo_text()` is removed in 0.4.34.

    `jit(f).lower(x).compiler_ir("hlo")` returns the same object on every release.
    """
    if old:
        computation = resolve_without_warnings("jax:xla_computation")(jnp.sin)(ROWS)
    else:
        computation = jax.jit(jnp.sin).lower(ROWS).compiler_ir("hlo")
    text = computation.as_hlo_text()
    return Observed({"sines": text.count(" sine(")}, {"sines": 1})


EXTEND_FFI_EMPTIED = deviation(
    "jax>=0.7,<0.8",
    params=("extend",),
    error="AttributeError",
    match="jax.extend.ffi",
    reason="the module jax.extend.ffi was emptied",
    issue="jax-ml/jax@cdf79a31683d",
)
EXTEND_FFI_REMOVED = deviation(
    "jax>=0.8",
    params=("extend",),
    error="ModuleNotFoundError",
    match="jax.extend.ffi",
    reason="the module jax.extend.ffi was removed",
    issue="jax-ml/jax@9123e6ab7647",
)
FFI_WAS_IN_EXTEND = deviation(
    "jax<0.5",
    params=("ffi",),
    error="ModuleNotFoundError",
    match="jax.ffi",
    reason="the module was jax.extend.ffi",
    issue="jax-ml/jax@cb4d97aa1f79",
)


@probe(
    source="jax-ml/jax@cb4d97aa1f79",
    params={
        "extend": {"module": "jax.extend.ffi"},
        "ffi": {"module": "jax.ffi"},
    },
    deviations=[EXTEND_FFI_EMPTIED, EXTEND_FFI_REMOVED, FFI_WAS_IN_EXTEND],
)
def address_of_a_foreign_function(env, module):
    """`pycapsule` wraps a function for the FFI: in `jax.extend.ffi`, from 0.5.0 in `jax.ffi`."""
    import ctypes  # noqa: PLC0415 - only this case needs it

    c_abs = ctypes.CDLL(None).abs
    capsule = resolve_without_warnings(f"{module}:pycapsule")(c_abs)
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    same = address(capsule, None) == ctypes.cast(c_abs, ctypes.c_void_p).value
    return Observed(
        {"type": type(capsule).__name__, "same": same}, {"type": "PyCapsule", "same": True}
    )


NO_PUBLIC_NAME_YET = deviation(
    "jax<0.4.34",
    params=("jax_errors",),
    error="AttributeError",
    match="JaxRuntimeError",
    reason="the public name was added in 0.4.34",
    issue="jax-ml/jax@7b53c2f39d4b",
)
OLDER_NAME_IN_ERRORS = deviation(
    "jax>=0.4.34,<0.8",
    params=("jax_errors",),
    outcome="ok",
    reason="the class was still named XlaRuntimeError",
    issue="jax-ml/jax@92f5dcba89bb",
)
OLDER_NAME_OF_RUNTIME_ERROR = deviation(
    "jax<0.8",
    params=("runtime_error",),
    outcome="ok",
    reason="the class was still named XlaRuntimeError",
    issue="jax-ml/jax@92f5dcba89bb",
)
OLDER_NAME_IN_CLIENT = deviation(
    "jax<0.5",
    params=("xla_client",),
    outcome="ok",
    reason="the class was still named XlaRuntimeError",
    issue="jax-ml/jax@92f5dcba89bb",
)
REMOVED_FROM_CLIENT = deviation(
    "jax>=0.5",
    params=("xla_client",),
    error="AttributeError",
    match="xla_client",
    reason="removed in favour of the public name in jax.errors",
    issue="jax-ml/jax@40fe4b8797cb",
)
OLDER_NAME_IN_EXTENSION = deviation(
    "jax<0.6",
    params=("xla_extension",),
    outcome="ok",
    reason="the class was still named XlaRuntimeError",
    issue="jax-ml/jax@92f5dcba89bb",
)
REMOVED_FROM_EXTENSION = deviation(
    "jax>=0.6",
    params=("xla_extension",),
    error="AttributeError",
    match="xla_extension",
    reason="removed in favour of the public name in jax.errors",
    issue="jax-ml/jax@9932ff1f79e3",
)


@probe(
    source="jax-ml/jax@92f5dcba89bb",
    params={
        "jax_errors": {"path": "jax.errors:JaxRuntimeError"},
        "xla_client": {"path": "jax.lib:xla_client.XlaRuntimeError"},
        "xla_extension": {"path": "jax.lib:xla_extension.XlaRuntimeError"},
        "runtime_error": {"path": "builtins:RuntimeError"},
    },
    deviations=[
        NO_PUBLIC_NAME_YET,
        OLDER_NAME_IN_ERRORS,
        OLDER_NAME_OF_RUNTIME_ERROR,
        OLDER_NAME_IN_CLIENT,
        REMOVED_FROM_CLIENT,
        OLDER_NAME_IN_EXTENSION,
        REMOVED_FROM_EXTENSION,
    ],
)
def error_of_the_runtime(env, path):
    """Four names catch an error of the runtime; plain RuntimeError works on every release.

    The class is named XlaRuntimeError up to 0.7.2 and JaxRuntimeError from 0.8.0.
    """
    error_type = resolve_without_warnings(path)

    def fails(_):
        raise KeyError("on the host")

    call = jax.jit(lambda x: jax.pure_callback(fails, x, x))
    try:
        call(jnp.asarray(ROWS)).block_until_ready()
    except error_type as error:
        return Observed({"called": type(error).__name__}, {"called": "JaxRuntimeError"})
    return Observed({"called": ""}, {"called": "JaxRuntimeError"})


EXPERIMENTAL_X64_REMOVED = deviation(
    "jax>=0.9",
    params=("experimental",),
    error="AttributeError|ImportError",
    match="enable_x64",
    reason="removed in favour of jax.enable_x64",
    issue="jax-ml/jax@aac5985b25b0",
)
X64_WAS_EXPERIMENTAL = deviation(
    "jax<0.8",
    params=("jax",),
    error="AttributeError",
    match="enable_x64",
    reason="the context manager was in jax.experimental",
    issue="jax-ml/jax@e3a9b55616ca",
)


@probe(
    source="jax-ml/jax@e3a9b55616ca",
    params={
        "experimental": {"path": "jax.experimental:enable_x64"},
        "jax": {"path": "jax:enable_x64"},
        "flag": {"path": "jax.config:jax_enable_x64"},
    },
    deviations=[EXPERIMENTAL_X64_REMOVED, X64_WAS_EXPERIMENTAL],
)
def context_of_64_bits(env, path):
    """`with enable_x64():` is in jax.experimental up to 0.8.3, and in jax from 0.8.0."""
    if path.startswith("jax.config"):
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", True)
        third = jnp.float64(1) / 3
        jax.config.update("jax_enable_x64", before)
    else:
        with ignore_warnings(), resolve_without_warnings(path)(True):
            third = jnp.float64(1) / 3
    return Observed({"inside": float(third)}, {"inside": 1 / 3})


HOST_CALLBACK_REFUSED = deviation(
    "jax>=0.4.35,<0.8",
    error="NotImplementedError",
    match="host_callback has been deprecated",
    reason="deprecated since 0.4.26; the functions only raised",
    issue="jax-ml/jax#20385",
)
HOST_CALLBACK_REMOVED = deviation(
    "jax>=0.8",
    outcome="raised",
    match="host_callback",
    reason="removed after it was deprecated in 0.4.26",
    issue="jax-ml/jax#20385",
)


@probe(source="jax-ml/jax#20385", deviations=[HOST_CALLBACK_REFUSED, HOST_CALLBACK_REMOVED])
def host_callback(env):
    """`host_callback.call` raises from 0.4.35 on; since 0.8.0 the module is gone."""
    call = resolve_without_warnings("jax.experimental.host_callback:call")
    shape = jax.ShapeDtypeStruct(ROWS.shape, np.float32)
    value = call(lambda x: 2 * np.asarray(x), jnp.asarray(ROWS, np.float32), result_shape=shape)
    return Observed(value, 2.0 * ROWS.astype(np.float64))
