"""What the stages of a program tell about it: Traced, Lowered, Compiled.

Tools are built on these attributes, and nearly each of them was renamed, became another type or
was added between 0.4.30 and 0.8.
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

from ._helpers import FOUR, message, told


def _lowered():
    return jax.jit(lambda x, y=2.0: {"s": x + y, "t": (x * y).sum()}).lower(FOUR, y=3.0)


@probe(
    source="jax-ml/jax@eb194e9ac17f",
    params={
        "traced": {"stage": "traced"},
        "lowered": {"stage": "lowered"},
        "compiled": {"stage": "compiled"},
    },
    deviations=[
        deviation(
            "jax<0.7",
            params=["traced", "lowered"],
            outcome="ok",
            match="OutInfo",
            reason="it was a jax.stages.OutInfo",
        ),
        deviation(
            "jax<0.7",
            params=["compiled"],
            error="AttributeError",
            match="out_info",
            reason="a Compiled had none",
            issue="jax-ml/jax@00dbcee8add6",
        ),
    ],
)
def out_info(env, stage):
    """What comes out, as ShapeDtypeStructs, from every stage since 0.7.0."""
    traced = jax.jit(lambda x: {"s": x + 1, "t": x.sum()}).trace(FOUR)
    stages = {"traced": traced, "lowered": traced.lower()}
    info = (stages["lowered"].compile() if stage == "compiled" else stages[stage]).out_info
    seen = {key: [type(v).__name__, list(v.shape), str(v.dtype)] for key, v in info.items()}
    name = "ShapeDtypeStruct"
    return Observed(seen, {"s": [name, [4], "float32"], "t": [name, [], "float32"]})


@probe(
    source="jax-ml/jax@d0cc2f139a1a",
    params={"traced": {"stage": "traced"}, "lowered": {"stage": "lowered"}},
    deviations=[
        deviation(
            "jax<0.8.1",
            params=["traced"],
            error="AttributeError",
            match="out_tree",
            reason="a Traced did not tell its out_tree",
        )
    ],
)
def trees_and_arguments(env, stage):
    """Structure and donation of arguments and results are told before anything is compiled."""
    traced = jax.jit(lambda x, *, y: (x + y, {"t": y}), donate_argnames="y").trace(1.0, y=FOUR)
    at = traced if stage == "traced" else traced.lower()
    donated = [leaf.donated for leaf in jax.tree_util.tree_leaves(at.args_info)]
    seen = [str(at.in_tree), str(at.out_tree), donated, list(at.donate_argnums)]
    trees = ["PyTreeDef(((*,), {'y': *}))", "PyTreeDef((*, {'t': *}))"]
    return Observed(seen, [*trees, [False, True], [1]])


def _order(compiled, name):
    """Return whether an attribute of a Compiled says row-major, or why it does not."""
    try:
        found = getattr(compiled, name)
    except AttributeError:
        return "AttributeError"
    if callable(found):
        return "method"
    return "ok" if "major_to_minor=(0, 1)" in str(found) else str(found)


@probe(
    source="jax-ml/jax@6e39a1810131",
    params={
        "formats": {"names": ["input_formats", "output_formats"]},
        "input_layouts": {"names": "input_layouts"},
    },
    deviations=[
        deviation(
            "jax<0.6.2",
            params=["formats"],
            outcome="ok",
            match="AttributeError",
            reason="they were called layouts",
            issue="jax-ml/jax@2c838d4ae3ff",
        ),
        deviation(
            "jax<0.4.33",
            params=["input_layouts"],
            outcome="ok",
            match="method",
            reason="it was a method, to be called",
            issue="jax-ml/jax@5ba8d6b81148",
        ),
        deviation(
            "jax>=0.4.33,<0.7",
            params=["input_layouts"],
            outcome="ok",
            match="ok",
            reason="a property, until it was renamed",
        ),
    ],
)
def formats(env, names):
    """How arrays lie in memory: `input_layouts` until 0.6.2, `input_formats` from 0.6.2 on.

    Both are there in 0.6.2 alone. `major_to_minor` says the order of a row-major matrix.
    """
    compiled = jax.jit(lambda x: x + 1).lower(np.ones((2, 3), np.float32)).compile()
    if names == "input_layouts":
        return Observed(_order(compiled, names), "AttributeError")
    return Observed({name: _order(compiled, name) for name in names}, dict.fromkeys(names, "ok"))


@probe(
    source="jax-ml/jax@21fd50749ac8",
    deviations=[deviation("jax<0.4.31", outcome="ok", reason="the platforms went by position")],
)
def platforms_by_keyword(env):
    """`Traced.lower(lowering_platforms=...)` by keyword only, since 0.4.31."""
    traced = jax.jit(lambda x: x + 1).trace(FOUR)
    return Observed(told(lambda: traced.lower(("tpu",)).as_text()), "TypeError")


@probe(
    source="jax-ml/jax@dd0447a7c6ba",
    params={"off": {"debug": False}, "on": {"debug": True}},
    deviations=[
        deviation(
            "jax<0.5",
            error="TypeError",
            match="unexpected keyword argument 'debug_info'",
            reason="locations could not be asked for",
        )
    ],
)
def locations(env, debug):
    """`as_text(debug_info=True)` names operations and arguments of the source, from 0.5.0 on."""
    lowered = jax.jit(lambda d: jnp.sin(d["a"])).lower({"a": FOUR})
    text = lowered.as_text(debug_info=debug)
    seen = ["loc(" in text, "d['a']" in text, "/sin" in text]
    return Observed(seen, [debug] * 3)


@probe(
    source="jax-ml/jax@c1cd7f9e2d03",
    params={"mhlo": {"only": "mhlo"}, "others": {"only": None}},
    deviations=[
        deviation(
            "jax<0.4.33",
            params=["mhlo"],
            outcome="ok",
            match="DeprecationWarning",
            reason="MHLO was deprecated, and there",
        )
    ],
)
def dialects(env, only):
    """A lowered program prints as StableHLO or HLO; as MHLO no more since 0.4.32."""
    lowered = _lowered()
    if only:
        return Observed(told(lambda: lowered.as_text(dialect=only)), "ValueError")
    expected = {"stablehlo": "ok", "hlo": "ok", "llvm": "ValueError"}
    seen = {name: told(lambda name=name: lowered.as_text(dialect=name)) for name in expected}
    return Observed(seen, expected)


def _named(name):
    def fn(x):
        return x

    fn.__name__ = name
    return fn


@probe(
    source="jax-ml/jax@27e454ddb81e",
    params={
        "function": {"kind": "function", "expected": "jit_step"},
        "lambda": {"kind": "lambda", "expected": "jit__lambda"},
        "partial": {"kind": "partial", "expected": "jit_step"},
        "odd": {"kind": "odd", "expected": "jit_a_b_c"},
    },
    deviations=[
        deviation(
            "jax<0.7",
            params=["lambda", "odd"],
            outcome="ok",
            match="_',",
            reason="a bracket at the end was an underscore more",
            issue="jax-ml/jax@5f805ce2a86b",
        ),
        deviation(
            "jax<0.6.2",
            params=["partial"],
            outcome="ok",
            match="jit__unnamed_wrapped_function_",
            reason="a partial has no name of its own",
        ),
        deviation(
            "jax>=0.9,<0.9.1",
            params=["partial"],
            outcome="ok",
            match="jit__unknown",
            reason="the name was lost when jit was written anew",
            issue="jax-ml/jax@2150efed4429",
        ),
    ],
)
def name_of_the_module(env, kind, expected):
    """The module is named after the function: in profiles, dumps and the compilation cache.

    A `functools.partial` takes the name of what it wraps from 0.6.2 on, but for 0.9.0.
    """
    step = _named("step")
    fn = {
        "function": step,
        "lambda": lambda x: x,
        "partial": functools.partial(step),
        "odd": _named("a b<c>"),
    }[kind]
    text = jax.jit(fn).lower(FOUR).as_text()
    return Observed(re.search(r"module @(\S+)", text)[1], expected)


@probe(
    source="jax-ml/jax@1be801bac886",
    deviations=[
        deviation("jax<0.5.3", outcome="ok", reason="the path alone, empty for a single result")
    ],
)
def names_of_results(env):
    """`jax.result_info` in StableHLO starts with `result` since 0.5.3; scripts matched the path."""
    texts = [_lowered().as_text(), jax.jit(lambda x: x + 1).lower(FOUR).as_text()]
    seen = [re.findall(r'jax.result_info = "([^"]*)"', text) for text in texts]
    return Observed(seen, [["result['s']", "result['t']"], ["result"]])


@probe(
    source="jax-ml/jax@a2973be05194",
    deviations=[deviation("jax<0.4.35", outcome="ok", reason="the default was spelled out")],
)
def attributes_of_arguments(env):
    """Arguments carry no `mhlo.layout_mode` any more since 0.4.35, where it is the default."""
    text = jax.jit(lambda x: x + 1).lower(FOUR).as_text()
    return Observed(re.search(r"@main\((.*?)\) ->", text)[1], "%arg0: tensor<4xf32>")


@probe(
    source="jax-ml/jax@2d72e8de8465",
    deviations=[
        deviation("jax<0.5", outcome="ok", match="list", reason="a list with one dict in it")
    ],
)
def cost_is_a_dict(env):
    """`Compiled.cost_analysis()` is a dict, as `Lowered.cost_analysis()` always was.

    The changelog has it under 0.4.38; what was released changed in 0.5.0. Take `[0]` of a list.
    """
    lowered = _lowered()
    seen = [type(stage.cost_analysis()).__name__ for stage in (lowered, lowered.compile())]
    return Observed(seen, ["dict", "dict"])


@probe(source="jax-ml/jax#12204")
def cost_by_hand(env):
    """Operations and bytes as counted by hand; the body of a loop counts once, however often run.

    A product of two 64 by 64 matrices is 2 * 64**3 flops. In a loop of ten it is that and what the
    counter costs: the cost of a scanned model is that of one layer.
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
    seen = {}
    for op, (fn, args) in programs.items():
        cost = jax.jit(fn).lower(*args).compile().cost_analysis()
        cost = cost[0] if isinstance(cost, list) else cost
        seen[op] = {key: cost[key] for key in expected[op]}
    return Observed(seen, expected)


@probe(
    source="jax-ml/jax@6b98034efcba",
    deviations=[
        deviation("jax<0.7", outcome="ok", match="None", reason="the peak was not told"),
    ],
)
def memory_by_hand(env):
    """Bytes of arguments, results and what they share, as counted by hand; the peak from 0.7.0."""

    def sizes(donated):
        fn = jax.jit(lambda x: x + 1, donate_argnums=donated)
        stats = fn.lower(np.ones(1024, np.float32)).compile().memory_analysis()
        names = ("argument", "output", "alias", "temp")
        seen = {name: getattr(stats, f"{name}_size_in_bytes") for name in names}
        return {**seen, "peak": getattr(stats, "peak_memory_in_bytes", None)}

    kept = {"argument": 4096, "output": 4096, "alias": 0, "temp": 0, "peak": 8192}
    donated = {**kept, "alias": 4096, "peak": 4096}
    return Observed({"kept": sizes(()), "donated": sizes((0,))}, {"kept": kept, "donated": donated})


@probe(
    source="jax-ml/jax@7412adec21c5",
    deviations=[deviation("jax<0.6.1", outcome="ok", reason="it held the HLO module instead")],
)
def serialized_memory(env):
    """What memory_analysis holds serialized: the buffer assignment, no more the module (0.6.1)."""
    stats = _lowered().compile().memory_analysis()
    seen = [name for name in dir(stats) if name.startswith("serialized")]
    return Observed(seen, ["serialized_buffer_assignment_proto"])


@probe(
    source="jax-ml/jax@27a19b5ce61f",
    devices=4,
    releases="jax>=0.5.3",
    deviations=[
        deviation(
            "jax<0.7",
            error="TypeError|ValueError|RuntimeError|AttributeError",
            reason="an abstract mesh could be lowered for, but devices were never given",
        ),
    ],
)
def devices_at_compile(env):
    """Traced and lowered for a mesh without devices; they are given to `compile`, from 0.7.0 on."""
    mesh = env.mesh(4, "x")
    given = jax.ShapeDtypeStruct(
        (8,), np.float32, sharding=NamedSharding(mesh.abstract_mesh, P("x"))
    )
    lowered = jax.jit(lambda x: x * 2).trace(given).lower(lowering_platforms=("cpu",))
    compiled = lowered.compile(device_assignment=tuple(env.devices[3::-1]))
    x = np.arange(8, dtype=np.float32)
    result = compiled(jax.device_put(x, NamedSharding(type(mesh)(mesh.devices[::-1], "x"), P("x"))))
    held = [shard.device.id for shard in result.addressable_shards if shard.index[0].start == 0]
    return Observed({"value": result, "first": held}, {"value": 2.0 * x, "first": [3]})


def _by_platform(x):
    return lax.platform_dependent(x, cpu=lambda y: y + 1.0, tpu=lambda y: y + 2.0)


@probe(source="jax-ml/jax#18295", platforms=["cpu"])
def lowered_for_another_platform(env):
    """A program lowered for a TPU compiles on a CPU without a word, and takes the TPU's branch.

    Nothing in the Lowered object remembers what it was for. Lower for the platform that runs it.
    """
    x = np.zeros(4, np.float32)
    compiled = jax.jit(_by_platform).trace(x).lower(lowering_platforms=("tpu",)).compile()
    here = jax.jit(_by_platform).lower(x).compile()
    seen = {"tpu": compiled(x), "here": here(x)}
    return Observed(seen, {"tpu": np.full(4, 2.0), "here": np.full(4, 1.0)})


@probe(source="jax-ml/jax#18295", platforms=["cpu"])
def lowered_for_several(env):
    """For several platforms the module takes the index of one, and cannot be compiled here.

    Only jax.export runs such a module. `compile` fails with a mismatch of lengths.
    """
    lowered = jax.jit(_by_platform).trace(FOUR).lower(lowering_platforms=("cpu", "tpu"))
    (arguments,) = re.findall(r"@main\((.*?)\) ->", lowered.as_text())
    seen = ["_platform_index" in arguments, message(lambda: lowered.compile()(1.0)).split(":")[0]]
    return Observed(seen, [True, "ValueError"])


@probe(
    source="jax-ml/jax#26476",
    records="which kernel implements an operation is up to jax",
    params={
        "cholesky_cuda": {"op": "cholesky", "platform": "cuda"},
        "cholesky_cpu": {"op": "cholesky", "platform": "cpu"},
        "cholesky_tpu": {"op": "cholesky", "platform": "tpu"},
    },
)
def cross_lowering(env, op, platform):
    """What an operation is lowered to elsewhere, seen from a CPU without that hardware."""
    traced = jax.jit(getattr(jnp.linalg, op)).trace(np.eye(3, dtype=np.float32))
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    (found,) = re.findall(rf"custom_call @(\w+)|(stablehlo\.{op})", text)
    return found[0] or found[1]


@probe(
    source="jax-ml/jax#32542",
    deviations=[
        deviation(
            "jax<0.8.2",
            outcome="ok",
            reason="a range that does not start at zero was computed while tracing",
            issue="jax-ml/jax#32542",
        )
    ],
)
def range_is_no_constant(env):
    """`jnp.arange(1, n)` in a program is an iota since 0.8.2; it was n numbers within the program.

    They are in what is lowered, compiled, cached and exported: four bytes each.
    """
    jaxprs = [jax.make_jaxpr(lambda a=a: jnp.arange(*a))() for a in ((4,), (1, 5))]
    return Observed([len(jaxpr.consts) for jaxpr in jaxprs], [0, 0])
