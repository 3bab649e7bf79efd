"""`jax.experimental.serialize_executable`: compiled functions that are stored and loaded."""

import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable as se
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import describe, open_cache, reload, run_process, save, vector

defaults(platforms=("cpu",))


def _tree():
    def f(tree, *, scale):
        return {"sum": tree["a"] + tree["b"][0], "scaled": [scale * tree["a"], None]}

    tree = {"a": vector(), "b": (vector() + 1,)}
    exact = {"sum": 2 * vector() + 1, "scaled": [3 * vector(), None]}
    return f, (tree,), {"scale": np.float32(3)}, exact


def _constant():
    table = vector() ** 2
    return lambda x: x + table, (vector(),), {}, vector() + vector() ** 2


def _unused():
    return lambda x, _: x + 1, (vector(), vector(4)), {}, vector() + 1


def _cholesky():
    a = np.array([[4, 2], [2, 5]], np.float32)
    return jnp.linalg.cholesky, (a,), {}, np.linalg.cholesky(a.astype(np.float64))


def _random():
    key = jax.random.key_data(jax.random.key(3))
    return (
        lambda data: jax.random.bits(jax.random.wrap_key_data(data), (4,)),
        (np.asarray(key),),
        {},
        None,
    )


PROGRAMS = {
    "tree": _tree,
    "constant": _constant,
    "unused": _unused,
    "cholesky": _cholesky,
    "random": _random,
}


@probe(source="jax-ml/jax#21231", params=[*PROGRAMS])
def loaded_again(env, name):
    """A loaded executable gives the value of the function, with its tree of arguments."""
    f, args, keywords, reference = PROGRAMS[name]()
    compiled = jax.jit(f).lower(*args, **keywords).compile()
    if reference is None:
        reference = compiled(*args, **keywords)
    return Observed(reload(compiled)(*args, **keywords), reference=reference)


CODE_NOT_SERIALIZED = deviation(
    params=["twice"],
    error="XlaRuntimeError|JaxRuntimeError",
    match="[Nn]ot found|Can't export CPU|Failed to find compiled symbol",
    reason="a loaded executable of a CPU does not keep its object code, which a second copy lacks",
)
CODE_NOT_IN_THE_CACHE = deviation(
    error="XlaRuntimeError|JaxRuntimeError",
    match="[Nn]ot found|Can't export CPU|Failed to find compiled symbol",
    reason="an executable of a CPU that came from the cache does not keep its object code",
)


@probe(
    source="jax-ml/jax#21231",
    params={"once": {"times": 1}, "twice": {"times": 2}},
    deviations=[CODE_NOT_SERIALIZED],
)
def serialized_again(env, times):
    """A loaded executable can be serialized and loaded again."""
    compiled = jax.jit(lambda x: jnp.tanh(x) @ x).lower(vector()).compile()
    exact = np.tanh(vector().astype(np.float64)) @ vector()
    for _ in range(times):
        compiled = reload(compiled)
    return Observed(compiled(vector()), reference=exact)


@probe(source="jax-ml/jax#21231", deviations=[CODE_NOT_IN_THE_CACHE])
def serialized_from_the_cache(env):
    """An executable that came from the persistent cache can be serialized and loaded."""
    with open_cache() as cache:
        lowered = jax.jit(lambda x: jnp.tanh(x) * 3).lower(vector())
        outcomes = [cache.outcome(lambda: lowered.compile() and 0)[0] for _ in range(2)]
        compiled = jax.jit(lambda x: jnp.tanh(x) * 3).lower(vector()).compile()
        value = reload(compiled)(vector())
    return Observed(
        {"outcomes": outcomes, "value": value},
        reference={"outcomes": ["miss", "hit"], "value": 3 * np.tanh(vector().astype(np.float64))},
    )


@probe(source="jax-ml/jax#21231", devices=4)
def loaded_shardings(env):
    """A loaded executable keeps the shardings of its arguments and results, and its devices."""
    mesh = env.mesh(4, "x")
    rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    x = jax.device_put(vector(), rows)
    compiled = jax.jit(lambda y: (2 * y, y.sum()), out_shardings=(rows, whole)).lower(x).compile()
    loaded = reload(compiled)
    doubled, total = loaded(x)
    result = {
        "values": (doubled, total),
        "rows": doubled.sharding.is_equivalent_to(rows, 1),
        "whole": total.sharding.is_equivalent_to(whole, 0),
        "input": loaded.input_shardings[0][0].is_equivalent_to(rows, 1),
        "outputs": [
            s.is_equivalent_to(t, 1)
            for s, t in zip(loaded.output_shardings, (rows, whole), strict=True)
        ],
    }
    exact = {"rows": True, "whole": True, "input": True, "outputs": [True, True]}
    return Observed(result, reference={"values": (2 * vector(), 28.0), **exact})


@probe(source="jax-ml/jax#21231")
def loaded_donation(env):
    """A loaded executable deletes its donated argument, as the compiled function does."""
    compiled = jax.jit(lambda x, y: x + y, donate_argnums=0).lower(vector(), vector()).compile()
    loaded = reload(compiled)
    x, y = (jax.jit(jnp.arange, static_argnums=0)(8.0) for _ in range(2))
    value = loaded(x, y)
    result = {"value": value, "deleted": [x.is_deleted(), y.is_deleted()]}
    return Observed(result, reference={"value": 2 * vector(), "deleted": [True, False]})


@probe(source="jax-ml/jax#21231")
def refused_calls(env):
    """A loaded executable refuses other shapes, dtypes, trees and tracers by a TypeError."""
    loaded = reload(jax.jit(lambda x: x + 1).lower(vector()).compile())
    outcomes = {
        "shape": describe(lambda: loaded(vector(4))),
        "dtype": describe(lambda: loaded(np.arange(8))),
        "keyword": describe(lambda: loaded(x=vector())),
        "in_jit": describe(lambda: jax.jit(loaded)(vector())),
    }
    return Observed(outcomes, reference=dict.fromkeys(outcomes, "TypeError"))


@probe(
    source="jax-ml/jax#21231",
    records="the methods of a loaded executable differ between releases and backends",
)
def inspected(env):
    """A loaded executable reports its HLO, costs, memory and types as far as the release can."""
    loaded = reload(jax.jit(lambda x: 2 * x).lower(vector()).compile())
    calls = {
        "hlo": lambda: "HloModule" in loaded.as_text(),
        "flops": lambda: bool(loaded.cost_analysis()),
        "memory": lambda: loaded.memory_analysis().output_size_in_bytes,
        "tree": lambda: str(loaded.in_tree),
        "types": lambda: str(loaded.in_avals),
    }
    result = {}
    for name, call in calls.items():
        try:
            result[name] = call()
        except Exception as error:  # noqa: BLE001 - any error is an outcome
            result[name] = type(error).__name__
    return result


def _callback(x):
    return jax.pure_callback(lambda y: np.asarray(y) + 1, jax.ShapeDtypeStruct((8,), "float32"), x)


@probe(
    source="jax-ml/jax#31469",
    records="whether a callback can be serialized depends on the release",
)
def serialized_callback(env):
    """Serializing a program with a Python callback, and loading and calling it."""
    compiled = jax.jit(_callback).lower(vector()).compile()
    outcome = describe(lambda: se.serialize(compiled) and 0)
    if outcome == "works":
        outcome = describe(lambda: reload(compiled)(vector()))
    return outcome


LOADER = """
import inspect, json, pickle, sys
import jax, numpy as np
from jax.experimental import serialize_executable as se
named = "execution_devices" in inspect.signature(se.deserialize_and_load).parameters
x, results = np.arange(8, dtype=np.float32), {}
for path in sys.argv[1:]:
    name, count = path.rsplit("/", 1)[-1].split("-")
    keywords = {"execution_devices": jax.devices()[: int(count)]} if named else {}
    stored = pickle.loads(open(path, "rb").read())
    value = jax.tree_util.tree_leaves(se.deserialize_and_load(*stored, **keywords)(x))[0]
    results[name] = [float(np.asarray(value).sum()), len(value.sharding.device_set)]
print(json.dumps(results))
"""


@probe(source="jax-ml/jax#21231", devices=4, timeout=180)
def in_another_process(env):
    """Executables for one device and for four load in another process of four devices."""
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    x = jax.ShapeDtypeStruct((8,), np.float32, sharding=rows)
    table = vector() + 1
    programs = {
        "tree-1": jax.jit(lambda y: {"double": 2 * y}).lower(vector()),
        "constant-1": jax.jit(lambda y: y * table).lower(vector()),
        "sharded-4": jax.jit(lambda y: y.sum() + y, in_shardings=rows, out_shardings=rows).lower(x),
    }
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{name}" for name in programs]
        for path, lowered in zip(paths, programs.values(), strict=True):
            save(path, lowered.compile())
        result = run_process(["-c", LOADER, *paths])
    exact = {"tree": [56.0, 1], "constant": [168.0, 1], "sharded": [252.0, 4]}
    return Observed(result, reference=exact)


@probe(
    source="openxla/xla#18286",
    devices=2,
    records="damaged bytes have no promised error",
)
def damaged_executable(env):
    """Bytes that end too early, or are something else, are refused when they are loaded."""
    payload, in_tree, out_tree = se.serialize(jax.jit(lambda x: 2 * x).lower(vector()).compile())
    parts = {"half": payload[: len(payload) // 2], "empty": b"", "text": b"not an executable"}
    return {
        name: describe(lambda data=data: se.deserialize_and_load(data, in_tree, out_tree) and 0)
        for name, data in parts.items()
    }


ABORTED = deviation(
    "jax>=0.6.1,<0.8.2",
    params=["default"],
    outcome="crashed",
    reason="by default it is loaded for all devices, and the call ends the process",
    issue="openxla/xla#18286",
)
REFUSED = deviation(
    "jax>=0.8.2",
    params=["default"],
    error="JaxRuntimeError",
    match="Expected args to execute_sharded_on_local_devices to have 2 shards",
    reason="by default it is loaded for all devices, and the call is refused",
    issue="openxla/xla#18286",
)
DEVICE_NOT_FOUND = deviation(
    "jax>=0.6.1",
    params=["second"],
    error="KeyError",
    reason="the shardings of the arguments still name the device of the compilation",
)


@probe(
    source="openxla/xla#18286",
    devices=2,
    releases="jax>=0.6.1",
    params={"default": {"number": None}, "first": {"number": 0}, "second": {"number": 1}},
    deviations=[ABORTED, REFUSED, DEVICE_NOT_FOUND],
)
def one_of_several_devices(env, number):
    """In a process of two devices, an executable for one must be loaded with `execution_devices`.

    Without the keyword, a call ends the process from 0.6.1 to 0.7.2.
    """
    stored = se.serialize(jax.jit(lambda x: 2 * x).lower(vector()).compile())
    keywords = {} if number is None else {"execution_devices": [env.devices[number]]}
    loaded = se.deserialize_and_load(*stored, **keywords)
    return Observed(loaded(vector()), reference=2 * vector())
