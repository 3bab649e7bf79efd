"""The attributes of the stages of a program: Traced, Lowered, Compiled.

Tools build on these attributes, and nearly each of them was renamed, added or given another type
between 0.4.30 and 0.8.
"""

from __future__ import annotations

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import FOUR, classify_outcome, format_error


def _lower_example():
    return jax.jit(lambda x, y=2.0: {"s": x + y, "t": (x * y).sum()}).lower(FOUR, y=3.0)


OLD_TYPE_OF_OUT_INFO = deviation(
    "jax<0.7",
    params=["traced", "lowered"],
    outcome="ok",
    match="OutInfo",
    reason="out_info held jax.stages.OutInfo",
)
COMPILED_HAD_NO_OUT_INFO = deviation(
    "jax<0.7",
    params=["compiled"],
    error="AttributeError",
    match="out_info",
    reason="a Compiled had no out_info",
    issue="jax-ml/jax@00dbcee8add6",
)


@probe(
    source="jax-ml/jax@eb194e9ac17f",
    params={
        "traced": {"stage": "traced"},
        "lowered": {"stage": "lowered"},
        "compiled": {"stage": "compiled"},
    },
    deviations=[OLD_TYPE_OF_OUT_INFO, COMPILED_HAD_NO_OUT_INFO],
)
def out_info(env, stage):
    """`out_info` of every stage holds ShapeDtypeStructs from 0.7.0."""
    traced = jax.jit(lambda x: {"s": x + 1, "t": x.sum()}).trace(FOUR)
    stages = {"traced": traced, "lowered": traced.lower()}
    info = (stages["lowered"].compile() if stage == "compiled" else stages[stage]).out_info
    result = {key: [type(v).__name__, list(v.shape), str(v.dtype)] for key, v in info.items()}
    name = "ShapeDtypeStruct"
    return Observed(result, {"s": [name, [4], "float32"], "t": [name, [], "float32"]})


TRACED_HAD_NO_OUT_TREE = deviation(
    "jax<0.8.1",
    params=["traced"],
    error="AttributeError",
    match="out_tree",
    reason="a Traced had no out_tree",
)


@probe(
    source="jax-ml/jax@d0cc2f139a1a",
    params={"traced": {"stage": "traced"}, "lowered": {"stage": "lowered"}},
    deviations=[TRACED_HAD_NO_OUT_TREE],
)
def trees_and_arguments(env, stage):
    """Structure and donation of arguments and results are known before compilation."""
    traced = jax.jit(lambda x, *, y: (x + y, {"t": y}), donate_argnames="y").trace(1.0, y=FOUR)
    at = traced if stage == "traced" else traced.lower()
    donated = [leaf.donated for leaf in jax.tree_util.tree_leaves(at.args_info)]
    result = [str(at.in_tree), str(at.out_tree), donated, list(at.donate_argnums)]
    trees = ["PyTreeDef(((*,), {'y': *}))", "PyTreeDef((*, {'t': *}))"]
    return Observed(result, [*trees, [False, True], [1]])


def _check_row_major(compiled, name):
    """Return `ok` if an attribute of a Compiled shows row-major order, else a description of it."""
    try:
        found = getattr(compiled, name)
    except AttributeError:
        return "AttributeError"
    if callable(found):
        return "method"
    return "ok" if "major_to_minor=(0, 1)" in str(found) else str(found)


FORMATS_WERE_LAYOUTS = deviation(
    "jax<0.6.2",
    params=["formats"],
    outcome="ok",
    match="AttributeError",
    reason="the attributes were called layouts",
    issue="jax-ml/jax@2c838d4ae3ff",
)
LAYOUTS_WERE_A_METHOD = deviation(
    "jax<0.4.33",
    params=["input_layouts"],
    outcome="ok",
    match="method",
    reason="input_layouts was a method",
    issue="jax-ml/jax@5ba8d6b81148",
)
LAYOUTS_WERE_A_PROPERTY = deviation(
    "jax>=0.4.33,<0.7",
    params=["input_layouts"],
    outcome="ok",
    match="ok",
    reason="input_layouts was a property until it was renamed",
)


@probe(
    source="jax-ml/jax@6e39a1810131",
    params={
        "formats": {"names": ["input_formats", "output_formats"]},
        "input_layouts": {"names": "input_layouts"},
    },
    deviations=[FORMATS_WERE_LAYOUTS, LAYOUTS_WERE_A_METHOD, LAYOUTS_WERE_A_PROPERTY],
)
def formats(env, names):
    """`input_layouts` describes the memory layout until 0.6.2, `input_formats` from 0.6.2.

    Only 0.6.2 has both. `major_to_minor` is the order of a row-major matrix.
    """
    compiled = jax.jit(lambda x: x + 1).lower(np.ones((2, 3), np.float32)).compile()
    if names == "input_layouts":
        return Observed(_check_row_major(compiled, names), "AttributeError")
    return Observed(
        {name: _check_row_major(compiled, name) for name in names}, dict.fromkeys(names, "ok")
    )


PLATFORMS_BY_POSITION = deviation(
    "jax<0.4.31", outcome="ok", reason="lower took the platforms by position"
)


@probe(source="jax-ml/jax@21fd50749ac8", deviations=[PLATFORMS_BY_POSITION])
def platforms_by_keyword(env):
    """`Traced.lower` takes `lowering_platforms` by keyword only from 0.4.31."""
    traced = jax.jit(lambda x: x + 1).trace(FOUR)
    return Observed(classify_outcome(lambda: traced.lower(("tpu",)).as_text()), "TypeError")


NO_LOCATIONS_ON_REQUEST = deviation(
    "jax<0.5",
    error="TypeError",
    match="unexpected keyword argument 'debug_info'",
    reason="as_text had no keyword for locations",
)


@probe(
    source="jax-ml/jax@dd0447a7c6ba",
    params={"off": {"debug": False}, "on": {"debug": True}},
    deviations=[NO_LOCATIONS_ON_REQUEST],
)
def locations(env, debug):
    """`as_text(debug_info=True)` prints names of operations and arguments from 0.5.0."""
    lowered = jax.jit(lambda d: jnp.sin(d["a"])).lower({"a": FOUR})
    text = lowered.as_text(debug_info=debug)
    result = ["loc(" in text, "d['a']" in text, "/sin" in text]
    return Observed(result, [debug] * 3)


MHLO_DEPRECATED = deviation(
    "jax<0.4.33",
    params=["mhlo"],
    outcome="ok",
    match="DeprecationWarning",
    reason="MHLO was deprecated, but still printed",
)


@probe(
    source="jax-ml/jax@c1cd7f9e2d03",
    params={"mhlo": {"only": "mhlo"}, "others": {"only": None}},
    deviations=[MHLO_DEPRECATED],
)
def dialects(env, only):
    """A lowered program prints as StableHLO or HLO, and from 0.4.32 no longer as MHLO."""
    lowered = _lower_example()
    if only:
        return Observed(classify_outcome(lambda: lowered.as_text(dialect=only)), "ValueError")
    expected = {"stablehlo": "ok", "hlo": "ok", "llvm": "ValueError"}
    result = {
        name: classify_outcome(lambda name=name: lowered.as_text(dialect=name)) for name in expected
    }
    return Observed(result, expected)


def _make_function(name):
    def fn(x):
        return x

    fn.__name__ = name
    return fn


BRACKET_WAS_AN_UNDERSCORE = deviation(
    "jax<0.7",
    params=["lambda", "odd"],
    outcome="ok",
    match="_',",
    reason="a closing bracket became another underscore",
    issue="jax-ml/jax@5f805ce2a86b",
)
PARTIAL_HAS_NO_NAME = deviation(
    "jax<0.6.2",
    params=["partial"],
    outcome="ok",
    match="jit__unnamed_wrapped_function_",
    reason="a partial itself has no name",
)
NAME_LOST_IN_REWRITE = deviation(
    "jax>=0.9,<0.9.1",
    params=["partial"],
    outcome="ok",
    match="jit__unknown",
    reason="the name was lost when jit was rewritten",
    issue="jax-ml/jax@2150efed4429",
)


@probe(
    source="jax-ml/jax@27e454ddb81e",
    params={
        "function": {"kind": "function", "expected": "jit_step"},
        "lambda": {"kind": "lambda", "expected": "jit__lambda"},
        "partial": {"kind": "partial", "expected": "jit_step"},
        "odd": {"kind": "odd", "expected": "jit_a_b_c"},
    },
    deviations=[BRACKET_WAS_AN_UNDERSCORE, PARTIAL_HAS_NO_NAME, NAME_LOST_IN_REWRITE],
)
def name_of_the_module(env, kind, expected):
    """The module has the name of the function, in profiles, dumps and the compilation cache.

    A `functools.partial` takes the name of the function that it wraps from 0.6.2, except in 0.9.0.
    """
    step = _make_function("step")
    fn = {
        "function": step,
        "lambda": lambda x: x,
        "partial": functools.partial(step),
        "odd": _make_function("a b<c>"),
    }[kind]
    text = jax.jit(fn).lower(FOUR).as_text()
    return Observed(re.search(r"module @(\S+)", text)[1], expected)


PATH_WITHOUT_RESULT = deviation(
    "jax<0.5.3", outcome="ok", reason="the name was the path alone, empty for a single result"
)


@probe(source="jax-ml/jax@1be801bac886", deviations=[PATH_WITHOUT_RESULT])
def names_of_results(env):
    """`jax.result_info` in StableHLO starts with `result` from 0.5.3; scripts matched the path."""
    texts = [_lower_example().as_text(), jax.jit(lambda x: x + 1).lower(FOUR).as_text()]
    result = [re.findall(r'jax.result_info = "([^"]*)"', text) for text in texts]
    return Observed(result, [["result['s']", "result['t']"], ["result"]])


DEFAULT_LAYOUT_PRINTED = deviation(
    "jax<0.4.35", outcome="ok", reason="the module spelled out the default layout"
)


@probe(source="jax-ml/jax@a2973be05194", deviations=[DEFAULT_LAYOUT_PRINTED])
def attributes_of_arguments(env):
    """Arguments carry no `mhlo.layout_mode` from 0.4.35 if it is the default."""
    text = jax.jit(lambda x: x + 1).lower(FOUR).as_text()
    return Observed(re.search(r"@main\((.*?)\) ->", text)[1], "%arg0: tensor<4xf32>")


COST_WAS_A_LIST = deviation(
    "jax<0.5", outcome="ok", match="list", reason="cost_analysis returned a list with one dict"
)


@probe(source="jax-ml/jax@2d72e8de8465", platforms=("cpu",), deviations=[COST_WAS_A_LIST])
def cost_is_a_dict(env):
    """`Compiled.cost_analysis()` is a dict, as `Lowered.cost_analysis()` always was.

    The changelog lists the change under 0.4.38; the released code changed in 0.5.0. Before, take
    `[0]` of the list. On a GPU, 0.11.2 returns None for what is only lowered.
    """
    lowered = _lower_example()
    result = [type(stage.cost_analysis()).__name__ for stage in (lowered, lowered.compile())]
    return Observed(result, ["dict", "dict"])


@probe(source="jax-ml/jax#12204")
def cost_by_hand(env):
    """Operations and bytes are as counted manually; the body of a loop counts once.

    A product of two 64 by 64 matrices is 2 * 64**3 flops. A loop of ten products costs as much as
    one product and the counter, however often it runs: the cost of a scanned model is that of one
    layer.
    """
    square = np.ones((64, 64), np.float32)
    programs = {
        "matmul": (lambda a, b: a @ b, (square, square)),
        "add": (lambda a: a + 1.0, (square,)),
        "loop": (lambda a: lax.fori_loop(0, 10, lambda _, c: c @ c, a), (square,)),
    }
    expected = {
        "matmul": {"flops": 524288.0, "bytes accessed": 49152.0},
        "add": {"flops": 4096.0, "bytes accessed": 32768.0},
        "loop": {"flops": 524290.0},
    }
    result = {}
    for op, (fn, args) in programs.items():
        cost = jax.jit(fn).lower(*args).compile().cost_analysis()
        cost = cost[0] if isinstance(cost, list) else cost
        result[op] = {key: cost[key] for key in expected[op]}
    return Observed(result, expected)


PEAK_NOT_REPORTED = deviation(
    "jax<0.7", outcome="ok", match="None", reason="memory_analysis did not report the peak"
)


@probe(source="jax-ml/jax@6b98034efcba", deviations=[PEAK_NOT_REPORTED])
def memory_by_hand(env):
    """Bytes of arguments, results and aliases are as counted manually; the peak from 0.7.0."""

    def measure(donated):
        fn = jax.jit(lambda x: x + 1, donate_argnums=donated)
        stats = fn.lower(np.ones(1024, np.float32)).compile().memory_analysis()
        names = ("argument", "output", "alias", "temp")
        result = {name: getattr(stats, f"{name}_size_in_bytes") for name in names}
        return {**result, "peak": getattr(stats, "peak_memory_in_bytes", None)}

    kept = {"argument": 4096, "output": 4096, "alias": 0, "temp": 0, "peak": 8192}
    donated = {**kept, "alias": 4096, "peak": 4096}
    return Observed(
        {"kept": measure(()), "donated": measure((0,))}, {"kept": kept, "donated": donated}
    )


HLO_MODULE_SERIALIZED = deviation(
    "jax<0.6.1", outcome="ok", reason="memory_analysis held the serialized HLO module instead"
)


@probe(source="jax-ml/jax@7412adec21c5", deviations=[HLO_MODULE_SERIALIZED])
def serialized_memory(env):
    """`memory_analysis` holds the serialized buffer assignment from 0.6.1, not the module."""
    stats = _lower_example().compile().memory_analysis()
    result = [name for name in dir(stats) if name.startswith("serialized")]
    return Observed(result, ["serialized_buffer_assignment_proto"])


NO_DEVICES_AT_COMPILE = deviation(
    "jax<0.7",
    error="TypeError|ValueError|RuntimeError|AttributeError",
    reason="a program could be lowered for an abstract mesh, but never be given devices",
)


@probe(
    source="jax-ml/jax@27a19b5ce61f",
    devices=4,
    releases="jax>=0.5.3",
    deviations=[NO_DEVICES_AT_COMPILE],
)
def devices_at_compile(env):
    """A program lowered for a mesh without devices takes them in `compile` from 0.7.0."""
    mesh = env.mesh(4, "x")
    argument = jax.ShapeDtypeStruct(
        (8,), np.float32, sharding=NamedSharding(mesh.abstract_mesh, P("x"))
    )
    lowered = jax.jit(lambda x: x * 2).trace(argument).lower(lowering_platforms=("cpu",))
    compiled = lowered.compile(device_assignment=tuple(env.devices[3::-1]))
    x = np.arange(8, dtype=np.float32)
    result = compiled(jax.device_put(x, NamedSharding(type(mesh)(mesh.devices[::-1], "x"), P("x"))))
    first = [shard.device.id for shard in result.addressable_shards if shard.index[0].start == 0]
    return Observed({"value": result, "first": first}, {"value": 2.0 * x, "first": [3]})


def _by_platform(x):
    return lax.platform_dependent(x, cpu=lambda y: y + 1.0, tpu=lambda y: y + 2.0)


@probe(source="jax-ml/jax#18295", platforms=["cpu"])
def lowered_for_another_platform(env):
    """A program lowered for a TPU silently compiles on a CPU, and takes the TPU's branch.

    The Lowered object does not record its platform. Lower for the platform that runs the program.
    """
    x = np.zeros(4, np.float32)
    compiled = jax.jit(_by_platform).trace(x).lower(lowering_platforms=("tpu",)).compile()
    native = jax.jit(_by_platform).lower(x).compile()
    result = {"tpu": compiled(x), "here": native(x)}
    return Observed(result, {"tpu": np.full(4, 2.0), "here": np.full(4, 1.0)})


@probe(source="jax-ml/jax#18295", platforms=["cpu"])
def lowered_for_several(env):
    """A module for several platforms takes a platform index, and cannot be compiled directly.

    Only jax.export runs such a module. `compile` fails with a mismatch of lengths.
    """
    lowered = jax.jit(_by_platform).trace(FOUR).lower(lowering_platforms=("cpu", "tpu"))
    (arguments,) = re.findall(r"@main\((.*?)\) ->", lowered.as_text())
    result = [
        "_platform_index" in arguments,
        format_error(lambda: lowered.compile()(1.0)).split(":")[0],
    ]
    return Observed(result, [True, "ValueError"])


@probe(
    source="jax-ml/jax#26476",
    records="which kernel implements an operation is up to JAX",
    params={
        "cholesky_cuda": {"op": "cholesky", "platform": "cuda"},
        "cholesky_cpu": {"op": "cholesky", "platform": "cpu"},
        "cholesky_tpu": {"op": "cholesky", "platform": "tpu"},
    },
)
def cross_lowering(env, op, platform):
    """A CPU without the hardware shows which kernel another platform uses for an operation."""
    traced = jax.jit(getattr(jnp.linalg, op)).trace(np.eye(3, dtype=np.float32))
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    (found,) = re.findall(rf"custom_call @(\w+)|(stablehlo\.{op})", text)
    return found[0] or found[1]


RANGE_COMPUTED_WHILE_TRACING = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="a range that does not start at zero was computed while tracing",
    issue="jax-ml/jax#32542",
)


@probe(source="jax-ml/jax#32542", deviations=[RANGE_COMPUTED_WHILE_TRACING])
def range_is_no_constant(env):
    """`jnp.arange(1, n)` in a program is an iota from 0.8.2; it was n numbers in the program.

    The numbers are lowered, compiled, cached and exported: four bytes each.
    """
    jaxprs = [jax.make_jaxpr(lambda a=a: jnp.arange(*a))() for a in ((4,), (1, 5))]
    return Observed([len(jaxpr.consts) for jaxpr in jaxprs], [0, 0])


NOT_CALLABLE = deviation(
    "jax<0.9",
    outcome="ok",
    reason="a Traced was not callable",
    issue="jax-ml/jax@d557a060b956",
)


@probe(source="jax-ml/jax@d557a060b956", deviations=[NOT_CALLABLE])
def calls_of_a_traced_function(env):
    """A Traced can be called like the function, with arguments of another shape, too."""
    one, pair = np.float32(1), np.float32([1, 2])
    traced = jax.jit(lambda x: x + 1).trace(one)
    calls = {
        "alike": lambda: traced(one),
        "another_shape": lambda: traced(pair),
        "under_jit": lambda: jax.jit(traced)(one),
        "gradient": lambda: jax.grad(traced)(one),
        "lanes": lambda: jax.vmap(traced)(pair),
    }
    return Observed(
        {name: refusal(call) for name, call in calls.items()}, dict.fromkeys(calls, "ran")
    )
