"""How often a function is traced and compiled, for calls that are equal, or nearly equal."""

import dataclasses
import functools
import typing
from collections import OrderedDict

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, probe

from ._helpers import vector

defaults(platforms=("cpu",))


class Counts:
    """Counters of traces and compilations.

    Attributes:
        traces: How often the Python body ran.
        compilations: How often XLA compiled.
    """

    def __init__(self):
        self.traces = self.compilations = 0
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event, _, **__):
        self.compilations += event.endswith("backend_compile_duration")

    def wrap(self, f):
        """Return a function that counts its traces."""

        @functools.wraps(f)
        def body(*args, **keywords):
            self.traces += 1
            return f(*args, **keywords)

        return body

    def after_each(self, calls):
        """Return the traces and compilations after each call."""
        result = []
        before = self.compilations
        for call in calls:
            jax.block_until_ready(call())
            result.append([self.traces, self.compilations - before])
        return result


class Pair(typing.NamedTuple):
    """Two arrays."""

    x: typing.Any
    y: typing.Any


@functools.partial(jax.tree_util.register_dataclass, data_fields=["x"], meta_fields=["note"])
@dataclasses.dataclass
class Noted:
    """An array with a static text."""

    x: typing.Any
    note: str


def _trees():
    x = vector()
    return [
        {"a": x, "b": x},
        {"b": x, "a": x},
        OrderedDict(a=x, b=x),
        [x, x],
        (x, x),
        Pair(x, x),
        (x, x, None),
    ]


def _numbers():
    return [np.float32(1), np.array(1, np.float32), jnp.float32(2), np.float64(3), 4.0, np.array(5)]


def _notes():
    return [Noted(vector(), "a"), Noted(vector() + 1, "a"), Noted(vector(), "b")]


ARGUMENTS = {
    "trees": (_trees, [1, 1, 2, 3, 4, 5, 6]),
    "numbers": (_numbers, [1, 1, 1, 1, 2, 3]),
    "static_fields": (_notes, [1, 1, 2]),
}


@probe(source="jax-ml/jax#19129", params=[*ARGUMENTS])
def equal_arguments(env, name):
    """Arguments share a trace if their trees, static fields, dtypes and weak types are equal.

    The order of the keys of a dictionary does not matter, and a float64 of NumPy is a float32.
    """
    values, exact = ARGUMENTS[name]
    counts = Counts()
    fn = jax.jit(counts.wrap(lambda tree: jax.tree_util.tree_map(lambda x: x + 1, tree)))
    found = counts.after_each([functools.partial(fn, value) for value in values()])
    return Observed(found, reference=[[n, n] for n in exact])


@probe(source="jax-ml/jax#457", devices=4)
def equal_shardings(env):
    """Equal shardings, however they are spelled, share an executable.

    This holds for equal meshes made twice and for `P('x')` and `P('x', None)`.
    """
    x = vector(16).reshape(4, 4)
    meshes = [env.mesh(4, "x"), env.mesh(4, "x")]
    places = [
        NamedSharding(meshes[0], P("x")),
        NamedSharding(meshes[1], P("x")),
        NamedSharding(meshes[0], P("x", None)),
        NamedSharding(meshes[0], P(("x",))),
        NamedSharding(meshes[0], P(None, "x")),
        NamedSharding(meshes[0], P("x")),
    ]
    arrays = [jax.device_put(x, place) for place in places]
    counts = Counts()
    fn = jax.jit(counts.wrap(lambda y: y * 2))
    found = counts.after_each([functools.partial(fn, array) for array in arrays])
    return Observed(found, reference=[[1, n] for n in (1, 1, 1, 1, 2, 2)])


@probe(source="jax-ml/jax#457", devices=2)
def outputs_as_inputs(env):
    """A step that is called with its own result is compiled once, also with donation."""
    counts = Counts()
    result = {}
    for name, keywords in {"plain": {}, "donated": {"donate_argnums": 0}}.items():
        fn = jax.jit(
            counts.wrap(lambda state: {"x": state["x"] * 2, "n": state["n"] + 1}), **keywords
        )
        state = {"x": jnp.asarray(vector()), "n": jnp.int32(0)}
        before = counts.traces, counts.compilations
        for _ in range(3):
            state = fn(state)
        result[name] = [counts.traces - before[0], counts.compilations - before[1]]
    return Observed(result, reference={"plain": [1, 1], "donated": [1, 1]})


def _add_one(x):
    return x + 1


def _square_sum(x):
    return (x * x).sum()


def _running_sum(c, x):
    return c + x, c


def _twice(wrap):
    f = jax.jit(wrap(_add_one))
    return lambda x: f(x) + f(x + 1)


def _scan_grad(wrap):
    body = wrap(lambda c, z: (c + z * z, None))
    return jax.grad(lambda x: lax.scan(body, jnp.float32(0), x)[0])


BODIES = {
    "scan": lambda wrap: functools.partial(lax.scan, wrap(_running_sum), 0.0),
    "scan_carry_of_another_type": lambda wrap: functools.partial(lax.scan, wrap(_running_sum), 0),
    "while_loop": lambda wrap: functools.partial(
        lax.while_loop, lambda c: c[0] < 9, wrap(_add_one)
    ),
    "fori_loop": lambda wrap: functools.partial(
        lax.fori_loop, 0, 3, wrap(lambda _, c: _add_one(c))
    ),
    "cond": lambda wrap: lambda x: lax.cond(x[0] > 0, wrap(_add_one), jnp.sin, x),
    "map": lambda wrap: functools.partial(lax.map, wrap(_add_one)),
    "vmap": lambda wrap: jax.vmap(wrap(_add_one)),
    "grad": lambda wrap: jax.grad(wrap(_square_sum)),
    "hessian": lambda wrap: jax.hessian(wrap(_square_sum)),
    "remat_grad": lambda wrap: jax.grad(jax.checkpoint(wrap(_square_sum))),
    "scan_grad": _scan_grad,
    "jit_twice": _twice,
    "associative_scan": lambda wrap: functools.partial(lax.associative_scan, wrap(jnp.add)),
}


@probe(
    source="jax-ml/jax#19129",
    records="the number of traces of a body is an implementation detail that costs users time",
)
def traces_of_a_body(env):
    """How often the Python body of each loop, branch and transformation runs in one trace."""
    result = {}
    for name, build in BODIES.items():
        counts = Counts()
        try:
            jax.block_until_ready(jax.jit(build(counts.wrap))(vector()))
            result[name] = counts.traces
        except Exception as error:  # noqa: BLE001 - any error is an outcome
            result[name] = type(error).__name__
    return result


@probe(source="jax-ml/jax#19129", devices=2)
def contexts_of_a_trace(env):
    """Contexts that change results trace again, as x64; names, logs and checks of leaks do not."""
    counts = Counts()
    fn = jax.jit(counts.wrap(lambda x: x * 2))

    def call(context):
        with context:
            return fn(vector())

    contexts = [
        jax.named_scope("here"),
        jax.log_compiles(False),
        jax.checking_leaks(),
        env.compat.enable_x64(True),
        jax.disable_jit(False),
    ]
    found = counts.after_each(
        [lambda: fn(vector())] + [functools.partial(call, c) for c in contexts]
    )
    return Observed([n for n, _ in found], reference=[1, 1, 1, 1, 2, 2])


@probe(source="jax-ml/jax#19129")
def operations_outside_jit(env):
    """The first call of an operation outside of jit compiles it, the second does not.

    Another shape or dtype compiles again, another value does not.
    """
    counts = Counts()
    x, y, z = (jax.device_put(a) for a in (vector(), vector() + 1, vector(4)))
    calls = [lambda: jnp.sin(x), lambda: jnp.sin(y), lambda: jnp.sin(z), lambda: jnp.sin(x)]
    return Observed([n for _, n in counts.after_each(calls)], reference=[1, 1, 2, 2])
