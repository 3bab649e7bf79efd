"""`jax.checkpoint`: values that are kept or recomputed, and options that jax added and removed."""

from __future__ import annotations

import contextlib
import io
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import checkify

from conformance.kit import Observed, Program, deviation, probe, program, raises
from conformance.kit.equations import counts

from ._helpers import describe_error


def twice(x):
    """Return the sine of a sine, the inner one named."""
    return jnp.sin(checkpoint_name(jnp.sin(x), "inner"))


@probe(source="jax-ml/jax#7631")
def computed_again(env):
    """The policy decides how many products and sines the gradient computes.

    Values that are kept are not recomputed. A product with batch dimensions is not covered by
    `dots_with_no_batch_dims`, so it is recomputed.
    """
    policies, operations = jax.checkpoint_policies, {}
    for name in ("everything", "nothing", "dots", "dots_with_no_batch_dims"):
        policy = getattr(policies, f"{name}_saveable")
        fn = jax.checkpoint(lambda x, y: jnp.sin(jnp.sin(x) @ y).sum(), policy=policy)
        for shape in ((2, 2), (3, 2, 2)):
            x = np.ones(shape, np.float32)
            numbers = counts(jax.grad(fn), (x, x), "dot_general sin")
            operations[f"{name} {len(shape)}d"] = list(numbers.values())
    least, most = [2, 2], [3, 3]
    return Observed(
        operations,
        {
            name: most if "nothing" in name or name.endswith("no_batch_dims 3d") else least
            for name in operations
        },
    )


@probe(source="jax-ml/jax#7631")
def kept_by_name(env):
    """Policies by name decide which sines are recomputed.

    They are `save_only_these_names`, `save_any_names_but_these` and
    `save_anything_except_these_names`.
    """
    policies = jax.checkpoint_policies
    by_name = {
        "only inner": policies.save_only_these_names("inner"),
        "only other": policies.save_only_these_names("other"),
        "any but inner": policies.save_any_names_but_these("inner"),
        "anything but inner": policies.save_anything_except_these_names("inner"),
    }
    sines = {}
    for name, policy in by_name.items():
        sines[name] = counts(jax.grad(jax.checkpoint(twice, policy=policy)), (1.0,), "sin")["sin"]
    expected = {"only inner": 2, "only other": 3, "any but inner": 3, "anything but inner": 2}
    return Observed(sines, expected)


NO_ROUNDING_OF_SAVED_VALUES = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="XLA may keep more digits of the saved value than of the recomputed one",
    issue="jax-ml/jax#22244",
)


@probe(source="jax-ml/jax#22244", deviations=[NO_ROUNDING_OF_SAVED_VALUES])
def saved_precision(env):
    """From 0.4.31 a separate operation rounds a value that a policy saves to its dtype."""
    policy = jax.checkpoint_policies.save_only_these_names("inner")
    fn = jax.grad(jax.checkpoint(twice, policy=policy))
    return Observed(
        counts(fn, (np.float16(1),), "name reduce_precision"), {"name": 1, "reduce_precision": 1}
    )


ASSERTION_WITHOUT_MESSAGE = deviation(
    "jax<0.7.1",
    error="AssertionError",
    reason="the call raised an AssertionError without a message",
    issue="jax-ml/jax@d61c10e6d440",
)


@program(
    source="jax-ml/jax@d61c10e6d440", platforms=("cpu",), deviations=[ASSERTION_WITHOUT_MESSAGE]
)
def policy_that_is_none(env):
    """A policy that returns neither a bool nor an offload decision raises a TypeError.

    The message has the value that the policy returned.
    """
    fn = jax.grad(jax.checkpoint(twice, policy=lambda *_, **__: "yes"))
    refusal = raises("TypeError", match="remat policy should be a bool or .* Got yes of type")
    return Program(fn, args=(np.float32(1),), reference=refusal)


ANSWER_COUNTED_AS_TRUE = deviation(
    "jax<0.4.38",
    outcome="ok",
    reason="the second policy does not return a bool, but its answer counted as true",
    issue="jax-ml/jax@7dd401cb2aed",
)


@probe(source="jax-ml/jax@7dd401cb2aed", deviations=[ANSWER_COUNTED_AS_TRUE])
def two_policies(env):
    """`save_from_both_policies` saves the values that either policy saves.

    Together with a policy that offloads, it is refused.
    """
    policies = jax.checkpoint_policies
    inner, other = map(policies.save_only_these_names, ("inner", "other"))
    offloading = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["outer"],
        names_which_can_be_offloaded=[],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def sines(second):
        policy = policies.save_from_both_policies(other, second)
        return counts(jax.grad(jax.checkpoint(twice, policy=policy)), (1.0,), "sin")["sin"]

    return Observed(
        [sines(inner), describe_error(lambda: sines(offloading))],
        [2, ["ValueError"]],
    )


OPTION_WITHOUT_EFFECT = deviation(
    "jax<0.10",
    outcome="ok",
    reason="the option had no effect; deprecated in 0.8.2",
    issue="jax-ml/jax#33674",
)
OPTION_REFUSED = deviation(
    "jax>=0.10,<0.11",
    outcome="ok",
    reason="the option was known, but refused for every value",
    issue="jax-ml/jax#38665",
)


@probe(source="jax-ml/jax#33674", deviations=[OPTION_WITHOUT_EFFECT, OPTION_REFUSED])
def concrete(env):
    """`checkpoint(f, concrete=False)` was ignored, then deprecated, then refused.

    From 0.11.0 the keyword is unknown. Use `static_argnums` for values that Python branches on.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = describe_error(
            lambda: jax.checkpoint(jnp.sin, concrete=False), "unexpected keyword", "removed"
        )
    return Observed([error, len(caught)], [["TypeError", "unexpected keyword"], 0])


BASE_CLASS_RAISED = deviation(
    "jax<0.4.36",
    error="ConcretizationTypeError",
    match="Attempted boolean conversion",
    reason="jax raised the base class of the error",
    issue="jax-ml/jax#24511",
)


@program(source="jax-ml/jax#24511", platforms=("cpu",), deviations=[BASE_CLASS_RAISED])
def branch_in_python(env):
    """A Python `if` on an argument of a checkpointed function is an error.

    The message names `static_argnums`.
    """
    fn = jax.grad(jax.checkpoint(lambda x: x if x > 0 else -x))
    refusal = raises("TracerBoolConversionError", match="(?s)for checkpoint.*static_argnums")
    return Program(fn, args=(np.float32(1),), reference=refusal)


@probe(source="jax-ml/jax#24511")
def static_arguments(env):
    """`static_argnums` passes an argument unchanged, so Python may branch on it.

    It may be negative: -1 is the last argument.
    """
    choose = lambda x, negate: -x if negate else 3 * x  # noqa: E731 - short

    def slopes(x):
        gradients = [jax.grad(jax.checkpoint(choose, static_argnums=n)) for n in (1, (1,), -1)]
        return [[slope(x, True), slope(x, False)] for slope in gradients]

    return Observed(np.float64(jax.jit(slopes)(1.0)), np.tile([-1.0, 3.0], (3, 1)))


ONE_ARRAY_ONLY = deviation(
    "jax<0.7.2",
    error="TypeError",
    match="not a valid JAX type",
    reason="only a single array could be named",
    issue="jax-ml/jax@4d934d4343b6",
)


@probe(source="jax-ml/jax@4d934d4343b6", deviations=[ONE_ARRAY_ONLY])
def named_tree(env):
    """From 0.7.2 `checkpoint_name` of a dictionary names each of its arrays."""

    def fn(x):
        both = checkpoint_name({"a": jnp.sin(x), "b": jnp.cos(x)}, "inner")
        return jnp.sin(both["a"]) * jnp.sin(both["b"])

    policy = jax.checkpoint_policies.save_only_these_names("inner")
    operations = counts(jax.grad(jax.checkpoint(fn, policy=policy)), (1.0,), "name sin")
    return Observed(operations, {"name": 2, "sin": 6})


TUPLE_COUNTS_AS_TRUE = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="a tuple counts as true, so the barrier takes all operands",
    issue="jax-ml/jax@eb92beb6c6b9",
)
CLOSED_OVER_ARRAY_NOT_COUNTED = deviation(
    "jax>=0.7.2,<0.8.1",
    params=["constant"],
    error="AssertionError",
    reason="a closed-over array is an operand, but was not counted",
    issue="jax-ml/jax@6a0415a8f638",
)


@probe(
    source="jax-ml/jax@eb92beb6c6b9",
    params={"arguments": {"constant": False}, "constant": {"constant": True}},
    deviations=[TUPLE_COUNTS_AS_TRUE, CLOSED_OVER_ARRAY_NOT_COUNTED],
)
def barrier_for_some(env, constant):
    """With `prevent_cse=(True, False)` the barrier takes only argument 0 and the cotangent."""
    factor = jax.device_put(np.full(3, 2, np.float32)) if constant else 1.0
    fn = jax.checkpoint(
        lambda x, y: (jnp.sin(jnp.sin(x)) * y * factor).sum(), prevent_cse=(True, False)
    )
    text = jax.jit(jax.grad(fn)).lower(1.0, 2.0).as_text()
    barrier = next(line for line in text.splitlines() if "optimization_barrier" in line)
    return Observed(barrier.partition(" : ")[2].count("tensor"), 2)


CARRIES_ASSUMED_KNOWN = deviation(
    "jax<0.6",
    error="AssertionError",
    reason="carries that the loop makes unknown were assumed to be known",
    issue="jax-ml/jax@a092df90ba78",
)


@probe(source="jax-ml/jax@a092df90ba78", deviations=[CARRIES_ASSUMED_KNOWN])
def linearized_loop(env):
    """`linearize` of a checkpointed `while_loop` works if x spreads from carry to carry."""

    def fn(x):
        def body(c):
            return c[0] + 1, x * c[1], c[1] + c[2], c[2] + c[3]

        return lax.while_loop(lambda c: c[0] < 4, body, (0, 1.0, 0.0, 0.0))[3]

    value, slope = jax.linearize(jax.checkpoint(fn), 2.0)
    return Observed((value, slope(1.0)), (np.float64(11), np.float64(6)))


CHECK_EFFECT_REFUSED = deviation(
    "jax<0.8",
    error="NotImplementedError",
    match="Effects not supported in partial-eval of `checkpoint`",
    reason="the effect of a check was not accepted",
    issue="jax-ml/jax@0c7eed3f7da4",
)


@probe(source="jax-ml/jax@0c7eed3f7da4", deviations=[CHECK_EFFECT_REFUSED])
def checked(env):
    """`checkify` works on the gradient of a checkpointed function that makes a check."""

    def fn(x):
        checkify.check(x > 0, "not positive")
        return jnp.sin(x)

    error, _ = jax.jit(checkify.checkify(jax.grad(jax.checkpoint(fn))))(-1.0)
    return Observed((error.get() or "").partition(" (")[0], "not positive")


CALL_KEPT_AS_A_WHOLE = deviation(
    "jax<0.5.1",
    outcome="ok",
    reason="a custom_jvp call was kept or dropped as a whole",
    issue="jax-ml/jax@28d573354b40",
)


@probe(source="jax-ml/jax@28d573354b40", deviations=[CALL_KEPT_AS_A_WHOLE])
def unused_result(env):
    """An unused second result of a `custom_jvp` function is not recomputed."""

    @jax.custom_jvp
    def both(x):
        return jnp.sin(x), jnp.tan(x)

    both.defjvp(lambda p, t: (both(*p), (jnp.cos(p[0]) * t[0], t[0])))
    fn = jax.grad(jax.checkpoint(lambda x: jnp.sin(both(x)[0])))
    return Observed(counts(fn, (1.0,), "sin tan"), {"sin": 3, "tan": 0})


NO_OPTIMIZE_REMAT = deviation(
    "jax<0.4.33",
    error="TypeError",
    match="unexpected keyword argument 'optimize_remat'",
    reason="defvjp did not accept optimize_remat yet",
    issue="jax-ml/jax#22735",
)
RULE_WITH_EFFECTS_REFUSED = deviation(
    "jax>=0.4.33,<0.6.2",
    error="NotImplementedError",
    match="does not support forward functions with side effects",
    reason="rules with effects were refused, and this case counts by an effect",
    issue="jax-ml/jax#26814",
)


@probe(source="jax-ml/jax#22735", deviations=[NO_OPTIMIZE_REMAT, RULE_WITH_EFFECTS_REFUSED])
def forward_rule(env):
    """A `custom_vjp` under checkpoint runs its forward rule twice; `optimize_remat` avoids one."""

    def runs(**options):
        calls = []
        f = jax.custom_vjp(jnp.sin)

        def forward(x):
            jax.debug.callback(lambda: calls.append(1))
            return jnp.sin(x), jnp.cos(x)

        f.defvjp(forward, lambda c, g: (g * c,), **options)
        slope = jax.jit(jax.grad(jax.checkpoint(lambda x: f(x) ** 2)))(1.0)
        jax.effects_barrier()
        return len(calls), slope

    expected = np.sin(np.float64(2))
    return Observed([runs(), runs(optimize_remat=True)], [(2, expected), (1, expected)])


ROUNDING_SHOWN = deviation(
    "jax>=0.4.31,<0.10.2",
    params=["named", "product"],
    outcome="ok",
    reason="the line shows the rounding around the value, not the value",
    issue="jax-ml/jax#22244",
)
NAME_IN_FORMER_PRIMITIVE = deviation(
    "jax<0.4.34",
    params=["jitted"],
    outcome="ok",
    reason="jax looked for the name in a primitive that no longer existed",
    issue="jax-ml/jax@1fe0c5dad51c",
)
NO_LOCATION_OUTSIDE_TRACE = deviation(
    "jax>=0.9.1",
    params=["jitted"],
    outcome="ok",
    reason="the traced function stores no location outside itself, and its call is outside",
    issue="jax-ml/jax@6f2f0f362d93",
)


@probe(
    source="jax-ml/jax@1fe0c5dad51c",
    params={
        "named": {"case": "named"},
        "jitted": {"case": "jitted"},
        "product": {"case": "product"},
    },
    deviations=[ROUNDING_SHOWN, NAME_IN_FORMER_PRIMITIVE, NO_LOCATION_OUTSIDE_TRACE],
)
def residuals_told(env, case):
    """`print_saved_residuals` describes a kept value by its name, or by what made it."""
    policies = jax.checkpoint_policies

    def inner(x):
        return jnp.sin(jnp.sin(x))

    fn, x = {
        "named": (jax.checkpoint(twice, policy=policies.save_only_these_names("inner")), 1.0),
        "jitted": (jax.jit(inner), 1.0),
        "product": (
            jax.checkpoint(lambda x: jnp.sin(x @ x), policy=policies.dots_saveable),
            np.ones((2, 2), np.float32),
        ),
    }[case]
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        jax.ad_checkpoint.print_saved_residuals(fn, x)
    lines = [re.sub(r" from /.*", " from HERE", line) for line in text.getvalue().splitlines()]
    expected = {
        "named": ["f32[] from the argument x", "f32[] named 'inner' from HERE"],
        "jitted": ["f32[] output of jitted function 'inner' from HERE"] * 2,
        "product": ["f32[2,2] from the argument x", "f32[2,2] output of dot_general from HERE"],
    }
    return Observed(lines, expected[case])


@probe(source="jax-ml/jax#7631")
def loops(env):
    """Checkpoint in a scan, around a scan or a branch, and nested: the number of sines computed."""

    def inner(c):
        return jnp.sin(jnp.sin(c))

    def scan(body):
        return lambda x: lax.scan(lambda c, _: (body(c), None), x, length=3)[0]

    remat = jax.checkpoint(inner)
    programs = {
        "plain scan": scan(inner),
        "in a scan": scan(remat),
        "around a scan": jax.checkpoint(scan(inner)),
        "around a branch": jax.checkpoint(lambda x: lax.cond(x > 0, inner, jnp.cos, x)),
        "in itself": jax.checkpoint(lambda x: jnp.sin(remat(x))),
    }
    sines = {name: counts(jax.grad(fn), (1.0,), "sin")["sin"] for name, fn in programs.items()}
    expected = {
        "plain scan": 2,
        "in a scan": 3,
        "around a scan": 4,
        "around a branch": 4,
        "in itself": 6,
    }
    return Observed(sines, expected)


CARRY_BEFORE_THE_FIXED_POINT = deviation(
    "jax<0.6",
    error="AssertionError",
    reason="the loop got the carries that were known at first, not those of the fixed point",
    issue="jax-ml/jax#27353",
)


@probe(source="jax-ml/jax#27353", deviations=[CARRY_BEFORE_THE_FIXED_POINT])
def linearized_loop_with_a_replaced_carry(env):
    """`jax.linearize` of a `jax.checkpoint` with a `while_loop` that replaces a known carry."""

    @jax.checkpoint
    def f(x, y):
        def step(carry):
            i, _, b = carry
            return i + 1, b, jnp.sin(y)

        return lax.while_loop(lambda carry: carry[0] < 3, step, (0, 1.0, 2.0))[1] * x

    return Observed(jax.linearize(f, 1.0, 2.0)[0], reference=np.sin(2.0))


EVERY_POLICY_DIFFERS = deviation(
    "jax<0.10.2",
    outcome="ok",
    reason="a policy was a function, made by each call",
    issue="jax-ml/jax@bf1e6d9b49ee",
)
POLICY_IS_A_FUNCTION_AGAIN = deviation(
    "jax>=0.12",
    outcome="ok",
    reason="a policy is a function again",
)


@probe(
    source="jax-ml/jax@bf1e6d9b49ee",
    platforms=("cpu",),
    deviations=[EVERY_POLICY_DIFFERS, POLICY_IS_A_FUNCTION_AGAIN],
)
def policies_of_the_same_names(env):
    """Two policies made by `save_only_these_names("a")` are equal from 0.10.2 to 0.11.2."""
    make = jax.checkpoint_policies.save_only_these_names
    return Observed(make("a") == make("a"), True)


NOT_PRINTED = deviation(
    "jax<0.12",
    outcome="ok",
    reason="a checkpoint without results was removed from a program, with its effects",
    issue="jax-ml/jax@3d32262b21fc",
)
PRINTING_PROGRAMS = {
    "jit": lambda f: jax.jit(f)(2.0),
    "gradient": lambda f: jax.grad(f)(2.0),
    "gradient_of_jit": lambda f: jax.grad(jax.jit(f))(2.0),
    "gradient_of_scan": lambda f: jax.grad(
        lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]
    )(2.0),
    "gradient_of_cond": lambda f: jax.grad(lambda x: lax.cond(x > 0, f, lambda x: x, x))(2.0),
}


@probe(source="jax-ml/jax@3d32262b21fc", deviations=[NOT_PRINTED])
def print_in_a_checkpoint_without_results(env):
    """A checkpoint that only prints does so once, in each program: from 0.12.0 on."""

    def f(x):
        jax.checkpoint(lambda: jax.debug.print("hi"))()
        return x * x

    prints = {}
    for name, run in PRINTING_PROGRAMS.items():
        with contextlib.redirect_stdout(io.StringIO()) as stream:
            jax.block_until_ready(run(f))
            jax.effects_barrier()
        prints[name] = stream.getvalue().count("hi")
    return Observed(prints, dict.fromkeys(PRINTING_PROGRAMS, 1))
