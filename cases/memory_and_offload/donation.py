"""Donated arguments: which are taken, which are not and what is said, and what is left of them."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program

from ._helpers import fresh, memory, told


def _marks(fn, *args, **jit):
    """Return how StableHLO marks donated arguments: aliased to a result, or free for any use."""
    text = jax.jit(fn, **jit).lower(*args).as_text()
    return re.findall(r"tf\.aliasing_output = \d+|jax\.buffer_donor", text)


@probe(
    source="jax-ml/jax#11036",
    params={
        "as_large": {"results": ["reshaped", "converted"]},
        "smaller": {"results": ["smaller"]},
    },
    deviations=[
        deviation(
            "jax<0.8",
            params=["as_large"],
            outcome="ok",
            reason="only a result of the same shape and dtype was looked for",
            issue="jax-ml/jax@4d8b701068d2",
        )
    ],
)
def same_size_is_enough(env, results):
    """A result of another shape or dtype but as large takes a donated buffer since 0.8.0.

    Before there was a warning and no reuse. A smaller result is still a warning.
    """
    fns = {
        "reshaped": lambda x: x.reshape(8, 8) + 1,
        "converted": lambda x: x.astype(jnp.int32),
        "smaller": lambda x: x[:3],
    }

    def donated(fn):
        calls = told(lambda: jax.jit(fn, donate_argnums=0)(fresh()))
        return [calls, _marks(fn, fresh(), donate_argnums=0)]

    expected = ["ok", ["jax.buffer_donor"]]
    if results == ["smaller"]:
        expected = ["Some donated buffers were not usable", []]
    return Observed({key: donated(fns[key]) for key in results}, dict.fromkeys(results, expected))


@probe(source="jax-ml/jax#1733", devices=4)
def marks_in_the_program(env):
    """Aliased to a result in order of results, where shardings are known; else a free donor."""
    x, rows = fresh(), NamedSharding(env.mesh(4, "x"), P("x"))
    both = _marks(lambda a, b: (a + b, a - b), x, fresh(), donate_argnums=(0, 1))
    one = _marks(lambda a, b: (a.sum(), a - b), x, fresh(), donate_argnums=1)
    open_result = _marks(lambda a: a * 2, x, donate_argnums=0, in_shardings=rows)
    known = _marks(lambda a: a * 2, x, donate_argnums=0, in_shardings=rows, out_shardings=rows)
    first, second = "tf.aliasing_output = 0", "tf.aliasing_output = 1"
    return Observed(
        {"both": both, "one": one, "open": open_result, "known": known},
        {"both": [first, second], "one": [second], "open": ["jax.buffer_donor"], "known": [first]},
    )


@probe(source="jax-ml/jax#9237")
def used_afterwards(env):
    """A donated array is deleted: every use of its data raises, only shape and dtype are left."""
    x = fresh()
    jax.jit(lambda y: y + 1, donate_argnums=0)(x)
    seen = {
        "computed": told(lambda: x + 1),
        "numpy": told(lambda: np.asarray(x)),
        "printed": told(lambda: str(x) and 0),
        "jitted": told(lambda: jax.jit(lambda y: y * 2)(x)),
        "shape": told(lambda: x.shape[0] + len(x.sharding.device_set)),
    }
    return Observed(seen, {key: "ok" if key == "shape" else "RuntimeError" for key in seen})


@probe(
    source="jax-ml/jax#1733",
    deviations=[
        deviation(
            "jax<0.8", outcome="ok", match="XlaRuntimeError", reason="JaxRuntimeError's old name"
        )
    ],
)
def one_buffer_twice(env):
    """The same array as two arguments, one donated or both: refused at run, nothing is taken."""

    def given_twice(donate):
        x = fresh()
        fn = jax.jit(lambda a, b: (a + b, a - b), donate_argnums=donate)
        return [told(lambda: fn(x, x)), x.is_deleted()]

    seen = {"read_too": given_twice(0), "donated_twice": given_twice((0, 1))}
    return Observed(seen, {key: ["JaxRuntimeError", False] for key in seen})


@probe(source="jax-ml/jax#1733")
def what_is_taken(env):
    """Of a donated tree every leaf is taken, also one that is only passed through.

    By keyword as by position; not within another jit or under grad; not what XLA dropped as unused.
    """

    def taken(call):
        x = fresh()
        call(x)
        return x.is_deleted()

    add = lambda y: y + 1  # noqa: E731 - short
    donating = jax.jit(add, donate_argnums=0)
    through = jax.jit(lambda t: (t[0], t[1] + 1), donate_argnums=0)
    seen = {
        "passed_through": taken(lambda x: through((x, fresh()))),
        "named": taken(lambda x: jax.jit(lambda *, y: y + 1, donate_argnames="y")(y=x)),
        "number_by_keyword": taken(lambda x: donating(y=x)),
        "within_jit": taken(jax.jit(lambda z: donating(z) * 2)),
        "unused": taken(lambda x: jax.jit(lambda _, y: y + 1, donate_argnums=0)(x, 1.0)),
    }
    yes = ("passed_through", "named", "number_by_keyword")
    return Observed(seen, {key: key in yes for key in seen})


@probe(source="jax-ml/jax#1733")
def memory_is_reused(env):
    """The result lies where the donated argument lay; without donation jit never gives it back."""

    def same_place(**jit):
        x = fresh(1024)
        at = x.unsafe_buffer_pointer()
        return jax.jit(lambda y: y + 1, **jit)(x).unsafe_buffer_pointer() == at

    x = fresh(1024)
    identity = jax.jit(lambda y: y)(x).unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    seen = {"donated": same_place(donate_argnums=0), "kept": same_place(), "identity": identity}
    return Observed(seen, {"donated": True, "kept": False, "identity": False})


@probe(source="jax-ml/jax#1733", platforms=["cpu"])
def memory_of_numpy(env):
    """A NumPy array is never donated and never written to, though it may be read in place."""
    x = np.ones(1024, np.float32)
    result = jax.jit(lambda y: y + 1, donate_argnums=0)(x)
    return Observed(
        {"x": x.copy(), "result": result},
        {"x": np.ones(1024, np.float32), "result": np.full(1024, 2.0)},
    )


@probe(
    source="jax-ml/jax@1efca331874c",
    devices=4,
    deviations=[
        deviation(
            "jax<0.4.34",
            error="TypeError",
            match="unexpected keyword argument",
            reason="device_put neither donated nor aliased by request",
        )
    ],
)
def donated_to_device_put(env):
    """`device_put(x, ..., donate=True)` takes the array where shards change places in one mesh.

    To the same or another single device it does not, on a CPU. With `may_alias` it is a ValueError.
    """
    forth = env.mesh(4, "x")
    back = type(forth)(forth.devices[::-1], ("x",))

    def taken(x, to):
        y = jax.device_put(x, to, donate=True)
        return [x.is_deleted(), np.asarray(y)]

    sharded = jax.device_put(fresh(), NamedSharding(forth, P("x")))
    here, whole = env.devices[0], np.arange(64, dtype=np.float32)
    seen = {
        "same_device": taken(fresh(), here),
        "other_device": taken(fresh(), env.devices[1]),
        "reversed_mesh": taken(sharded, NamedSharding(back, P("x"))),
        "may_alias_too": told(lambda: jax.device_put(fresh(), here, donate=True, may_alias=True)),
    }
    expected = {
        "same_device": [False, whole],
        "other_device": [False, whole],
        "reversed_mesh": [True, whole],
        "may_alias_too": "ValueError",
    }
    return Observed(seen, expected)


@probe(
    source="jax-ml/jax@1719fa0d5bd0",
    releases="jax>=0.4.34",
    params={
        "default": {"given": {}, "shared": True},
        "may": {"given": {"may_alias": True}, "shared": True},
        "must_not": {"given": {"may_alias": False}, "shared": False},
    },
    deviations=[
        deviation(
            "jax<0.6",
            params=["must_not"],
            outcome="ok",
            reason="an array put where it is was handed back, whatever was asked for",
        )
    ],
)
def put_where_it_is(env, given, shared):
    """`device_put` to where an array is shares its memory; `may_alias=False` copies since 0.6.0.

    Up to 0.5.3 the copy was the same memory: donating it took the original's data.
    """
    x = fresh()
    y = jax.device_put(x, memory(env), **given)
    return Observed(x.unsafe_buffer_pointer() == y.unsafe_buffer_pointer(), shared)


def _aligned(size):
    """Return zeros from NumPy at an address that is a multiple of 64, as jax wants them."""
    buffer = np.zeros(size + 16, np.float32)
    start = (-buffer.ctypes.data // 4) % 16
    return buffer[start : start + size]


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
    deviations=[
        deviation(
            "jax<0.10.1",
            params=["asarray", "not_copied"],
            outcome="ok",
            reason="an aligned NumPy array was used where it lay",
        )
    ],
)
def memory_shared_with_numpy(env, way, shared):
    """Which jax arrays are views of NumPy's memory, and change when that is written to.

    `jnp.asarray` copies since 0.10.1, even with `copy=False`. `device_put` shares: where an array
    is written to later, hand over a copy.
    """
    x = _aligned(64)
    y = {
        "device_put": lambda: jax.device_put(x, env.devices[0]),
        "asarray": lambda: jnp.asarray(x),
        "not_copied": lambda: jnp.array(x, copy=False),
        "array": lambda: jnp.array(x),
        "jit": lambda: jax.jit(lambda z: z)(x),
    }[way]()
    y.block_until_ready()
    return Observed(y.unsafe_buffer_pointer() == x.ctypes.data, shared)


@program(
    source="openxla/xla#45912",
    facts={"donation": ["parameter 0 -> output [] may-alias"]},
)
def read_by_a_loop(env):
    """A donated array, updated, read by a loop, updated again: the alias is there on every release.

    What it costs in between is another matter, of the topic `temporaries`.
    """
    x = env.rng(1).standard_normal((1024,)).astype(np.float32)

    def fn(x):
        y = jnp.exp(x)
        return y + lax.fori_loop(0, 8, lambda i, s: s + y[i * 100], jnp.float32(0))

    def by_hand(x):
        y = np.exp(x.astype(np.float64))
        return y + y[0:800:100].sum()

    return Program(fn, args=(x,), jit={"donate_argnums": 0}, reference=by_hand)


@probe(
    source="jax-ml/jax#31199",
    devices=2,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            reason="outside of jit the array came back itself, and is gone with it",
            issue="jax-ml/jax#31199",
        )
    ],
)
def constrained_and_given_away(env):
    """`with_sharding_constraint` without jit makes another array, since 0.7.2.

    Before, to donate x was to lose y as well, where x lay as it should already.
    """
    rows = NamedSharding(env.mesh(2, "x"), P("x"))
    x = jax.device_put(np.arange(8, dtype=np.float32), rows)
    y = lax.with_sharding_constraint(x, rows)
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    return Observed(y.is_deleted(), reference=False)
