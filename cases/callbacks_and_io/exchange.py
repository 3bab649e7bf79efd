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
        "by_rows": {"kinds": ["plain", "empty", "scalar", "bool"]},
        "transposed": {"kinds": ["transposed"]},
        "transposed_and_used": {"kinds": ["transposed"], "used": True},
        "off_the_grid": {"kinds": ["off_the_grid"]},
        "swapped": {"kinds": ["swapped"]},
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
def values_through_dlpack(env, kinds, used=False):
    """`jax.dlpack.from_dlpack` of NumPy arrays that are laid out by rows, and in other ways.

    A transposed array is a wrong array from 0.6.1 to 0.7.1, without an error, is refused by
    0.7.2, and right from 0.8.0. Memory off the 64 byte grid is copied instead, so
    that a wrong array comes and goes with the allocator. `np.ascontiguousarray(x)` first is right
    on all of them.
    """
    given = {kind: GIVEN[kind]() for kind in kinds}
    made = {kind: jax.dlpack.from_dlpack(array) for kind, array in given.items()}
    seen = {kind: np.asarray(array + 0 if used else array) for kind, array in made.items()}
    return Observed(seen, {kind: np.array(array) for kind, array in given.items()})


def after_a_write(take):
    """Return what is first in an array made of NumPy's zeros, once 7 is written to those."""
    source = aligned(1024)
    made = take(source).block_until_ready()
    source[0] = 7
    return float(np.asarray(made)[0])


@probe(
    source="jax-ml/jax#29963",
    platforms=("cpu",),
    params={"shared": {"copies": [None, False]}, "copied": {"copies": [True]}},
    deviations=[
        deviation(
            "jax>=0.8.1",
            params=("copied",),
            outcome="ok",
            reason="the copy that is asked for is not made",
            issue="jax-ml/jax#29963",
        ),
    ],
)
def memory_through_dlpack(env, copies):
    """Whether the array made by `from_dlpack` sees a later write to the NumPy array.

    It does, unless a copy is asked for. The request is not always honoured: see the deviations.
    """
    seen = [
        after_a_write(lambda x, copy=copy: jax.dlpack.from_dlpack(x, copy=copy)) for copy in copies
    ]
    return Observed(seen, [0.0 if copy else 7.0 for copy in copies])


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


@probe(source="jax-ml/jax#19123", platforms=("cpu",))
def memory_through_functions(env):
    """Who shares memory with an aligned NumPy array on CPU: `device_put`, and no copy.

    A buffer that is filled again while jax holds it changes arrays that are called immutable.
    """
    seen = {
        "device_put": after_a_write(jax.device_put),
        "array": after_a_write(jnp.array),
        "asarray_copy": after_a_write(lambda x: jnp.asarray(x, copy=True)),
    }
    return Observed(seen, {"device_put": 7.0, "array": 0.0, "asarray_copy": 0.0})


@probe(
    source="jax-ml/jax#19123",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.10.1",
            outcome="ok",
            reason="asarray copies now what device_put goes on sharing",
        ),
    ],
)
def memory_through_asarray(env):
    """`jnp.asarray` shared memory with an aligned array, as `np.asarray` would, and copies now."""
    return Observed({"seen": after_a_write(jnp.asarray)}, {"seen": 7.0})


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
            issue="jax-ml/jax@36256960433d",
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


def brain_floats():
    """Return an array of bfloat16, which NumPy has not."""
    return jax.device_put(np.ones(2, jnp.bfloat16))


def typed_key():
    """Return a typed PRNG key, made without a program."""
    return jax.random.wrap_key_data(np.zeros(2, np.uint32))


def locked():
    """Return an array that must not be written to."""
    values = ROW.copy()
    values.setflags(write=False)
    return values


EXPORTS = {
    "sharded": (lambda env: np.from_dlpack(sharded(env)), "BufferError", "singular device"),
    "bfloat16": (lambda _: np.from_dlpack(brain_floats()), "", "nsupported dtype"),
    "key": (lambda _: np.from_dlpack(typed_key()), "AttributeError", "__dlpack__"),
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
        "arrays": {"kinds": ["sharded", "key", "tracer", "other_device"]},
        "bfloat16": {"kinds": ["bfloat16"]},
        "locked": {"kinds": ["locked"]},
        "strided": {"kinds": ["strided"]},
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
def dlpack_refuses(env, kinds):
    """What does not go through DLPack, either way, and how that is told.

    Gather shards with `np.asarray`, take bfloat16 by `view(jnp.uint16)`, copy what is locked.
    """
    ended, expected = {}, {}
    for kind in kinds:
        call, error, words = EXPORTS[kind]
        ended[kind] = refusal(lambda call=call: call(env), words)
        expected[kind] = refused(error or ended[kind]["error"])
    return Observed(ended, expected)


@probe(source="jax-ml/jax#20175", devices=2, platforms=("cpu",))
def device_for_dlpack(env):
    """`from_dlpack(x, device=d)` puts the copy there; float64 becomes float32 without x64."""
    made = jax.dlpack.from_dlpack(np.arange(3.0), device=env.devices[1])
    (device,) = made.devices()
    return Observed([device.id, made.dtype.name, np.asarray(made)], [1, "float32", ROW])


@probe(source="data-apis/array-api#191", devices=4, platforms=("cpu",))
def view_by_numpy(env):
    """NumPy's view of an array: read-only where it shares memory, writable where it is a copy."""
    array = jax.device_put(ROW)
    views = {
        "asarray": np.asarray(array),
        "array": np.array(array),
        "sharded": np.asarray(sharded(env)),
        "memoryview": np.asarray(memoryview(array)),
    }
    seen = {how: [view.flags.writeable, view] for how, view in views.items()}
    whole = {"sharded": np.arange(8, dtype=np.float32)}
    return Observed(seen, {how: [how == "array", whole.get(how, ROW)] for how in views})


BUFFERS = {
    "bfloat16": (lambda _: memoryview(brain_floats()), "BufferError", "BF16"),
    "sharded": (lambda env: memoryview(sharded(env)), "BufferError", "single shard"),
    "tracer": (lambda _: jax.jit(np.asarray)(ROW), "TracerArrayConversionError", "__array__"),
    "one_element": (lambda _: int(jax.device_put(ROW[:1])), "TypeError", "Only scalar arrays"),
    "truth_of_none": (
        lambda _: bool(jax.device_put(ROW[:0])),
        "ValueError",
        "empty array is ambiguous",
    ),
}


@probe(source="jax-ml/jax#19181", devices=4, platforms=("cpu",))
def numpy_refuses(env):
    """Conversions to NumPy and to Python numbers that are refused."""
    ended = {what: refusal(lambda: call(env), told) for what, (call, _, told) in BUFFERS.items()}
    return Observed(ended, {what: refused(error) for what, (_, error, _) in BUFFERS.items()})


@probe(
    source="jax-ml/jax@83383fc7171e",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.36",
            outcome="ok",
            reason="an array of one Python object",
            issue="jax-ml/jax@83383fc7171e",
        ),
    ],
)
def numpy_of_a_key(env):
    """A typed PRNG key is no NumPy array: `np.asarray` of it is refused, and names `key_data`.

    It was an array of one Python object up to 0.4.35: its pickles and comparisons went through
    without a word.
    """
    return Observed(refusal(lambda: np.asarray(typed_key()), "key_data"), refused("TypeError"))
