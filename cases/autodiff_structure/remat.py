"""`jax.checkpoint`: what is kept, what is computed again, options that came and went."""

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

from ._helpers import told


def twice(x):
    """Return a sine of a sine, the inner one named."""
    return jnp.sin(checkpoint_name(jnp.sin(x), "inner"))


@probe(source="jax-ml/jax#7631")
def computed_again(env):
    """How many products and sines the gradient takes under each policy: what is kept is not redone.

    A product with batch dimensions is no `dot_with_no_batch_dims`, and computed again.
    """
    policies, seen = jax.checkpoint_policies, {}
    for name in ("everything", "nothing", "dots", "dots_with_no_batch_dims"):
        policy = getattr(policies, f"{name}_saveable")
        fn = jax.checkpoint(lambda x, y: jnp.sin(jnp.sin(x) @ y).sum(), policy=policy)
        for shape in ((2, 2), (3, 2, 2)):
            x = np.ones(shape, np.float32)
            found = counts(jax.grad(fn), (x, x), "dot_general sin")
            seen[f"{name} {len(shape)}d"] = list(found.values())
    least, most = [2, 2], [3, 3]
    return Observed(
        seen,
        {
            name: most if "nothing" in name or name.endswith("no_batch_dims 3d") else least
            for name in seen
        },
    )


@probe(source="jax-ml/jax#7631")
def kept_by_name(env):
    """`save_only_these_names`, `save_any_names_but_these` and their kin: sines computed again."""
    policies = jax.checkpoint_policies
    chosen = {
        "only inner": policies.save_only_these_names("inner"),
        "only other": policies.save_only_these_names("other"),
        "any but inner": policies.save_any_names_but_these("inner"),
        "anything but inner": policies.save_anything_except_these_names("inner"),
    }
    seen = {}
    for name, policy in chosen.items():
        seen[name] = counts(jax.grad(jax.checkpoint(twice, policy=policy)), (1.0,), "sin")["sin"]
    wanted = {"only inner": 2, "only other": 3, "any but inner": 3, "anything but inner": 2}
    return Observed(seen, wanted)


@probe(
    source="jax-ml/jax#22244",
    deviations=[
        deviation(
            "jax<0.4.31",
            outcome="ok",
            reason="XLA may keep more digits of the saved value than of the one computed again",
            issue="jax-ml/jax#22244",
        )
    ],
)
def saved_precision(env):
    """What a policy saves is rounded to its dtype by an operation of its own, from 0.4.31."""
    policy = jax.checkpoint_policies.save_only_these_names("inner")
    fn = jax.grad(jax.checkpoint(twice, policy=policy))
    return Observed(
        counts(fn, (np.float16(1),), "name reduce_precision"), {"name": 1, "reduce_precision": 1}
    )


@program(
    source="jax-ml/jax@d61c10e6d440",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.7.1",
            error="AssertionError",
            reason="told by an assertion without a word",
            issue="jax-ml/jax@d61c10e6d440",
        )
    ],
)
def policy_that_is_none(env):
    """A policy that returns neither a bool nor what is offloaded: a TypeError says what it got."""
    fn = jax.grad(jax.checkpoint(twice, policy=lambda *_, **__: "yes"))
    refused = raises("TypeError", match="remat policy should be a bool or .* Got yes of type")
    return Program(fn, args=(np.float32(1),), reference=refused)


@probe(
    source="jax-ml/jax@7dd401cb2aed",
    deviations=[
        deviation(
            "jax<0.4.38",
            outcome="ok",
            reason="what the second policy returns is no bool, but was taken for true",
            issue="jax-ml/jax@7dd401cb2aed",
        )
    ],
)
def two_policies(env):
    """`save_from_both_policies` saves what either does; with one that offloads it is refused."""
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
        [sines(inner), told(lambda: sines(offloading))],
        [2, ["ValueError"]],
    )


@probe(
    source="jax-ml/jax#33674",
    deviations=[
        deviation(
            "jax<0.10",
            outcome="ok",
            reason="an option without effect, deprecated in 0.8.2",
            issue="jax-ml/jax#33674",
        ),
        deviation(
            "jax>=0.10,<0.11",
            outcome="ok",
            reason="known, and refused whatever it is set to",
            issue="jax-ml/jax#38665",
        ),
    ],
)
def concrete(env):
    """`checkpoint(f, concrete=False)`: ignored, warned of, refused, and unknown from 0.11.0 on.

    Use `static_argnums` for what Python branches on.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen = told(
            lambda: jax.checkpoint(jnp.sin, concrete=False), "unexpected keyword", "removed"
        )
    return Observed([seen, len(caught)], [["TypeError", "unexpected keyword"], 0])


@program(
    source="jax-ml/jax#24511",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.36",
            error="ConcretizationTypeError",
            match="Attempted boolean conversion",
            reason="the base class was raised",
            issue="jax-ml/jax#24511",
        )
    ],
)
def branch_in_python(env):
    """A Python `if` on an argument of a checkpointed function: told to use static_argnums."""
    fn = jax.grad(jax.checkpoint(lambda x: x if x > 0 else -x))
    refused = raises("TracerBoolConversionError", match="(?s)for checkpoint.*static_argnums")
    return Program(fn, args=(np.float32(1),), reference=refused)


@probe(source="jax-ml/jax#24511")
def static_arguments(env):
    """`static_argnums` keeps an argument as it is: Python may branch on it, also on the last."""
    chosen = lambda x, negate: -x if negate else 3 * x  # noqa: E731 - short

    def slopes(x):
        ways = [jax.grad(jax.checkpoint(chosen, static_argnums=n)) for n in (1, (1,), -1)]
        return [[slope(x, True), slope(x, False)] for slope in ways]

    return Observed(np.float64(jax.jit(slopes)(1.0)), np.tile([-1.0, 3.0], (3, 1)))


@probe(
    source="jax-ml/jax@4d934d4343b6",
    deviations=[
        deviation(
            "jax<0.7.2",
            error="TypeError",
            match="not a valid JAX type",
            reason="one array alone could be named",
            issue="jax-ml/jax@4d934d4343b6",
        )
    ],
)
def named_tree(env):
    """`checkpoint_name` of a dictionary names each of its arrays, from 0.7.2 on."""

    def fn(x):
        both = checkpoint_name({"a": jnp.sin(x), "b": jnp.cos(x)}, "inner")
        return jnp.sin(both["a"]) * jnp.sin(both["b"])

    policy = jax.checkpoint_policies.save_only_these_names("inner")
    found = counts(jax.grad(jax.checkpoint(fn, policy=policy)), (1.0,), "name sin")
    return Observed(found, {"name": 2, "sin": 6})


@probe(
    source="jax-ml/jax@eb92beb6c6b9",
    params={"arguments": {"constant": False}, "constant": {"constant": True}},
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            reason="a tuple counts as true: all are held back",
            issue="jax-ml/jax@eb92beb6c6b9",
        ),
        deviation(
            "jax>=0.7.2,<0.8.1",
            params=["constant"],
            error="AssertionError",
            reason="an array closed over is an operand, and was not counted",
            issue="jax-ml/jax@6a0415a8f638",
        ),
    ],
)
def barrier_for_some(env, constant):
    """`prevent_cse=(True, False)`: the barrier takes the first argument and the cotangent alone."""
    factor = jax.device_put(np.full(3, 2, np.float32)) if constant else 1.0
    fn = jax.checkpoint(
        lambda x, y: (jnp.sin(jnp.sin(x)) * y * factor).sum(), prevent_cse=(True, False)
    )
    text = jax.jit(jax.grad(fn)).lower(1.0, 2.0).as_text()
    barrier = next(line for line in text.splitlines() if "optimization_barrier" in line)
    return Observed(barrier.partition(" : ")[2].count("tensor"), 2)


@probe(
    source="jax-ml/jax@a092df90ba78",
    deviations=[
        deviation(
            "jax<0.6",
            error="AssertionError",
            reason="carries were taken for known that the loop makes unknown",
            issue="jax-ml/jax@a092df90ba78",
        )
    ],
)
def linearized_loop(env):
    """`linearize` of a checkpointed `while_loop` in which x spreads from carry to carry."""

    def fn(x):
        def body(c):
            return c[0] + 1, x * c[1], c[1] + c[2], c[2] + c[3]

        return lax.while_loop(lambda c: c[0] < 4, body, (0, 1.0, 0.0, 0.0))[3]

    value, slope = jax.linearize(jax.checkpoint(fn), 2.0)
    return Observed((value, slope(1.0)), (np.float64(11), np.float64(6)))


@probe(
    source="jax-ml/jax@0c7eed3f7da4",
    deviations=[
        deviation(
            "jax<0.8",
            error="NotImplementedError",
            match="Effects not supported in partial-eval of `checkpoint`",
            reason="the effect of a check was not let through",
            issue="jax-ml/jax@0c7eed3f7da4",
        )
    ],
)
def checked(env):
    """`checkify` of the gradient of a checkpointed function that makes a check."""

    def fn(x):
        checkify.check(x > 0, "not positive")
        return jnp.sin(x)

    error, _ = jax.jit(checkify.checkify(jax.grad(jax.checkpoint(fn))))(-1.0)
    return Observed((error.get() or "").partition(" (")[0], "not positive")


@probe(
    source="jax-ml/jax@28d573354b40",
    deviations=[
        deviation(
            "jax<0.5.1",
            outcome="ok",
            reason="a custom_jvp call was kept or dropped as a whole",
            issue="jax-ml/jax@28d573354b40",
        )
    ],
)
def unused_result(env):
    """A second result of a `custom_jvp` function that nobody uses is not computed again."""

    @jax.custom_jvp
    def both(x):
        return jnp.sin(x), jnp.tan(x)

    both.defjvp(lambda p, t: (both(*p), (jnp.cos(p[0]) * t[0], t[0])))
    fn = jax.grad(jax.checkpoint(lambda x: jnp.sin(both(x)[0])))
    return Observed(counts(fn, (1.0,), "sin tan"), {"sin": 3, "tan": 0})


@probe(
    source="jax-ml/jax#22735",
    deviations=[
        deviation(
            "jax<0.4.33",
            error="TypeError",
            match="unexpected keyword argument 'optimize_remat'",
            reason="not there yet",
            issue="jax-ml/jax#22735",
        ),
        deviation(
            "jax>=0.4.33,<0.6.2",
            error="NotImplementedError",
            match="does not support forward functions with side effects",
            reason="not for a rule with effects, as the count is here",
            issue="jax-ml/jax#26814",
        ),
    ],
)
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

    wanted = np.sin(np.float64(2))
    return Observed([runs(), runs(optimize_remat=True)], [(2, wanted), (1, wanted)])


@probe(
    source="jax-ml/jax@1fe0c5dad51c",
    params={
        "named": {"case": "named"},
        "jitted": {"case": "jitted"},
        "product": {"case": "product"},
    },
    deviations=[
        deviation(
            "jax>=0.4.31,<0.10.2",
            params=["named", "product"],
            outcome="ok",
            reason="it shows the rounding around the value, not the value",
            issue="jax-ml/jax#22244",
        ),
        deviation(
            "jax<0.4.34",
            params=["jitted"],
            outcome="ok",
            reason="the name was looked for in a primitive that was no more",
            issue="jax-ml/jax@1fe0c5dad51c",
        ),
        deviation(
            "jax>=0.9.1",
            params=["jitted"],
            outcome="ok",
            reason="what is traced remembers no place outside it, and it is called from there",
            issue="jax-ml/jax@6f2f0f362d93",
        ),
    ],
)
def residuals_told(env, case):
    """What `print_saved_residuals` calls a value that is kept: its name, or what made it."""
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
    wanted = {
        "named": ["f32[] from the argument x", "f32[] named 'inner' from HERE"],
        "jitted": ["f32[] output of jitted function 'inner' from HERE"] * 2,
        "product": ["f32[2,2] from the argument x", "f32[2,2] output of dot_general from HERE"],
    }
    return Observed(lines, wanted[case])


@probe(source="jax-ml/jax#7631")
def loops(env):
    """Checkpoint in a scan, around one, in a branch and in itself: how many sines are computed."""

    def inner(c):
        return jnp.sin(jnp.sin(c))

    def scan(body):
        return lambda x: lax.scan(lambda c, _: (body(c), None), x, length=3)[0]

    again = jax.checkpoint(inner)
    fns = {
        "plain scan": scan(inner),
        "in a scan": scan(again),
        "around a scan": jax.checkpoint(scan(inner)),
        "around a branch": jax.checkpoint(lambda x: lax.cond(x > 0, inner, jnp.cos, x)),
        "in itself": jax.checkpoint(lambda x: jnp.sin(again(x))),
    }
    seen = {name: counts(jax.grad(fn), (1.0,), "sin")["sin"] for name, fn in fns.items()}
    wanted = {
        "plain scan": 2,
        "in a scan": 3,
        "around a scan": 4,
        "around a branch": 4,
        "in itself": 6,
    }
    return Observed(seen, wanted)
