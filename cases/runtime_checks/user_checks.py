"""`checkify` with checks of the user: which check fails first, in loops, branches and lanes.

`checkify.checkify(f)` returns an error with the result of the function. The result is computed to
the end, as if no check had failed.
"""

from __future__ import annotations

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import checkify
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import checked, floats, message, positive_log

defaults(platforms=("cpu",))


def check_below(limit, word):
    """Return a function that checks that a number is below a limit, and returns it."""

    def f(x):
        checkify.check(x < limit, word + " {x}", x=x)
        return x

    return f


def first_of_two(x):
    """Return a number, after two checks of which both may fail."""
    checkify.check(x > 0, "first")
    checkify.check(x > 1, "second")
    return x


STEPS = np.arange(6, dtype=np.float32)
below = check_below(3, "value")

PLACES = {
    "first of two": (first_of_two, (floats(-1),), "first", -1),
    "scan": (
        lambda xs: lax.scan(lambda c, x: (c + below(x), None), jnp.float32(0), xs)[0],
        (STEPS,),
        "value 3.0",
        15,
    ),
    "while cond": (
        lambda x: lax.while_loop(lambda c: below(c) < 6, lambda c: c + 1, x),
        (floats(0),),
        "value 3.0",
        6,
    ),
    "branch taken": (
        lambda p, x: lax.cond(p, positive_log, lambda x: x, x),
        (np.bool_(True), floats(-1)),
        "x is -1.0",
        np.nan,
    ),
    "grad": (jax.grad(positive_log), (floats(-1),), "x is -1.0", -1),
}
"""Function, arguments, message and result."""


@probe(source="jax-ml/jax#8753", params=[*PLACES])
def place_of_the_check(env, name):
    """A failed check of the user is reported with its values; the function is run to its end."""
    f, args, expected, result = PLACES[name]
    found, value = checked(f, *args)
    value = np.nan_to_num(np.asarray(value), nan=-777)
    return Observed(
        (found, value), (expected, np.nan_to_num(np.array(result, value.dtype), nan=-777))
    )


@probe(source="jax-ml/jax#11250")
def lanes(env):
    """`checkify` of vmap reports the last lane that fails; vmap of `checkify` reports each."""
    x = floats(1, -2, -3)
    inside, _ = checked(jax.vmap(positive_log), x)
    error, _ = jax.jit(jax.vmap(checkify.checkify(positive_log)))(x)
    each = message(error).splitlines()
    return Observed(
        {"checkify of vmap": inside, "vmap of checkify": each},
        {
            "checkify of vmap": "x is -3.0",
            "vmap of checkify": ["at mapped index 1: x is -2.0", "at mapped index 2: x is -3.0"],
        },
    )


CONSTANTS_AND_CARRIES_MIXED_UP = deviation(
    "jax>=0.7,<0.8",
    error="TypeError",
    match="'int' object is not iterable",
    reason="the batching rule of while_loop lost the results of a check in the body",
)
TOO_MANY_CONSTANTS = deviation(
    "jax>=0.8,<0.11.1",
    error="ValueError",
    match="foreach.. argument 2 is longer",
    reason="the batching rule of while_loop lost the results of a check in the body",
)


@probe(source="jax-ml/jax#12843", deviations=[CONSTANTS_AND_CARRIES_MIXED_UP, TOO_MANY_CONSTANTS])
def lanes_of_a_loop(env):
    """`checkify` refuses a while_loop whose lanes stop at different times; the other order runs."""

    def count(x):
        return lax.while_loop(lambda c: c < 2, lambda c: below(c) + 1, x)

    x = floats(0, -6)
    refused = refusal(lambda: checked(jax.vmap(count), x), "batched while-loops")
    error, value = jax.jit(jax.vmap(checkify.checkify(count)))(x)
    return Observed(
        {"checkify of vmap": refused, "vmap of checkify": message(error), "value": value},
        {
            "checkify of vmap": "ValueError: batched while-loops",
            "vmap of checkify": "none",
            "value": floats(2, 2),
        },
    )


NO_RULE_FOR_REMAT = deviation(
    "jax<0.4.34",
    error="ValueError",
    match="not functionalized",
    reason="checkify had no rule for checkpoint",
    issue="jax-ml/jax@11fdda958367",
)


@probe(source="jax-ml/jax@11fdda958367", deviations=[NO_RULE_FOR_REMAT])
def checkpointed(env):
    """A check in a `checkpoint` function is reported from 0.4.34; without a gradient."""
    found, value = checked(jax.checkpoint(first_of_two), floats(0.5))
    return Observed((found, value), ("second", floats(0.5)))


NO_REPLICATION_RULE = deviation(
    "jax<0.6",
    params=["check_inside"],
    error="NotImplementedError",
    match="No replication rule for check",
    reason="the replication check of shard_map had no rule for a check",
    issue="jax-ml/jax@6c52ddc97f14",
)


@probe(
    source="jax-ml/jax@6c52ddc97f14",
    devices=4,
    params={"check_inside": {"inside": True}, "checkify_inside": {"inside": False}},
    deviations=[NO_REPLICATION_RULE],
)
def shards(env, inside):
    """A check in shard_map reports the shard that failed.

    Up to 0.5.3 `checkify` had to be inside of shard_map, which returns the errors of the shards.
    """

    def shard(x):
        checkify.check(x[0] < 5, "shard starts with {x}", x=x[0])
        return x

    def with_errors(x):
        error, y = checkify.checkify(shard)(x)
        return jax.tree_util.tree_map(lambda leaf: leaf[None], error), y

    specs = {"mesh": env.mesh(4, "x"), "in_specs": P("x"), "out_specs": P("x")}
    mapped = env.compat.shard_map(shard if inside else with_errors, **specs)
    error, y = jax.jit(checkify.checkify(mapped) if inside else mapped)(
        np.arange(8, dtype=np.float32)
    )
    return Observed(
        (message(error), y[-1]), ("at mapped index 3: shard starts with 6.0", floats(7))
    )


@probe(source="jax-ml/jax@d9270b242d15")
def custom_derivatives(env):
    """A check inside of a function with a custom derivative is reported, also by its gradient."""
    jvp, vjp = jax.custom_jvp(first_of_two), jax.custom_vjp(first_of_two)
    jvp.defjvp(lambda primals, tangents: (jvp(*primals), 3 * tangents[0]))
    vjp.defvjp(lambda x: (vjp(x), None), lambda _, g: (5 * g,))
    x = floats(0.5)
    observed = [checked(f, x) for f in (jvp, vjp, jax.grad(jvp), jax.grad(vjp))]
    return Observed(
        observed, [("second", x), ("second", x), ("second", floats(3)), ("second", floats(5))]
    )


@probe(source="jax-ml/jax#8753")
def raised(env):
    """`throw` and `check_error` raise a `JaxRuntimeError` with the message, a ValueError."""
    error, _ = jax.jit(checkify.checkify(positive_log))(floats(-1))

    def outcome(call):
        try:
            call()
        except ValueError as problem:
            return f"{type(problem).__name__}: {str(problem).partition(' (')[0]}"
        return "ran"

    def nested(x):
        inner, y = checkify.checkify(positive_log)(x)
        checkify.check_error(inner)
        return y

    observed = {
        "throw": outcome(error.throw),
        "check_error": outcome(lambda: checkify.check_error(error)),
        "check_error under checkify": checked(nested, floats(-1))[0],
        "exception": type(error.get_exception()).__name__,
    }
    expected = {
        "throw": "JaxRuntimeError: x is -1.0",
        "check_error": "JaxRuntimeError: x is -1.0",
        "check_error under checkify": "x is -1.0",
        "exception": "FailedCheckError",
    }
    return Observed(observed, expected)


@probe(source="jax-ml/jax#8753")
def refused(env):
    """A check is an error under jit without `checkify`, and for a predicate of several elements.

    `debug_check` is ignored without `checkify`. Values in a message are formatted as by `format`.
    """

    def debug(x):
        checkify.debug_check(x > 0, "negative")
        return x

    def formatted(x):
        checkify.check(x > 2, "{} and {b:.2f} {{}}", x, b=2 * x)
        return x

    def rows(x):
        checkify.check(x > 0, "negative")
        return x

    observed = {
        "no checkify": refusal(lambda: jax.jit(positive_log)(floats(-1)), "not functionalized"),
        "eager": refusal(lambda: positive_log(floats(-1)), "scalar pred"),
        "predicate": refusal(lambda: checked(rows, floats(1, -1)), "scalar pred"),
        "debug_check": (float(jax.jit(debug)(floats(-1))), checked(debug, floats(-1))[0]),
        "formatted": checked(formatted, floats(1.25))[0],
    }
    expected = {
        "no checkify": "ValueError: not functionalized",
        "eager": "TypeError: scalar pred",
        "predicate": "TypeError: scalar pred",
        "debug_check": (-1.0, "negative"),
        "formatted": "1.25 and 2.50 {}",
    }
    return Observed(observed, expected)


ERROR_ON_ANOTHER_MESH = deviation(
    "jax>=0.10",
    params=["all_axes_in_a_context"],
    error="ValueError",
    match="context mesh",
    reason="the error is made with the mesh of the context, in which no axis is manual",
    issue="jax-ml/jax#40907",
)
ERROR_OVER_MANUAL_AXES = deviation(
    "jax>=0.7",
    params=["one_axis", "one_axis_in_a_context"],
    error="ValueError",
    match="(sdy.manual_computation|context mesh)",
    reason="the error is split over all axes of the mesh, also those that are not manual",
    issue="jax-ml/jax#40907",
)


@probe(
    source="jax-ml/jax#40907",
    devices=4,
    releases="jax>=0.6",
    deviations=[ERROR_ON_ANOTHER_MESH, ERROR_OVER_MANUAL_AXES],
    params={
        "all_axes": {"manual": ("a", "b"), "context": False},
        "all_axes_in_a_context": {"manual": ("a", "b"), "context": True},
        "one_axis": {"manual": ("a",), "context": False},
        "one_axis_in_a_context": {"manual": ("a",), "context": True},
    },
)
def check_before_a_shard_map(env, manual, context):
    """A check before a shard_map, over all axes of the mesh or one, with or without a context."""
    mesh = env.mesh((2, 2), ("a", "b"))
    double = env.compat.shard_map(
        lambda x: 2 * x,
        mesh=mesh,
        in_specs=P(manual),
        out_specs=P(manual),
        check=False,
        axis_names=set(manual),
    )

    def f(x):
        checkify.check(jnp.all(x > 0), "x must be positive")
        return double(x)

    with env.compat.set_mesh(mesh) if context else contextlib.nullcontext():
        observed = checked(f, floats(1, 2, 3, 4))
    return Observed(observed, ("none", floats(2, 4, 6, 8)))


CODES_OF_TWO_SIZES = deviation(
    "jax>=0.7.2,<0.12",
    error="TypeError",
    match="requires arguments to have the same dtypes, got int64, int32",
    reason="codes of errors were of 64 bits in the context, and of 32 bits outside",
    issue="jax-ml/jax#40482",
)
CODES_OF_TWO_CHECKS = deviation(
    "jax<0.6.1",
    params=["among_others"],
    error="TypeError",
    match="requires arguments to have the same dtypes, got int64, int32",
    reason="codes of errors were of 64 bits in the context, and of 32 bits outside",
    issue="jax-ml/jax#40482",
)


@probe(
    source="jax-ml/jax#40482",
    params={"alone": {"others": False}, "among_others": {"others": True}},
    deviations=[CODES_OF_TWO_SIZES, CODES_OF_TWO_CHECKS],
)
def check_in_64_bits(env, others):
    """A check within `jax.enable_x64(True)` is reported, alone and among checks outside of it."""

    def f(x):
        if others:
            checkify.check(x > 0, "not positive")
        with env.compat.enable_x64(True):
            checkify.check(x > 2, "not above two")
        if others:
            checkify.check(x < 9, "not below nine")
        return x

    observed = [checked(f, floats(value))[0] for value in (1, 3)]
    return Observed(observed, ["not above two", "none"])


DIFFERENTIATED = {
    "call": lambda f: f,
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    "vmap": lambda f: lambda x: jax.vmap(f)(x[None]),
    "grad": jax.grad,
    "linearize": lambda f: lambda x: jax.linearize(f, x)[0],
    "grad_of_checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
}
CHECK_DROPPED = deviation(
    params=["grad", "linearize"],
    outcome="ok",
    reason="the check is dropped with the part of the scan that is not differentiated",
    issue="jax-ml/jax#21713",
)
CHECK_NOT_CHECKPOINTED = deviation(
    "jax<0.8",
    params=["grad_of_checkpoint"],
    error="NotImplementedError",
    match="Effects not supported in partial-eval of `checkpoint`",
    reason="a check within a checkpointed function could not be differentiated",
    issue="jax-ml/jax#21713",
)
CHECK_DROPPED_FROM_CHECKPOINT = deviation(
    "jax>=0.8",
    params=["grad_of_checkpoint"],
    outcome="ok",
    reason="the check is dropped with the part of the scan that is not differentiated",
    issue="jax-ml/jax#21713",
)


@probe(
    source="jax-ml/jax#21713",
    params=[*DIFFERENTIATED],
    deviations=[CHECK_DROPPED, CHECK_NOT_CHECKPOINTED, CHECK_DROPPED_FROM_CHECKPOINT],
)
def scan_that_is_differentiated(env, name):
    """A check in a scan is reported, also by a derivative of the scan.

    Call `checkify` inside: the derivative of `checkify(f)` keeps the check.
    """

    def power(x):
        def step(c, i):
            checkify.check(i < 2, "too many steps")
            return c * x, None

        return lax.scan(step, np.float32(1), np.arange(3))[0]

    return Observed(checked(DIFFERENTIATED[name](power), floats(2))[0], "too many steps")


OTHER_RESIDUALS = deviation(
    "jax>=0.6.2",
    outcome="ok",
    reason="residuals that are arguments are counted without those of the checks",
    issue="jax-ml/jax@3699aa74ef3e",
)


@jax.custom_vjp
def product(x, y):
    """Return a product, whose rule keeps both factors."""
    return x * y


product.defvjp(lambda x, y: (x * y, (x, y)), lambda factors, g: (g * factors[1], g * factors[0]))


@probe(source="jax-ml/jax@3699aa74ef3e", deviations=[OTHER_RESIDUALS])
def gradient_of_a_custom_vjp_after_a_check(env):
    """A check before a `custom_vjp` leaves the gradient of the checked function right."""

    def f(x, y):
        checkify.check(x > 0, "negative")
        return product(x, y)

    def value(x, y):
        return checkify.checkify(f)(x, y)[1]

    gradient = jax.grad(value, argnums=(0, 1))(floats(3), floats(5))
    return Observed(gradient, reference=(floats(5), floats(3)))


CODES_OF_THE_PROCESS = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="the code of a check was a number that the process counted",
    issue="jax-ml/jax@e187428a54d6",
)


@probe(source="jax-ml/jax@e187428a54d6", deviations=[CODES_OF_THE_PROCESS])
def text_of_a_second_program(env):
    """Two equal functions with a check are lowered to equal texts: a cache finds the second."""
    fns = [jax.jit(checkify.checkify(check_below(1, "one"))) for _ in range(2)]
    texts = [fn.lower(np.float32(0)).as_text() for fn in fns]
    return Observed(texts[0] == texts[1], True)


@probe(source="jax-ml/jax@e187428a54d6", deviations=[CODES_OF_THE_PROCESS])
def error_carried_by_a_loop(env):
    """An error may be the carry of a loop whose body makes another one of an equal function."""
    start = checkify.checkify(check_below(1, "one"))(jnp.float32(0))[0]

    def step(i, error):
        return checkify.checkify(check_below(1, "one"))(jnp.float32(2))[0]

    found = []
    outcome = refusal(lambda: found.append(message(lax.fori_loop(0, 2, step, start))))
    return Observed("one" in found[0] if found else outcome, True)
