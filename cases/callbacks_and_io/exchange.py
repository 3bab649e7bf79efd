"""Arrays that are exchanged with NumPy: DLPack, `__array__`, the buffer protocol.

Three questions: are the values right, is the memory shared, and which arrays are refused. The
values of transposed arrays were wrong over some releases. Whether memory is shared depends on
alignment (64 bytes, which the cases control) and on arguments that some releases ignored.
"""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import ROW, allocate_aligned, expect_refusal, refusal

defaults(platforms=("cpu",))


def grid(*shape, offset=0):
    """Return numbers in order, by rows, at a 64 byte boundary or `offset` elements after one."""
    values = allocate_aligned(int(np.prod(shape)), offset)
    values[:] = np.arange(values.size)
    return values.reshape(shape)


ARRAYS = {
    "plain": lambda: grid(2, 3),
    "transposed": lambda: grid(2, 3).T,
    "swapped": lambda: grid(2, 3, 4).swapaxes(0, 2),
    "off_the_grid": lambda: grid(2, 3, offset=1).T,
    "empty": lambda: np.zeros((0, 3), np.float32),
    "scalar": lambda: grid(1).reshape(()),
    "bool": lambda: np.array([True, False, True]),
}


TRANSPOSED_NOT_COMPUTABLE = deviation(
    "jax<0.5.1",
    params=("transposed_and_used",),
    error="AssertionError",
    match="Unexpected XLA layout override",
    reason="the array is right if it is only read, but no computation accepts it",
    issue="jax-ml/jax#7657",
)
STRIDES_IGNORED = deviation(
    "jax>=0.6.1,<0.7.2",
    params=(
        "transposed",
        "swapped",
        "transposed_and_used",
    ),
    outcome="ok",
    reason="the array is read by rows, without regard to its strides: wrong values, no error",
    issue="jax-ml/jax#7657",
)
LAYOUT_REFUSED = deviation(
    "jax>=0.7.2,<0.8",
    params=(
        "transposed",
        "swapped",
        "transposed_and_used",
        "off_the_grid",
    ),
    error="XlaRuntimeError",
    match="non-default layout",
    reason="arrays that are not laid out by rows were refused",
    issue="jax-ml/jax#7657",
)


@probe(
    source="jax-ml/jax#7657",
    params={
        "by_rows": {"kinds": ["plain", "empty", "scalar", "bool"]},
        "transposed": {"kinds": ["transposed"]},
        "transposed_and_used": {"kinds": ["transposed"], "used": True},
        "off_the_grid": {"kinds": ["off_the_grid"]},
        "swapped": {"kinds": ["swapped"]},
    },
    deviations=[TRANSPOSED_NOT_COMPUTABLE, STRIDES_IGNORED, LAYOUT_REFUSED],
)
def values_through_dlpack(env, kinds, used=False):
    """`jax.dlpack.from_dlpack` of NumPy arrays that are laid out by rows, and in other ways.

    From 0.6.1 to 0.7.1 a transposed array has wrong values, without an error; 0.7.2 refuses it, and
    from 0.8.0 it is right. Memory that is not aligned to 64 bytes is copied instead, so whether an
    array is wrong varies with the allocator. Calling `np.ascontiguousarray(x)` first is right on
    all releases.
    """
    arrays = {kind: ARRAYS[kind]() for kind in kinds}
    imported = {kind: jax.dlpack.from_dlpack(array) for kind, array in arrays.items()}
    values = {kind: np.asarray(array + 0 if used else array) for kind, array in imported.items()}
    return Observed(values, {kind: np.array(array) for kind, array in arrays.items()})


def read_after_write(take):
    """Return the first element of an array made of NumPy zeros, after 7 is written to the zeros."""
    source = allocate_aligned(1024)
    imported = take(source).block_until_ready()
    source[0] = 7
    return float(np.asarray(imported)[0])


COPY_NOT_MADE = deviation(
    "jax>=0.8.1",
    params=("copied",),
    outcome="ok",
    reason="the requested copy is not made",
    issue="jax-ml/jax#29963",
)


@probe(
    source="jax-ml/jax#29963",
    params={"shared": {"copies": [None, False]}, "copied": {"copies": [True]}},
    deviations=[COPY_NOT_MADE],
)
def memory_through_dlpack(env, copies):
    """The array made by `from_dlpack` shows a later write to the NumPy array.

    It does so unless a copy is requested. Not all releases honour the request: see the deviations.
    """
    elements = [
        read_after_write(lambda x, copy=copy: jax.dlpack.from_dlpack(x, copy=copy))
        for copy in copies
    ]
    return Observed(elements, [0.0 if copy else 7.0 for copy in copies])


COPIED_SILENTLY = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="from_dlpack copied the memory silently",
    issue="jax-ml/jax#29963",
)


@probe(source="jax-ml/jax#29963", deviations=[COPIED_SILENTLY])
def copy_that_is_forbidden(env):
    """`from_dlpack(x, copy=False)` of memory off a 64 byte boundary is refused: it needs a copy.

    Releases that ignore the argument make the copy.
    """
    outcome = refusal(
        lambda: jax.dlpack.from_dlpack(allocate_aligned(64, offset=1), copy=False),
        "requires a copy",
    )
    return Observed(outcome, expect_refusal("ValueError"))


@probe(source="jax-ml/jax#19123")
def memory_through_functions(env):
    """On CPU, `device_put` shares memory with an aligned NumPy array; `jnp.array` copies.

    Refilling a buffer while jax holds it changes arrays that are called immutable.
    """
    elements = {
        "device_put": read_after_write(jax.device_put),
        "array": read_after_write(jnp.array),
        "asarray_copy": read_after_write(lambda x: jnp.asarray(x, copy=True)),
    }
    return Observed(elements, {"device_put": 7.0, "array": 0.0, "asarray_copy": 0.0})


ASARRAY_COPIES = deviation(
    "jax>=0.10.1",
    outcome="ok",
    reason="asarray now copies memory that device_put still shares",
)


@probe(source="jax-ml/jax#19123", deviations=[ASARRAY_COPIES])
def memory_through_asarray(env):
    """`jnp.asarray` shared memory with an aligned array, as NumPy does; from 0.10.1 it copies."""
    return Observed({"seen": read_after_write(jnp.asarray)}, {"seen": 7.0})


TO_DLPACK_REMOVED = deviation(
    "jax>=0.7",
    params=("to_dlpack",),
    error="AttributeError",
    match="to_dlpack",
    reason="removed; deprecated since 0.6.0, when arrays had supported __dlpack__ for years",
    issue="jax-ml/jax@36256960433d",
)
CAPSULES_REFUSED = deviation(
    "jax>=0.7.2",
    params=("from_capsule",),
    error="TypeError",
    match="must have __dlpack__ and __dlpack_device__",
    reason="capsules are no longer accepted; deprecated since 0.4.33",
    issue="jax-ml/jax@abcf3a528712",
)


@probe(
    source="jax-ml/jax@ab8827359600",
    params={
        "to_dlpack": {"old": "to_dlpack"},
        "from_capsule": {"old": "from_capsule"},
        "protocol": {"old": ""},
    },
    deviations=[TO_DLPACK_REMOVED, CAPSULES_REFUSED],
)
def capsules(env, old):
    """DLPack capsules, used before arrays had `__dlpack__`, are removed in both directions.

    0.7.0 removed `to_dlpack`, and 0.7.2 capsules as arguments. Pass the array itself.
    """
    array = jnp.asarray(ROW)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if old == "to_dlpack":
            return Observed(type(jax.dlpack.to_dlpack(array)).__name__, "PyCapsule")
        imported = jax.dlpack.from_dlpack(array.__dlpack__() if old else array)
    return Observed(imported, ROW)


def sharded_array(env):
    """Return an array over four devices."""
    return jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(env.mesh(4, "x"), P("x")))


def brain_floats():
    """Return an array of bfloat16, a dtype that NumPy lacks."""
    return jax.device_put(np.ones(2, jnp.bfloat16))


def typed_key():
    """Return a typed PRNG key, made without running a program."""
    return jax.random.wrap_key_data(np.zeros(2, np.uint32))


def read_only_array():
    """Return a read-only array."""
    values = ROW.copy()
    values.setflags(write=False)
    return values


EXPORTS = {
    "sharded": (lambda env: np.from_dlpack(sharded_array(env)), "BufferError", "singular device"),
    "bfloat16": (lambda _: np.from_dlpack(brain_floats()), "", "nsupported dtype"),
    "key": (lambda _: np.from_dlpack(typed_key()), "AttributeError", "__dlpack__"),
    "locked": (lambda _: jax.dlpack.from_dlpack(read_only_array()), "BufferError", "readonly"),
    "strided": (lambda _: jax.dlpack.from_dlpack(grid(2, 4)[:, ::2]), "", "striding"),
    "tracer": (lambda _: jax.jit(np.from_dlpack)(ROW), "ConcretizationTypeError", "__dlpack"),
    "other_device": (
        lambda env: jax.dlpack.from_dlpack(ROW.copy(), device=env.devices[1], copy=False),
        "ValueError",
        "requires a copy",
    ),
}


READ_ONLY_ACCEPTED = deviation(
    "jax>=0.12",
    params=("locked",),
    outcome="ok",
    reason="from_dlpack accepts read-only arrays from 0.12.0",
)


@probe(
    source="jax-ml/jax#20175",
    devices=4,
    params={
        "arrays": {"kinds": ["sharded", "key", "tracer", "other_device"]},
        "bfloat16": {"kinds": ["bfloat16"]},
        "locked": {"kinds": ["locked"]},
        "strided": {"kinds": ["strided"]},
    },
    deviations=[READ_ONLY_ACCEPTED],
)
def dlpack_refuses(env, kinds):
    """Arrays that DLPack refuses, in both directions, and words of the messages.

    Gather shards with `np.asarray`, export bfloat16 by `view(jnp.uint16)`, copy a read-only array.
    """
    outcomes, expected = {}, {}
    for kind in kinds:
        call, error, words = EXPORTS[kind]
        outcomes[kind] = refusal(lambda call=call: call(env), words)
        expected[kind] = expect_refusal(error or outcomes[kind]["error"])
    return Observed(outcomes, expected)


@probe(source="jax-ml/jax#20175", devices=2)
def device_for_dlpack(env):
    """`from_dlpack(x, device=d)` copies to that device; float64 becomes float32 without x64."""
    imported = jax.dlpack.from_dlpack(np.arange(3.0), device=env.devices[1])
    (device,) = imported.devices()
    return Observed([device.id, imported.dtype.name, np.asarray(imported)], [1, "float32", ROW])


@probe(source="data-apis/array-api#191", devices=4)
def view_by_numpy(env):
    """`np.asarray` and `memoryview` of an array are read-only; a copy by `np.array` is writable."""
    array = jax.device_put(ROW)
    views = {
        "asarray": np.asarray(array),
        "array": np.array(array),
        "sharded": np.asarray(sharded_array(env)),
        "memoryview": np.asarray(memoryview(array)),
    }
    flags = {how: [view.flags.writeable, view] for how, view in views.items()}
    whole = {"sharded": np.arange(8, dtype=np.float32)}
    return Observed(flags, {how: [how == "array", whole.get(how, ROW)] for how in views})


BUFFERS = {
    "bfloat16": (lambda _: memoryview(brain_floats()), "BufferError", "BF16"),
    "sharded": (lambda env: memoryview(sharded_array(env)), "BufferError", "single shard"),
    "tracer": (lambda _: jax.jit(np.asarray)(ROW), "TracerArrayConversionError", "__array__"),
    "one_element": (lambda _: int(jax.device_put(ROW[:1])), "TypeError", "Only scalar arrays"),
    "truth_of_none": (
        lambda _: bool(jax.device_put(ROW[:0])),
        "ValueError",
        "empty array is ambiguous",
    ),
}


@probe(source="jax-ml/jax#19181", devices=4)
def numpy_refuses(env):
    """Some conversions to NumPy and to Python numbers are refused."""
    outcomes = {
        what: refusal(lambda: call(env), words) for what, (call, _, words) in BUFFERS.items()
    }
    return Observed(
        outcomes, {what: expect_refusal(error) for what, (_, error, _) in BUFFERS.items()}
    )


KEY_CONVERTED_TO_OBJECT = deviation(
    "jax<0.4.36",
    outcome="ok",
    reason="NumPy converted a key to an array of one object",
    issue="jax-ml/jax@83383fc7171e",
)


@probe(source="jax-ml/jax@83383fc7171e", deviations=[KEY_CONVERTED_TO_OBJECT])
def numpy_of_a_key(env):
    """`np.asarray` of a typed PRNG key is refused with a message that names `key_data`.

    Up to 0.4.35 it returned an array of one Python object: pickling and comparing it raised no
    error.
    """
    return Observed(
        refusal(lambda: np.asarray(typed_key()), "key_data"), expect_refusal("TypeError")
    )


READ_ONLY_REFUSED = deviation(
    "jax<0.12",
    error="BufferError",
    match="readonly",
    reason="JAX did not ask for a version of DLPack that knows read-only arrays",
    issue="jax-ml/jax#40789",
)


@probe(source="jax-ml/jax#40789", deviations=[READ_ONLY_REFUSED])
def read_only_array_by_dlpack(env):
    """`jnp.from_dlpack` accepts a NumPy array that is read-only."""
    x = np.arange(3, dtype=np.float32)
    x.flags.writeable = False
    return Observed(jnp.from_dlpack(x), reference=np.arange(3, dtype=np.float32))


class OnMetal:
    """An array of another library, in the memory of a device that JAX does not know."""

    def __dlpack_device__(self):
        """Return the type of the device, 8 for Metal, and its number."""
        return (8, 0)

    def __dlpack__(self, **_):
        """Refuse to export the memory."""
        raise BufferError


BARE_KEY_ERROR = deviation(
    "jax<0.5.1",
    outcome="ok",
    match="KeyError",
    reason="the handler of the error was for a TypeError",
    issue="jax-ml/jax@d4ced960ab5d",
)


@probe(source="jax-ml/jax@d4ced960ab5d", deviations=[BARE_KEY_ERROR])
def array_on_an_unknown_device(env):
    """`jax.dlpack.from_dlpack` refuses an array on a device of an unknown type."""
    outcome = refusal(lambda: jax.dlpack.from_dlpack(OnMetal()), "unsupported device type")
    return Observed(outcome, expect_refusal("TypeError"))
