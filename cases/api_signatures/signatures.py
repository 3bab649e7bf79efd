"""Parameters of every public callable: names, order, kinds and defaults, one module a case.

A parameter that is renamed, removed or moved to the keywords breaks its callers, and a changed
default changes their numbers. Annotations are left out. A name whose access warns is `deprecated`.
There is no right answer to compare with, only dates. Which names exist is recorded by
`api_removals/names_that_are_not_there`, too, but without their parameters.
"""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import defaults, probe

from ._helpers import list_methods, list_signatures, load_module, render_default

defaults(platforms=("cpu",), source="jax-ml/jax#23196")

MODULES = [
    "jax.debug",
    "jax.dtypes",
    "jax.errors",
    "jax.export",
    "jax.ffi",
    "jax.lax.linalg",
    "jax.monitoring",
    "jax.nn",
    "jax.nn.initializers",
    "jax.numpy.fft",
    "jax.numpy.linalg",
    "jax.profiler",
    "jax.random",
    "jax.scipy.linalg",
    "jax.scipy.signal",
    "jax.scipy.special",
    "jax.sharding",
    "jax.stages",
    "jax.tree",
    "jax.tree_util",
    "jax.experimental.checkify",
    "jax.experimental.multihost_utils",
    "jax.experimental.pallas",
    "jax.experimental.shard_map",
]
OWN = (
    "jax.experimental.shard_map",
    "jax.experimental.multihost_utils",
    "jax.experimental.jet",
    "jax.experimental.ode",
    "jax.experimental.rnn",
)
"""Implementations: of their names, only those that they define are public."""


@probe(params=MODULES, records="jax decides which parameters its functions have")
def module(env, name):
    """The parameters of the callables of a public module."""
    return list_signatures(name, own=name in OWN)


LETTERS = {
    "jax.a-c": {"name": "jax", "first": "", "last": "d"},
    "jax.d-j": {"name": "jax", "first": "d", "last": "k"},
    "jax.k-z": {"name": "jax", "first": "k", "last": "~"},
    "jax.numpy.a": {"name": "jax.numpy", "first": "", "last": "b"},
    "jax.numpy.b": {"name": "jax.numpy", "first": "b", "last": "c"},
    "jax.numpy.c": {"name": "jax.numpy", "first": "c", "last": "d"},
    "jax.numpy.d": {"name": "jax.numpy", "first": "d", "last": "e"},
    "jax.numpy.e-f": {"name": "jax.numpy", "first": "e", "last": "g"},
    "jax.numpy.g-h": {"name": "jax.numpy", "first": "g", "last": "i"},
    "jax.numpy.i-j": {"name": "jax.numpy", "first": "i", "last": "k"},
    "jax.numpy.k-l": {"name": "jax.numpy", "first": "k", "last": "m"},
    "jax.numpy.m": {"name": "jax.numpy", "first": "m", "last": "n"},
    "jax.numpy.n": {"name": "jax.numpy", "first": "n", "last": "o"},
    "jax.numpy.o-p": {"name": "jax.numpy", "first": "o", "last": "q"},
    "jax.numpy.q-r": {"name": "jax.numpy", "first": "q", "last": "s"},
    "jax.numpy.s": {"name": "jax.numpy", "first": "s", "last": "t"},
    "jax.numpy.t": {"name": "jax.numpy", "first": "t", "last": "u"},
    "jax.numpy.u-z": {"name": "jax.numpy", "first": "u", "last": "~"},
    "jax.lax.a": {"name": "jax.lax", "first": "", "last": "b"},
    "jax.lax.b": {"name": "jax.lax", "first": "b", "last": "c"},
    "jax.lax.c": {"name": "jax.lax", "first": "c", "last": "d"},
    "jax.lax.d": {"name": "jax.lax", "first": "d", "last": "e"},
    "jax.lax.e-i": {"name": "jax.lax", "first": "e", "last": "j"},
    "jax.lax.j-m": {"name": "jax.lax", "first": "j", "last": "n"},
    "jax.lax.n-p": {"name": "jax.lax", "first": "n", "last": "q"},
    "jax.lax.q-r": {"name": "jax.lax", "first": "q", "last": "s"},
    "jax.lax.s": {"name": "jax.lax", "first": "s", "last": "t"},
    "jax.lax.t-z": {"name": "jax.lax", "first": "t", "last": "~"},
}
"""Large modules, by the first letters of the names."""


@probe(params=LETTERS, records="jax decides which parameters its functions have")
def large_module(env, name, first, last):
    """The parameters of the callables of a large public module, by first letters of the names."""
    return list_signatures(name, first, last)


SMALL = {
    "jax": [
        "jax.ad_checkpoint",
        "jax.custom_batching",
        "jax.custom_derivatives",
        "jax.distributed",
        "jax.dlpack",
        "jax.flatten_util",
        "jax.image",
        "jax.memory",
        "jax.ops",
        "jax.ref",
    ],
    "jax.scipy": [
        "jax.scipy.cluster.vq",
        "jax.scipy.fft",
        "jax.scipy.integrate",
        "jax.scipy.interpolate",
        "jax.scipy.ndimage",
        "jax.scipy.optimize",
        "jax.scipy.sparse.linalg",
        "jax.scipy.spatial.transform",
    ],
    "jax.experimental": [
        "jax.experimental",
        "jax.experimental.buffer_callback",
        "jax.experimental.compute_on",
        "jax.experimental.custom_dce",
        "jax.experimental.custom_partitioning",
        "jax.experimental.export",
        "jax.experimental.jet",
        "jax.experimental.key_reuse",
        "jax.experimental.layout",
        "jax.experimental.mesh_utils",
        "jax.experimental.ode",
        "jax.experimental.pjit",
        "jax.experimental.rnn",
        "jax.experimental.scheduling_groups",
        "jax.experimental.serialize_executable",
        "jax.experimental.shard",
        "jax.experimental.topologies",
        "jax.experimental.x64_context",
        "jax.experimental.xla_metadata",
    ],
}
"""Modules with few functions, by their package."""


@probe(params=[*SMALL], records="jax decides which parameters its functions have")
def small_modules(env, name):
    """The parameters of the callables of public modules with few of them."""
    return {key: list_signatures(key, own=key in OWN) for key in SMALL[name]}


@probe(records="jax decides which parameters its functions have")
def scipy_stats(env):
    """The parameters of `jax.scipy.stats` and of its distributions."""
    stats = load_module("jax.scipy.stats")
    names = ["jax.scipy.stats", *(f"jax.scipy.stats.{name}" for name in dir(stats))]
    return {name: list_signatures(name) for name in names if load_module(name)}


def find_class_of_at():
    """Return the class of `x.at[0]`, without an array on a device."""
    classes = []
    jax.eval_shape(lambda x: classes.append(type(x.at[0])), np.ones(1))
    return classes[0]


CLASSES = {
    "Array": lambda: jax.Array,
    "Array.at": find_class_of_at,
    "Exported": lambda: load_module("jax.export").Exported,
    "Mesh": lambda: jax.sharding.Mesh,
    "NamedSharding": lambda: jax.sharding.NamedSharding,
    "ShapeDtypeStruct": lambda: jax.ShapeDtypeStruct,
    "Sharding": lambda: jax.sharding.Sharding,
    "custom_jvp": lambda: jax.custom_jvp,
    "custom_vjp": lambda: jax.custom_vjp,
    "stages.Compiled": lambda: jax.stages.Compiled,
    "stages.Lowered": lambda: jax.stages.Lowered,
    "stages.Traced": lambda: jax.stages.Traced,
}


@probe(params=[*CLASSES], records="jax decides which methods its classes have")
def methods(env, name):
    """The methods of a public class with their parameters, and its attributes."""
    return list_methods(CLASSES[name]())


OPTIONS = {
    "a-e": {"first": "a", "last": "f"},
    "f-o": {"first": "f", "last": "p"},
    "p-z": {"first": "p", "last": "~"},
}
OF_THE_HOST = (
    "jax_compilation_cache_dir",
    "jax_enable_x64",
    "jax_num_cpu_devices",
    "jax_platforms",
    "jax_traceback_filtering",
)
"""Options that the harness sets."""


@probe(params=OPTIONS, records="jax decides which options it has")
def config_options(env, first, last):
    """The options of `jax.config` with their values, by the first letter after `jax_`."""
    load_module("jax.experimental.pallas")  # defines options of its own
    return {
        name: render_default(value)
        for name, value in jax.config.values.items()
        if first <= name.removeprefix("jax_") < last and name not in OF_THE_HOST
    }
