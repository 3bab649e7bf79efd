"""`jax_debug_nans` and `jax_debug_infs`: where a NaN or an infinity is found, and by which error.

The options check the results of every compiled function. A function whose result has a NaN runs
again operation by operation, to name the operation.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import call_outcome, floats

defaults(platforms=("cpu",))

FOUND = "invalid value (nan)"
NAN = float("nan")


def branch(x):
    """Return a root, or 0 for a number that is not positive; its derivative at 0 is a NaN."""
    return jnp.where(x > 0, jnp.sqrt(x), 0.0)


NAN_MADE_BY = {
    "eager operation": lambda: jnp.log(floats(-1)),
    "jit": lambda: jax.jit(lambda x: jax.jit(jnp.log)(x) + 1)(floats(-1)),
    "jit of grad": lambda: jax.jit(jax.grad(branch))(floats(0)),
    "scan": lambda: lax.scan(lambda c, x: (c, jnp.log(x)), 0.0, floats(1, -1)),
    "argument": lambda: jax.jit(lambda x: x + 1)(floats(NAN)),
}


@probe(source="jax-ml/jax#482", config={"jax_debug_nans": True}, params=[*NAN_MADE_BY])
def nan_found(env, name):
    """A NaN in the result of an operation, or of a jitted function, is a FloatingPointError."""
    return Observed(call_outcome(NAN_MADE_BY[name]), "FloatingPointError")


@probe(
    source="jax-ml/jax@6d8be966a00e",
    config={"jax_debug_nans": True},
    devices=4,
    params={"eager": {"jitted": False}, "jitted": {"jitted": True}},
)
def nan_found_in_shards(env, jitted):
    """A NaN in one shard of the result of shard_map is a FloatingPointError."""
    mesh = env.mesh(4, "x")
    f = env.compat.shard_map(jnp.log, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    f = jax.jit(f) if jitted else f
    return Observed(call_outcome(lambda: f(floats(1, 1, -1, 1))), "FloatingPointError")


OPERATION_NOT_NAMED = deviation(
    "jax<0.5.1",
    outcome="ok",
    reason="the function ran compiled again; the error claims that the NaN vanished without jit",
    issue="jax-ml/jax#24955",
)


@probe(source="jax-ml/jax#24955", config={"jax_debug_nans": True}, deviations=[OPERATION_NOT_NAMED])
def operation_named(env):
    """The error names the operation that made the NaN within a jitted function."""

    def f(x):
        return jnp.exp(jnp.sqrt(x) + 1)

    words = ("encountered in sqrt", "did not produce")
    return Observed(
        call_outcome(lambda: jax.jit(f)(floats(-1)), words), f"FloatingPointError: {words[0]}"
    )


@probe(source="jax-ml/jax#482", config={"jax_debug_nans": True})
def nan_that_stays_inside(env):
    """A NaN that does not leave a jitted function is not found: only its result is checked."""
    inside = jax.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0.0))
    observed = {
        "jit": call_outcome(lambda: inside(floats(-1))),
        "isnan": call_outcome(lambda: jax.jit(lambda x: jnp.isnan(jnp.log(x)))(floats(-1))),
        "infinity": call_outcome(lambda: jnp.exp(floats(1000))),
        "no jit": call_outcome(lambda: jnp.where(np.bool_(False), jnp.log(floats(-1)), 0.0)),
    }
    ran = dict.fromkeys(("jit", "isnan", "infinity"), "ran")
    return Observed(observed, {**ran, "no jit": "FloatingPointError"})


HOOK_LOST = deviation(
    "jax>=0.8",
    outcome="ok",
    reason="leaving a context sets the hook of the thread to none, which hides the global hook",
    issue="jax-ml/jax@6ddd060b0188",
)
OPTIONS = {"nans": {"option": "debug_nans"}, "infs": {"option": "debug_infs"}}


@probe(source="jax-ml/jax@6ddd060b0188", params=OPTIONS, deviations=[HOOK_LOST])
def option_after_a_context(env, option):
    """From 0.8.0, any use of a `debug_nans` or `debug_infs` context switches the global check off.

    Only the first call of each jitted function is checked after that: later NaNs are silent.
    """
    jax.config.update(f"jax_{option}", True)
    try:
        with getattr(jax, option)(False):
            pass
        f = jax.jit(lambda x: 1 / x if option == "debug_infs" else jnp.log(x))
        observed = {x: call_outcome(lambda x=x: f(floats(x))) for x in (1, -1, 0)}
    finally:
        jax.config.update(f"jax_{option}", False)
    bad = 0 if option == "debug_infs" else -1
    return Observed(observed[bad], "FloatingPointError")


@probe(source="jax-ml/jax#482", params={"context": {"context": True}, "option": {"context": False}})
def function_compiled_before(env, context):
    """The check applies to functions that were compiled and called before it was switched on."""
    f = jax.jit(jnp.log)
    f(floats(1))
    if context:
        with jax.debug_nans(True):
            outcomes = [call_outcome(lambda: f(floats(x))) for x in (2, -1)]
    else:
        jax.config.update("jax_debug_nans", True)
        outcomes = [call_outcome(lambda: f(floats(x))) for x in (2, -1)]
        jax.config.update("jax_debug_nans", False)
    return Observed(outcomes, ["ran", "FloatingPointError"])


INTERNAL_ERROR = deviation(
    "jax>=0.5.1",
    outcome="ok",
    reason="a compiled program raises an internal error, which is no FloatingPointError",
    issue="jax-ml/jax#25519",
)


@probe(source="jax-ml/jax#25519", config={"jax_debug_nans": True}, deviations=[INTERNAL_ERROR])
def compiled_ahead_of_time(env):
    """`except FloatingPointError` does not catch the NaN of a program compiled ahead of time."""
    program = jax.jit(jnp.log).lower(floats(-1)).compile()
    return Observed(call_outcome(lambda: program(floats(-1))), "FloatingPointError")


def attend():
    """Return the attention of zeros, masked, in float64."""
    x, mask = jnp.zeros((2, 1, 4), float), np.array([[[True, False]] * 2])
    return jax.nn.dot_product_attention(x, x, x, mask=mask)


FINITE = {
    "ndtri": (lambda: jax.scipy.special.ndtri(floats(0.5)), "infs"),
    "softmax where": (lambda: jax.nn.softmax(floats(1, 2), where=np.array([True, False])), "infs"),
    "segment_max": (lambda: jax.ops.segment_max(floats(1, 2), np.zeros(2, int), 1), "infs"),
    "xlogy": (lambda: jax.scipy.special.xlogy(floats(0), floats(0)), "nans"),
    "attention": (attend, "infs"),
}
INFINITE_CONSTANT = deviation(
    params=["softmax where", "segment_max"],
    outcome="ok",
    reason="the function fills in an infinity, which the check finds outside of jit",
    issue="jax-ml/jax#29328",
)
NAN_REPLACED_LATER = deviation(
    params=["xlogy"],
    outcome="ok",
    reason="0 log 0 is computed, found, and would be replaced by 0",
    issue="jax-ml/jax#29328",
)
INFINITY_OF_NDTRI = deviation(
    "jax<0.6.2",
    params=["ndtri"],
    outcome="ok",
    reason="infinities for the bounds were computed in any case",
    issue="jax-ml/jax#29328",
)
NO_ATTENTION = deviation(
    "jax<0.4.31",
    params=["attention"],
    outcome="ok",
    match="AttributeError",
    reason="the function did not exist",
    issue="jax-ml/jax#21371",
)
MASK_TOO_LARGE = deviation(
    "jax>=0.4.31,<0.10.1",
    params=["attention"],
    outcome="ok",
    reason="the number for masked entries overflowed when it was rounded to float32",
    issue="jax-ml/jax#37422",
)


@probe(
    source="jax-ml/jax#29328",
    params=[*FINITE],
    deviations=[
        INFINITE_CONSTANT,
        NAN_REPLACED_LATER,
        INFINITY_OF_NDTRI,
        NO_ATTENTION,
        MASK_TOO_LARGE,
    ],
)
def finite_result(env, name):
    """Some functions with a finite result fail under the options, by an infinity or NaN inside."""
    call, option = FINITE[name]
    with env.compat.enable_x64(name == "attention"), getattr(jax, f"debug_{option}")(True):
        return Observed(call_outcome(call), "ran")


NAN_IN_A_CONSTANT_FOUND = deviation(
    "jax<0.4.36",
    error="FloatingPointError",
    match="convert_element_type",
    reason="NaN, which marks medians of NaN, was itself found when it was converted",
    issue="jax-ml/jax#24732",
)


@probe(
    source="jax-ml/jax#24732",
    config={"jax_debug_nans": True},
    deviations=[NAN_IN_A_CONSTANT_FOUND],
)
def median_without_jit(env):
    """`jnp.median` of finite numbers passes `jax_debug_nans` under `disable_jit` from 0.4.36 on."""
    with jax.disable_jit():
        return Observed(jnp.median(floats(0, 1, 2, 3)), reference=np.float32(1.5))


LINE_NOT_NAMED_BEFORE = deviation(
    "jax<0.5.1",
    outcome="ok",
    reason="the backward pass ran without jit, and the error claims that the NaN vanished",
    issue="jax-ml/jax#24955",
)
LINE_NOT_NAMED = deviation(
    "jax>=0.8.1",
    outcome="ok",
    reason="the new backward pass does not add the line to the error",
)


@probe(
    source="jax-ml/jax#24955",
    config={"jax_debug_nans": True},
    deviations=[LINE_NOT_NAMED_BEFORE, LINE_NOT_NAMED],
)
def line_of_a_backward_pass(env):
    """The error about a NaN in a backward pass names the line of the function."""
    f = jax.jit(lambda x: jnp.sqrt(x * x))
    words = ("encountered in mul", "When differentiating the code")
    observed = call_outcome(lambda: jax.grad(f)(floats(0)), words)
    return Observed(observed, f"FloatingPointError: {': '.join(words)}")
