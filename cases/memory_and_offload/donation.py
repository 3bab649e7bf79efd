"""Donated arguments: which buffers are used, which warnings appear, and the array afterwards."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program
from conformance.kit.endings import refusal

from ._helpers import make_donatable, memory, summarize_call


def _find_marks(fn, *args, **jit):
    """Return the StableHLO marks of donated arguments: aliased to a result, or free for any use."""
    text = jax.jit(fn, **jit).lower(*args).as_text()
    return re.findall(r"tf\.aliasing_output = \d+|jax\.buffer_donor", text)


SAME_SHAPE_AND_DTYPE_NEEDED = deviation(
    "jax<0.8",
    params=["as_large"],
    outcome="ok",
    reason="jax considered only a result of the same shape and dtype",
    issue="jax-ml/jax@4d8b701068d2",
)


@probe(
    source="jax-ml/jax#11036",
    params={
        "as_large": {"results": ["reshaped", "converted"]},
        "smaller": {"results": ["smaller"]},
    },
    deviations=[SAME_SHAPE_AND_DTYPE_NEEDED],
)
def same_size_is_enough(env, results):
    """From 0.8.0 a result of equal size but other shape or dtype can use a donated buffer.

    Before, there was a warning and no reuse. A smaller result still causes a warning.
    """
    fns = {
        "reshaped": lambda x: x.reshape(8, 8) + 1,
        "converted": lambda x: x.astype(jnp.int32),
        "smaller": lambda x: x[:3],
    }

    def call_donated(fn):
        outcome = summarize_call(lambda: jax.jit(fn, donate_argnums=0)(make_donatable()))
        return [outcome, _find_marks(fn, make_donatable(), donate_argnums=0)]

    expected = ["ok", ["jax.buffer_donor"]]
    if results == ["smaller"]:
        expected = ["Some donated buffers were not usable", []]
    return Observed(
        {key: call_donated(fns[key]) for key in results}, dict.fromkeys(results, expected)
    )


@probe(source="jax-ml/jax#1733", devices=4)
def marks_in_the_program(env):
    """StableHLO aliases donated arguments to results, in their order, if shardings are known.

    Otherwise it marks them as buffer donors, free for any use.
    """
    x, rows = make_donatable(), NamedSharding(env.mesh(4, "x"), P("x"))
    both = _find_marks(lambda a, b: (a + b, a - b), x, make_donatable(), donate_argnums=(0, 1))
    one = _find_marks(lambda a, b: (a.sum(), a - b), x, make_donatable(), donate_argnums=1)
    open_result = _find_marks(lambda a: a * 2, x, donate_argnums=0, in_shardings=rows)
    known = _find_marks(lambda a: a * 2, x, donate_argnums=0, in_shardings=rows, out_shardings=rows)
    first, second = "tf.aliasing_output = 0", "tf.aliasing_output = 1"
    return Observed(
        {"both": both, "one": one, "open": open_result, "known": known},
        {"both": [first, second], "one": [second], "open": ["jax.buffer_donor"], "known": [first]},
    )


@probe(source="jax-ml/jax#9237")
def used_afterwards(env):
    """A donated array is deleted: every use of its data raises an error.

    Only metadata such as shape, dtype and sharding remains.
    """
    x = make_donatable()
    jax.jit(lambda y: y + 1, donate_argnums=0)(x)
    observed = {
        "computed": summarize_call(lambda: x + 1),
        "numpy": summarize_call(lambda: np.asarray(x)),
        "printed": summarize_call(lambda: str(x) and 0),
        "jitted": summarize_call(lambda: jax.jit(lambda y: y * 2)(x)),
        "shape": summarize_call(lambda: x.shape[0] + len(x.sharding.device_set)),
    }
    return Observed(observed, {key: "ok" if key == "shape" else "RuntimeError" for key in observed})


OLD_NAME_OF_RUNTIME_ERROR = deviation(
    "jax<0.8",
    outcome="ok",
    match="XlaRuntimeError",
    reason="JaxRuntimeError was named XlaRuntimeError",
)


@probe(source="jax-ml/jax#1733", deviations=[OLD_NAME_OF_RUNTIME_ERROR])
def one_buffer_twice(env):
    """The same array as two arguments, one or both donated, is refused when the function runs.

    The array is not deleted.
    """

    def pass_twice(donate):
        x = make_donatable()
        fn = jax.jit(lambda a, b: (a + b, a - b), donate_argnums=donate)
        return [summarize_call(lambda: fn(x, x)), x.is_deleted()]

    observed = {"read_too": pass_twice(0), "donated_twice": pass_twice((0, 1))}
    return Observed(observed, {key: ["JaxRuntimeError", False] for key in observed})


@probe(source="jax-ml/jax#1733")
def what_is_taken(env):
    """Donating a tree deletes every leaf, also a leaf that is only passed through.

    Arguments by keyword are donated like those by position. Donation within another jit
    deletes nothing; an argument that XLA dropped as unused is not deleted either.
    """

    def deletes_argument(call):
        x = make_donatable()
        call(x)
        return x.is_deleted()

    add = lambda y: y + 1  # noqa: E731 - short
    donating = jax.jit(add, donate_argnums=0)
    through = jax.jit(lambda t: (t[0], t[1] + 1), donate_argnums=0)
    observed = {
        "passed_through": deletes_argument(lambda x: through((x, make_donatable()))),
        "named": deletes_argument(lambda x: jax.jit(lambda *, y: y + 1, donate_argnames="y")(y=x)),
        "number_by_keyword": deletes_argument(lambda x: donating(y=x)),
        "within_jit": deletes_argument(jax.jit(lambda z: donating(z) * 2)),
        "unused": deletes_argument(lambda x: jax.jit(lambda _, y: y + 1, donate_argnums=0)(x, 1.0)),
    }
    deleted = ("passed_through", "named", "number_by_keyword")
    return Observed(observed, {key: key in deleted for key in observed})


@probe(source="jax-ml/jax#1733")
def memory_is_reused(env):
    """A result takes the memory of the donated argument.

    Without donation, jit never returns the memory of its argument.
    """

    def same_place(**jit):
        x = make_donatable(1024)
        address = x.unsafe_buffer_pointer()
        return jax.jit(lambda y: y + 1, **jit)(x).unsafe_buffer_pointer() == address

    x = make_donatable(1024)
    identity = jax.jit(lambda y: y)(x).unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    observed = {"donated": same_place(donate_argnums=0), "kept": same_place(), "identity": identity}
    return Observed(observed, {"donated": True, "kept": False, "identity": False})


@probe(source="jax-ml/jax#1733", platforms=["cpu"])
def memory_of_numpy(env):
    """A NumPy array is never donated and never written to, though jit may read it in place."""
    x = np.ones(1024, np.float32)
    result = jax.jit(lambda y: y + 1, donate_argnums=0)(x)
    return Observed(
        {"x": x.copy(), "result": result},
        {"x": np.ones(1024, np.float32), "result": np.full(1024, 2.0)},
    )


NO_DONATE_KEYWORD = deviation(
    "jax<0.4.34",
    error="TypeError",
    match="unexpected keyword argument",
    reason="device_put had no arguments to donate or alias",
)


@probe(source="jax-ml/jax@1efca331874c", devices=4, deviations=[NO_DONATE_KEYWORD])
def donated_to_device_put(env):
    """`device_put(x, ..., donate=True)` deletes x if the shards change places within a mesh.

    On a CPU it does not delete x if the target is the same or another single device. With
    `may_alias` it is a ValueError.
    """
    mesh = env.mesh(4, "x")
    reversed_mesh = type(mesh)(mesh.devices[::-1], ("x",))

    def put_donated(x, to):
        y = jax.device_put(x, to, donate=True)
        return [x.is_deleted(), np.asarray(y)]

    sharded = jax.device_put(make_donatable(), NamedSharding(mesh, P("x")))
    device, whole = env.devices[0], np.arange(64, dtype=np.float32)
    observed = {
        "same_device": put_donated(make_donatable(), device),
        "other_device": put_donated(make_donatable(), env.devices[1]),
        "reversed_mesh": put_donated(sharded, NamedSharding(reversed_mesh, P("x"))),
        "may_alias_too": summarize_call(
            lambda: jax.device_put(make_donatable(), device, donate=True, may_alias=True)
        ),
    }
    expected = {
        "same_device": [False, whole],
        "other_device": [False, whole],
        "reversed_mesh": [True, whole],
        "may_alias_too": "ValueError",
    }
    return Observed(observed, expected)


COPY_SHARED_MEMORY = deviation(
    "jax<0.6",
    params=["must_not"],
    outcome="ok",
    reason="an array that was already in place was returned, regardless of may_alias",
)


@probe(
    source="jax-ml/jax@1719fa0d5bd0",
    releases="jax>=0.4.34",
    params={
        "default": {"given": {}, "shared": True},
        "may": {"given": {"may_alias": True}, "shared": True},
        "must_not": {"given": {"may_alias": False}, "shared": False},
    },
    deviations=[COPY_SHARED_MEMORY],
)
def put_where_it_is(env, given, shared):
    """`device_put` to the place of an array shares its memory; `may_alias=False` copies from 0.6.0.

    Up to 0.5.3 the copy was the same memory: donating it deleted the data of the original.
    """
    x = make_donatable()
    y = jax.device_put(x, memory(env), **given)
    return Observed(x.unsafe_buffer_pointer() == y.unsafe_buffer_pointer(), shared)


def _make_aligned(size):
    """Return zeros from NumPy at an address that is a multiple of 64, the alignment jax needs."""
    buffer = np.zeros(size + 16, np.float32)
    start = (-buffer.ctypes.data // 4) % 16
    return buffer[start : start + size]


ALIGNED_ARRAYS_SHARED = deviation(
    "jax<0.10.1",
    params=["asarray", "not_copied"],
    outcome="ok",
    reason="an aligned NumPy array was used in place",
)


@probe(
    source="jax-ml/jax#3412",
    platforms=["cpu"],
    params={
        "device_put": {"way": "device_put", "shared": True},
        "asarray": {"way": "asarray", "shared": False},
        "not_copied": {"way": "not_copied", "shared": False},
        "array": {"way": "array", "shared": False},
        "jit": {"way": "jit", "shared": False},
    },
    deviations=[ALIGNED_ARRAYS_SHARED],
)
def memory_shared_with_numpy(env, way, shared):
    """Some jax arrays are views of NumPy memory, and change when that memory is written to.

    `jnp.asarray`, and `jnp.array` with `copy=False`, copy from 0.10.1. `device_put` shares: if an
    array is written to later, pass a copy.
    """
    x = _make_aligned(64)
    y = {
        "device_put": lambda: jax.device_put(x, env.devices[0]),
        "asarray": lambda: jnp.asarray(x),
        "not_copied": lambda: jnp.array(x, copy=False),
        "array": lambda: jnp.array(x),
        "jit": lambda: jax.jit(lambda z: z)(x),
    }[way]()
    y.block_until_ready()
    return Observed(y.unsafe_buffer_pointer() == x.ctypes.data, shared)


NUMPY_ARRAY_SHARED = deviation(
    "jax>=0.4.34",
    outcome="ok",
    reason="an aligned NumPy array is used in place, regardless of may_alias",
    issue="jax-ml/jax#37830",
)


@probe(
    source="jax-ml/jax#37830",
    platforms=["cpu"],
    releases="jax>=0.4.34",
    deviations=[NUMPY_ARRAY_SHARED],
)
def numpy_array_put_without_alias(env):
    """A NumPy array given to `device_put` with `may_alias=False` is copied.

    On a CPU, jax ignores the argument, and the result changes when the NumPy array is written to.
    """
    x = _make_aligned(64)
    y = jax.device_put(x, env.devices[0], may_alias=False)
    y.block_until_ready()
    x[0] = 7
    return Observed(np.asarray(y)[0], np.float32(0))


@program(source="openxla/xla#45912", facts={"donation": ["parameter 0 -> output [] may-alias"]})
def read_by_a_loop(env):
    """A donated array that is updated, read by a loop and updated again is always aliased.

    The alias exists on every release; the topic `temporaries` shows the temporary memory.
    """
    x = env.rng(1).standard_normal((1024,)).astype(np.float32)

    def fn(x):
        y = jnp.exp(x)
        return y + lax.fori_loop(0, 8, lambda i, s: s + y[i * 100], jnp.float32(0))

    def exact(x):
        y = np.exp(x.astype(np.float64))
        return y + y[0:800:100].sum()

    return Program(fn, args=(x,), jit={"donate_argnums": 0}, reference=exact)


CONSTRAINT_RETURNED_ITS_ARGUMENT = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="outside of jit the array itself was returned, and is deleted with it",
    issue="jax-ml/jax#31199",
)


@probe(
    source="jax-ml/jax#31199",
    devices=2,
    platforms=("cpu",),
    deviations=[CONSTRAINT_RETURNED_ITS_ARGUMENT],
)
def constrained_and_given_away(env):
    """`with_sharding_constraint` without jit returns another array from 0.7.2.

    Before, if x already had the sharding, donating x also deleted y.
    """
    rows = NamedSharding(env.mesh(2, "x"), P("x"))
    x = jax.device_put(np.arange(8, dtype=np.float32), rows)
    y = lax.with_sharding_constraint(x, rows)
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    return Observed(y.is_deleted(), reference=False)


COMPILED_WITHOUT_DONATION = deviation(
    outcome="ok",
    reason="the program that was compiled under the option runs again: it donates nothing",
    issue="jax-ml/jax#33949",
)


@probe(source="jax-ml/jax#33949", platforms=("cpu",), deviations=[COMPILED_WITHOUT_DONATION])
def donated_after_debug_nans(env):
    """A function that is compiled under `jax.debug_nans` donates its argument afterwards.

    No function donates under `debug_nans`, because it may be called again to find the NaN.
    """
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    with jax.debug_nans(True):
        f(jnp.zeros(8))
    x = jnp.zeros(8)
    f(x)
    return Observed(x.is_deleted(), reference=True)


NEGATIVE_POSITION_IGNORED = deviation(
    "jax<0.12", outcome="ok", reason="a negative position was accepted, and donated nothing"
)


@probe(source="jax-ml/jax@462e5c603a6c", platforms=("cpu",), deviations=[NEGATIVE_POSITION_IGNORED])
def position_from_the_end(env):
    """`donate_argnums=-1` donates the last argument from 0.12.0; before, it donated nothing."""
    x, y = jnp.zeros(8), jnp.zeros(8)
    jax.jit(lambda x, y: x + y, donate_argnums=-1)(x, y)
    return Observed([x.is_deleted(), y.is_deleted()], reference=[False, True])


QUESTION_CRASHED = deviation(
    "jax<0.11.2",
    outcome="crashed",
    match="SIGSEGV",
    reason="the method used the buffer that `delete` had removed from the array",
)


@probe(source="jax-ml/jax@518bb56c6eb1", platforms=("cpu",), deviations=[QUESTION_CRASHED])
def readiness_of_a_deleted_array(env):
    """`x.is_ready()` of an array after `x.delete()` is an error from 0.11.2 on.

    Before, it ended the process with a segmentation fault. For a donated array it always was an
    error.
    """
    x = make_donatable()
    x.delete()
    return Observed(refusal(x.is_ready, "deleted"), "JaxRuntimeError: deleted")


REFUSED_BY_THE_RUNTIME = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="the runtime refused the buffer, as INVALID_ARGUMENT",
    issue="jax-ml/jax@9e4114f0f13f",
)


@probe(
    source="jax-ml/jax@9e4114f0f13f",
    params=["same_function", "operation"],
    deviations=[REFUSED_BY_THE_RUNTIME],
)
def use_of_a_donated_array(env, name):
    """The use of an array that was donated is a RuntimeError: Array has been deleted."""
    x = jnp.arange(4.0) + 0
    double = jax.jit(lambda y: y * 2, donate_argnums=0)
    double(x)
    uses = {"same_function": lambda: double(x), "operation": lambda: x + 1}
    return Observed(
        refusal(uses[name], "Array has been deleted"), "RuntimeError: Array has been deleted"
    )
