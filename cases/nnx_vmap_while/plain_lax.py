"""The loops of flax#4700 and flax#4709 in plain lax: changes of jax without those of Flax.

A batched predicate makes a while loop run until the last example is done, with a select on the
carry for the examples that are already done. Up to 0.5.3 that batched *all* of the carry, including
parameters that the loop only passes on: B copies of the model in memory, and an error where the
caller requests `out_axes=None`. jax#27937 (0.6.0) makes read-only components of a while loop's
carry constants, jax#28210 (0.6.1) those of a scan's. jax#21673 (0.4.31) did the same for cond. A
value that the loop closes over has always been a constant.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program, raises

from ._helpers import BATCHED_KERNEL, WIDTH, compute_expected, data


def _layer(x, kernel):
    return jnp.tanh(x @ kernel)


def _while(kernel, x, n):
    """Carry the parameters, and return them from the loop."""

    def body(carry):
        i, x, kernel = carry
        return i + 1, _layer(x, kernel), kernel

    _, x, kernel = lax.while_loop(lambda carry: carry[0] < n, body, (0, x, kernel))
    return x, kernel


def _jitted_body(kernel, x, n):
    step = jax.jit(lambda x, kernel: (_layer(x, kernel), kernel))

    def body(carry):
        i, x, kernel = carry
        return i + 1, *step(x, kernel)

    _, x, kernel = lax.while_loop(lambda carry: carry[0] < n, body, (0, x, kernel))
    return x, kernel


def _nested(kernel, x, n):
    def body(carry):
        i, x, kernel = carry
        x, kernel = _while(kernel, x, n)
        return i + 1, _layer(x, kernel), kernel

    _, x, kernel = lax.while_loop(lambda carry: carry[0] < n, body, (0, x, kernel))
    return x, kernel


def _fori(kernel, x, n):
    return lax.fori_loop(0, n, lambda _, c: (_layer(*c), c[1]), (x, kernel))


def _fori_static(kernel, x, _):
    return _fori(kernel, x, 3)


def _scan(kernel, x, _):
    carry, _ys = lax.scan(lambda c, _: ((_layer(*c), c[1]), None), (x, kernel), None, length=3)
    return carry


def _cond(kernel, x, n):
    def thrice(kernel, x):
        for _ in range(3):
            x = _layer(x, kernel)
        return x, kernel

    return lax.cond(n < 2, thrice, lambda kernel, x: (x, kernel), kernel, x)


def _cond_fori(kernel, x, n):
    """Return the program of flax#4709."""
    return lax.cond(n < 2, lambda k, x: _fori(k, x, 3), lambda kernel, x: (x, kernel), kernel, x)


def _cond_while(kernel, x, n):
    return lax.cond(n < 2, lambda k, x: _while(k, x, 3), lambda kernel, x: (x, kernel), kernel, x)


def _while_scan(kernel, x, n):
    def body(carry):
        i, x, kernel = carry
        return i + 1, *_scan(kernel, x, n)

    _, x, kernel = lax.while_loop(lambda carry: carry[0] < n, body, (0, x, kernel))
    return x, kernel


LOOPS = {
    "while": (_while, "while"),
    "jitted_body": (_jitted_body, "while"),
    "nested": (_nested, "nested"),
    "fori": (_fori, "while"),
    "fori_static": (_fori_static, "static"),
    "scan": (_scan, "static"),
    "cond": (_cond, "cond"),
    "cond_fori": (_cond_fori, "cond"),
    "cond_while": (_cond_while, "cond"),
    "while_scan": (_while_scan, "times_3"),
}


WHILE_BATCHES_CARRY = deviation(
    "jax<0.6",
    params=("while", "nested", "fori", "cond_while"),
    error="ValueError",
    match="out_axes",
    reason="a batched predicate batches the whole carry of a while loop",
    issue="google/flax#4700",
)
SCAN_COPIES_CARRY = deviation(
    "jax<0.6.1",
    params=("cond_fori", "while_scan"),
    error="ValueError",
    match="out_axes",
    reason="a scan returns read-only components of its carry as new values",
    issue="google/flax#4709",
)
COND_COPIES_OPERANDS = deviation(
    "jax<0.4.31",
    params=("cond",),
    error="ValueError",
    match="out_axes",
    reason="cond does not forward its inputs to outputs, so the select batches both",
    issue="jax-ml/jax#21673",
)
JITTED_STEP_COPIES_CARRY = deviation(
    params=("jitted_body",),
    error="ValueError",
    match="out_axes",
    reason="jax does not recognise a value that a jitted step returns unchanged as read-only",
    issue="jax-ml/jax#27937",
)


@program(
    source="google/flax#4700",
    params={
        "while": {"loop": "while"},
        "jitted_body": {"loop": "jitted_body"},
        "nested": {"loop": "nested"},
        "fori": {"loop": "fori"},
        "cond": {"loop": "cond"},
        "cond_fori": {"loop": "cond_fori"},
        "cond_while": {"loop": "cond_while"},
        "while_scan": {"loop": "while_scan"},
    },
    deviations=[
        WHILE_BATCHES_CARRY,
        SCAN_COPIES_CARRY,
        COND_COPIES_OPERANDS,
        JITTED_STEP_COPIES_CARRY,
    ],
)
def lax_parameters_stay_unbatched(env, loop):
    """Parameters that a loop only reads stay unbatched, so that `out_axes=None` is accepted.

    Different trip counts are no reason to copy the parameters. `nnx.vmap(..., in_axes=(None, 0,
    0))` relies on this after each call. Through a jitted step inside the body it holds on no
    release: do not return parameters from such a step.
    """
    fn, shape = LOOPS[loop]
    return Program(
        jax.vmap(fn, in_axes=(None, 0, 0), out_axes=(0, None)),
        args=data(env),
        reference=lambda kernel, xs, ns: (compute_expected(kernel, xs, ns, shape), kernel),
    )


@program(source="google/flax#4700")
def lax_loop_of_three(env):
    """Parameters carried through a loop of known length are unbatched on every release."""
    loops = ("fori_static", "scan")

    def fn(*args):
        each = {"in_axes": (None, 0, 0), "out_axes": (0, None)}
        return {loop: jax.vmap(LOOPS[loop][0], **each)(*args) for loop in loops}

    def exact(kernel, xs, ns):
        return dict.fromkeys(loops, (compute_expected(kernel, xs, ns, "static"), kernel))

    return Program(fn, args=data(env), reference=exact)


@program(
    source="google/flax#4700",
    params={"fori": {"loop": "fori"}, "cond_fori": {"loop": "cond_fori"}},
    same_as=("jit", "eager", "aot", "vmap_of_one"),
)
def lax_values(env, loop):
    """Each example's result has its own number of steps, with batched parameters or not."""
    fn, shape = LOOPS[loop]
    return Program(
        jax.vmap(lambda kernel, x, n: fn(kernel, x, n)[0], in_axes=(None, 0, 0)),
        args=data(env),
        reference=lambda kernel, xs, ns: compute_expected(kernel, xs, ns, shape),
    )


@program(source="google/flax#4700")
def lax_written_parameters_are_batched(env):
    """Parameters that the loop writes differ between examples: requesting one copy is an error.

    The limit of jax#27937: even `kernel + 0` is a write.
    """

    def fn(kernel, x, n):
        def body(carry):
            i, x, kernel = carry
            return i + 1, _layer(x, kernel), kernel + 0.0

        _, x, kernel = lax.while_loop(lambda carry: carry[0] < n, body, (0, x, kernel))
        return x, kernel

    return Program(
        jax.vmap(fn, in_axes=(None, 0, 0), out_axes=(0, None)),
        args=data(env),
        reference=raises("ValueError", match="out_axes is None|at vmap out_axes"),
    )


WHILE_COPIES_PARAMETERS = deviation(
    "jax<0.6",
    params=("carry",),
    outcome="ok",
    match="copies",
    reason="a batched predicate batches the whole carry of a while loop",
    issue="google/flax#4700",
)


@probe(
    source="google/flax#4700",
    params={"carry": {"closed_over": False}, "closure": {"closed_over": True}},
    deviations=[WHILE_COPIES_PARAMETERS],
)
def lax_copies_inside_the_loop(env, closed_over):
    """The loop has no batch of kernels if the parameters are not used after it.

    The silent side of flax#4700: no error, B times the memory. Closing over the parameters
    instead of carrying them is the workaround on every release.
    """

    def fn(kernel, x, n):
        if not closed_over:
            return _while(kernel, x, n)[0]
        body = lambda c: (c[0] + 1, _layer(c[1], kernel))  # noqa: E731 - reads as the loop it is
        return lax.while_loop(lambda c: c[0] < n, body, (0, x))[1]

    kernel, xs, ns = data(env)
    batched = jax.vmap(fn, in_axes=(None, 0, 0))
    jaxpr = str(jax.make_jaxpr(batched)(kernel, xs, ns))
    seen = {"copies": BATCHED_KERNEL in jaxpr, "value": batched(kernel, xs, ns)}
    return Observed(seen, {"copies": False, "value": compute_expected(kernel, xs, ns, "while")})


@program(source="google/flax#4709")
def lax_gradient(env):
    """Gradients of unbatched parameters sum over the batch, through cond and fori_loop.

    flax#4709 needs fori_loop because a while loop has no reverse mode. The reference uses central
    differences in float64.
    """

    def loss(kernel, xs, ns):
        outs = jax.vmap(lambda k, x, n: _cond_fori(k, x, n)[0], in_axes=(None, 0, 0))
        return outs(kernel, xs, ns).sum()

    def differences(kernel, xs, ns):
        kernel, eps = kernel.astype(np.float64), 1e-5
        slope = np.zeros((WIDTH, WIDTH))
        for where in np.ndindex(WIDTH, WIDTH):
            step = np.zeros((WIDTH, WIDTH))
            step[where] = eps
            up, down = (compute_expected(kernel + s, xs, ns, "cond").sum() for s in (step, -step))
            slope[where] = (up - down) / (2 * eps)
        return slope

    return Program(jax.grad(loss), args=data(env), reference=differences)
