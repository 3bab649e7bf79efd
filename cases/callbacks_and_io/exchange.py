"""Arrays that cross to and from NumPy: DLPack, `__array__`, the buffer protocol.

Three questions: are the values right, is the memory shared, and what is refused. The first was
answered wrongly for transposed arrays over some releases; the second is decided by alignment (64
bytes, which the cases control) and by arguments that were not always heeded.
"""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import ROW, aligned, refusal, refused


def grid(*shape, offset=0):
    """Return numbers in order, by rows, on the 64 byte grid or `offset` elements off it."""
    values = aligned(int(np.prod(shape)), offset)
    values[:] = np.arange(values.size)
    return values.reshape(shape)


GIVEN = {
    "plain": lambda: grid(2, 3),
    "transposed": lambda: grid(2, 3).T,
    "swapped": lambda: grid(2, 3, 4).swapaxes(0, 2),
    "off_the_grid": lambda: grid(2, 3, offset=1).T,
    "empty": lambda: np.zeros((0, 3), np.float32),
    "scalar": lambda: grid(1).reshape(()),
    "bool": lambda: np.array([True, False, True]),
}


@probe(
    source="jax-ml/jax#7657",
    platforms=("cpu",),
    params={
        "plain": {"what": "plain"},
        "transposed": {"what": "transposed"},
        "transposed_and_used": {"what": "transposed", "used": True},
        "off_the_grid": {"what": "off_the_grid"},
        "swapped": {"what": "swapped"},
        "empty": {"what": "empty"},
        "scalar": {"what": "scalar"},
        "bool": {"what": "bool"},
    },
    deviations=[
        deviation(
            "jax<0.5.1",
            params=("transposed_and_used",),
            error="AssertionError",
            match="Unexpected XLA layout override",
            reason="read alone it is right, but nothing can be computed with it",
            issue="jax-ml/jax#7657",
        ),
        deviation(
            "jax>=0.6.1,<0.7.2",
            params=(
                "transposed",
                "swapped",
                "transposed_and_used",
            ),
            outcome="ok",
            reason="read by rows whatever its strides: wrong values, no error",
            issue="jax-ml/jax#7657",
        ),
        deviation(
            "jax>=0.7.2,<0.8",
            params=(
                "transposed",
                "swapped",
                "transposed_and_used",
                "off_the_grid",
            ),
            error="XlaRuntimeError",
            match="non-default layout",
            reason="refused",
            issue="jax-ml/jax#7657",
        ),
    ],
)
def values_through_dlpack(env, what, used=False):
    """`jax.dlpack.from_dlpack` of NumPy arrays that are laid out in other ways than by rows.

    A transposed array is a wrong array from 0.6.1 to 0.7.1, without an error, is refused by
    0.7.2, and right from 0.8.0. Memory off the 64 byte grid is copied instead, so
    that a wrong array comes and goes with the allocator. `np.ascontiguousarray(x)` first is right
    on all of them.
    """
    given = GIVEN[what]()
    made = jax.dlpack.from_dlpack(given)
    return Observed(np.asarray(made + 0 if used else made), np.array(given))


@probe(
    source="jax-ml/jax#29963",
    platforms=("cpu",),
    params={"default": {"copy": None}, "copy": {"copy": True}, "no_copy": {"copy": False}},
    deviations=[
        deviation(
            "jax>=0.8.1",
            params=("copy",),
            outcome="ok",
            reason="the copy that is asked for is not made",
            issue="jax-ml/jax#29963",
        ),
    ],
)
def memory_through_dlpack(env, copy):
    """Whether the array made by `from_dlpack` sees a later write to the NumPy array.

    It does, unless a copy is asked for. The request is not always honoured: see the deviations.
    """
    source = aligned(64)
    made = jax.dlpack.from_dlpack(source, copy=copy)
    source[0] = 7
    return Observed({"seen": float(made[0])}, {"seen": 0.0 if copy else 7.0})


@probe(
    source="jax-ml/jax#29963",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8.1",
            outcome="ok",
            reason="copied, and nothing said",
            issue="jax-ml/jax#29963",
        ),
    ],
)
def copy_that_is_forbidden(env):
    """`from_dlpack(x, copy=False)` of memory off the 64 byte grid: a copy is needed, so refused.

    Before it was heeded the copy was made all the same.
    """
    ended = refusal(
        lambda: jax.dlpack.from_dlpack(aligned(64, offset=1), copy=False), "requires a copy"
    )
    return Observed(ended, refused("ValueError"))


INTAKES = {
    "asarray": (jnp.asarray, True),
    "asarray_copy": (lambda x: jnp.asarray(x, copy=True), False),
    "array": (jnp.array, False),
    "device_put": (jax.device_put, True),
    "jit": (jax.jit(lambda x: x), False),
}


@probe(
    source="jax-ml/jax#19123",
    platforms=("cpu",),
    params={
        "asarray": {"by": "asarray"},
        "asarray_copy": {"by": "asarray_copy"},
        "array": {"by": "array"},
        "device_put": {"by": "device_put"},
    },
    deviations=[
        deviation(
            "jax>=0.10.1",
            params=("asarray",),
            outcome="ok",
            reason="asarray copies now what device_put goes on sharing",
        ),
    ],
)
def memory_through_functions(env, by):
    """Who shares memory with an aligned NumPy array on CPU: device_put, and once asarray too.

    A buffer that is filled again while jax holds it changes arrays that are called immutable.
    `jnp.array(x)` copies, and from 0.10.1 `jnp.asarray(x)` does.
    """
    source = aligned(1024)
    take, shares = INTAKES[by]
    made = take(source).block_until_ready()
    source[0] = 7
    return Observed({"seen": float(made[0])}, {"seen": 7.0 if shares else 0.0})


@probe(
    source="jax-ml/jax@ab8827359600",
    platforms=("cpu",),
    params={
        "to_dlpack": {"old": "to_dlpack"},
        "from_capsule": {"old": "from_capsule"},
        "protocol": {"old": ""},
    },
    deviations=[
        deviation(
            "jax>=0.7",
            params=("to_dlpack",),
            error="AttributeError",
            match="to_dlpack",
            reason="deprecated since 0.6.0, when arrays had __dlpack__ for years",
            issue="jax-ml/jax@ab8827359600",
        ),
        deviation(
            "jax>=0.7.2",
            params=("from_capsule",),
            error="TypeError",
            match="must have __dlpack__ and __dlpack_device__",
            reason="deprecated since 0.4.33",
            issue="jax-ml/jax@abcf3a528712",
        ),
    ],
)
def capsules(env, old):
    """DLPack by capsule, as it was done before arrays had `__dlpack__`: both ends are gone.

    `to_dlpack` went with 0.7.0, capsules as arguments with 0.7.2. Hand over the array itself.
    """
    array = jnp.asarray(ROW)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if old == "to_dlpack":
            return Observed(type(jax.dlpack.to_dlpack(array)).__name__, "PyCapsule")
        made = jax.dlpack.from_dlpack(array.__dlpack__() if old else array)
    return Observed(made, ROW)


def sharded(env):
    """Return an array over four devices."""
    return jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(env.mesh(4, "x"), P("x")))


def locked():
    """Return an array that must not be written to."""
    values = ROW.copy()
    values.setflags(write=False)
    return values


EXPORTS = {
    "sharded": (lambda env: np.from_dlpack(sharded(env)), "BufferError", "singular device"),
    "bfloat16": (lambda _: np.from_dlpack(jnp.ones(2, jnp.bfloat16)), "", "nsupported dtype"),
    "key": (lambda _: np.from_dlpack(jax.random.key(0)), "AttributeError", "__dlpack__"),
    "locked": (lambda _: jax.dlpack.from_dlpack(locked()), "BufferError", "readonly"),
    "strided": (lambda _: jax.dlpack.from_dlpack(grid(2, 4)[:, ::2]), "", "striding"),
    "tracer": (lambda _: jax.jit(np.from_dlpack)(ROW), "ConcretizationTypeError", "__dlpack"),
    "other_device": (
        lambda env: jax.dlpack.from_dlpack(ROW.copy(), device=env.devices[1], copy=False),
        "ValueError",
        "requires a copy",
    ),
}


@probe(
    source="jax-ml/jax#20175",
    devices=4,
    platforms=("cpu",),
    params={
        "sharded": {"what": "sharded"},
        "bfloat16": {"what": "bfloat16"},
        "key": {"what": "key"},
        "locked": {"what": "locked"},
        "strided": {"what": "strided"},
        "tracer": {"what": "tracer"},
        "other_device": {"what": "other_device"},
    },
    deviations=[
        deviation(
            "jax>=0.12",
            params=("locked",),
            outcome="ok",
            reason="taken, from 0.12.0 on",
        ),
    ],
)
def dlpack_refuses(env, what):
    """What does not go through DLPack, either way, and how that is told.

    Gather shards with `np.asarray`, take bfloat16 by `view(jnp.uint16)`, copy what is locked.
    """
    call, error, words = EXPORTS[what]
    ended = refusal(lambda: call(env), words)
    return Observed(ended, refused(error or ended["error"]))


@probe(source="jax-ml/jax#20175", devices=2, platforms=("cpu",))
def device_for_dlpack(env):
    """`from_dlpack(x, device=d)` puts the copy there; float64 becomes float32 without x64."""
    made = jax.dlpack.from_dlpack(np.arange(3.0), device=env.devices[1])
    (device,) = made.devices()
    return Observed([device.id, made.dtype.name, np.asarray(made)], [1, "float32", ROW])


@probe(
    source="data-apis/array-api#191",
    devices=4,
    platforms=("cpu",),
    params={
        "asarray": {"how": "asarray"},
        "array": {"how": "array"},
        "sharded": {"how": "sharded"},
        "memoryview": {"how": "memoryview"},
    },
)
def view_by_numpy(env, how):
    """NumPy's view of an array: read-only where it shares memory, writable where it is a copy."""
    array = sharded(env) if how == "sharded" else jnp.asarray(ROW)
    seen = np.array(array) if how == "array" else np.asarray(array)
    if how == "memoryview":
        seen = np.asarray(memoryview(array))
    expected = np.arange(len(array), dtype=np.float32)
    return Observed([seen.flags.writeable, np.array(seen)], [how == "array", expected])


BUFFERS = {
    "bfloat16": (lambda _: memoryview(jnp.ones(2, jnp.bfloat16)), "BufferError", "BF16"),
    "sharded": (lambda env: memoryview(sharded(env)), "BufferError", "single shard"),
    "key": (lambda _: np.asarray(jax.random.key(0)), "TypeError", "key_data"),
    "tracer": (lambda _: jax.jit(np.asarray)(ROW), "TracerArrayConversionError", "__array__"),
    "one_element": (lambda _: int(jnp.ones(1, int)), "TypeError", "Only scalar arrays"),
    "truth_of_none": (lambda _: bool(jnp.zeros(0)), "ValueError", "empty array is ambiguous"),
}


@probe(
    source="jax-ml/jax#19181",
    devices=4,
    platforms=("cpu",),
    params={
        "bfloat16": {"what": "bfloat16"},
        "sharded": {"what": "sharded"},
        "key": {"what": "key"},
        "tracer": {"what": "tracer"},
        "one_element": {"what": "one_element"},
        "truth_of_none": {"what": "truth_of_none"},
    },
    deviations=[
        deviation(
            "jax<0.4.36",
            params=("key",),
            outcome="ok",
            reason="an array of one Python object",
            issue="jax-ml/jax@83383fc7171e",
        ),
    ],
)
def numpy_refuses(env, what):
    """Conversions to NumPy and to Python numbers that are refused.

    A typed key was an array of one Python object up to 0.4.35: its pickles and comparisons went
    through without a word.
    """
    call, error, words = BUFFERS[what]
    return Observed(refusal(lambda: call(env), words), refused(error))
