"""`scan`: carries and constants, unrolling, and what is refused in loops, with the messages."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program, raises
from conformance.kit import strategies as st
from conformance.kit.endings import refusal
from conformance.kit.equations import first, types

from ._helpers import floats


@program(source="jax-ml/jax#755", given={"xs": st.arrays("float32", (5, 3))})
def mapped_scan(env, xs):
    """A scan under vmap over another axis gives the right values, forward and in reverse."""
    orders = {"forward": False, "reverse": True}

    def fn(xs):
        def scan(reverse):
            return lax.scan(lambda c, x: (2 * c + x, c - x), 1.0, xs, reverse=reverse)

        return {name: scan(reverse) for name, reverse in orders.items()}

    def python(xs, reverse):
        c, ys = np.ones(3), np.zeros((5, 3))
        for i in range(5)[:: -1 if reverse else 1]:
            c, ys[i] = 2 * c + xs[i], c - xs[i]
        return c, ys.T

    return Program(
        jax.vmap(fn, in_axes=1),
        args=(xs,),
        reference=lambda xs: {name: python(xs, reverse) for name, reverse in orders.items()},
    )


@probe(source="jax-ml/jax#1190")
def carries_of_a_mapped_scan(env):
    """Under vmap, only carries and outputs that depend on mapped inputs are mapped."""

    def fn(xs):
        return lax.scan(lambda c, x: ((c[0] + 1, c[1] + x), c[0]), (0, 0.0), xs)

    xs = np.ones((4, 3), np.float32)
    eqn = first(jax.vmap(fn), (xs,), "scan")
    return Observed(types(eqn.outvars), ["int32[]", "float32[4]", "int32[3]"])


READ_ONLY_CARRIES_IN_LOOP = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="the loop carried read-only values like all others",
    issue="jax-ml/jax#28210",
)


@probe(source="jax-ml/jax#28210", deviations=[READ_ONLY_CARRIES_IN_LOOP])
def carry_read_by_the_steps(env):
    """A carry that the body returns unchanged becomes a constant of the scan."""

    def fn(x, factor):
        return lax.scan(lambda s, _: ((s[0] * s[1], s[1]), None), (x, factor), length=3)[0]

    args = (np.float32(1), np.float32(2))
    return Observed(
        {"value": fn(*args), "carries": types(first(fn, args, "scan").outvars)},
        {"value": (np.float32(8), np.float32(2)), "carries": ["float32[]"]},
    )


ROWS_COPIED = deviation(
    "jax<0.6.2",
    outcome="ok",
    reason="the rows were copied one by one into a second array",
    issue="jax-ml/jax#28985",
)


@probe(source="jax-ml/jax#28985", deviations=[ROWS_COPIED])
def rows_handed_through(env):
    """An output that is just the input of the step is forwarded: the scan does not stack it."""

    def fn(xs):
        return lax.scan(lambda c, x: (c + x, x), 0.0, xs)

    xs = floats(1, 2, 3)
    return Observed(
        {"value": fn(xs), "outputs": types(first(fn, (xs,), "scan").outvars)},
        {"value": (np.float32(6), floats(1, 2, 3)), "outputs": ["float32[]"]},
    )


LOOP_OF_ONE_ITERATION = deviation(
    "jax<0.4.36",
    params=["all", "true"],
    outcome="ok",
    reason="a loop of one iteration remained around the unrolled steps",
    issue="jax-ml/jax@15a11365e4f4",
)


@probe(
    source="jax-ml/jax@15a11365e4f4",
    params={
        "some": {"unroll": 2},
        "all": {"unroll": 4},
        "more": {"unroll": 9},
        "true": {"unroll": True},
    },
    deviations=[LOOP_OF_ONE_ITERATION],
)
def unrolled(env, unroll):
    """A scan that is unrolled to its full length has no loop; the value is the same."""
    xs = floats(1, 2, 3, 4)
    fn = jax.jit(lambda xs: lax.scan(lambda c, x: (c * x, c), 1.0, xs, unroll=unroll))
    lowered = fn.lower(xs)
    text, value = lowered.as_text(), lowered.compile()(xs)
    return Observed(
        {"value": value, "loops": text.count("stablehlo.while")},
        {"value": (np.float32(24), floats(1, 1, 2, 6)), "loops": int(unroll == 2)},
    )


ZERO_HAD_NO_MEANING = deviation(
    "jax<0.8.1",
    params=["zero"],
    error="ValueError",
    match="`unroll` must be a `bool` or a positive `int`",
    reason="an unroll of 0 had no meaning",
    issue="jax-ml/jax#29630",
)


@program(
    source="jax-ml/jax#29630",
    platforms=("cpu",),
    params={"zero": {"unroll": 0}, "negative": {"unroll": -1}},
    deviations=[ZERO_HAD_NO_MEANING],
)
def unroll_of_zero(env, unroll):
    """`unroll=0` means no unrolling, as `False` does; a negative number is refused."""

    def fn(xs):
        return lax.scan(lambda c, x: (c + x, c), 0.0, xs, unroll=unroll)

    expected = (np.float64(6), np.array([0.0, 1, 3]))
    expected_error = raises("ValueError", match="`unroll` must be a `bool` or")
    return Program(fn, args=(floats(1, 2, 3),), reference=expected_error if unroll else expected)


RESHAPED_TO_NO_ITERATIONS = deviation(
    "jax<0.5.3",
    outcome="ok",
    reason="the program had a first reshape to zero iterations, and a second reshape back",
    issue="jax-ml/jax#27001",
)


@probe(source="jax-ml/jax#27001", deviations=[RESHAPED_TO_NO_ITERATIONS])
def shorter_than_unroll(env):
    """A scan that is shorter than `unroll` has no iteration of its loop.

    Nothing is reshaped for that loop.
    """
    fn = jax.jit(lambda xs: lax.scan(lambda c, x: (c + x.sum(), 2 * x), 0.0, xs, unroll=2))
    empty = np.zeros((0, 3), np.float32)
    lowered = fn.lower(empty)
    text, value = lowered.as_text(), lowered.compile()(empty)
    return Observed(
        {"value": value, "reshapes": text.count("stablehlo.reshape")},
        {"value": (np.float32(0), empty), "reshapes": 0},
    )


LENGTH_CHECK_LOST = deviation(
    ">=0.8.2,<0.9.1",
    error="AssertionError",
    reason="the check was lost, and an assertion without a message failed later",
    issue="jax-ml/jax@75e7243359fc",
)


@program(source="jax-ml/jax@1eed117148af", platforms=("cpu",), deviations=[LENGTH_CHECK_LOST])
def length_that_disagrees(env):
    """A `length` that disagrees with the leading axis is a ValueError that states both.

    From 0.8.2 to 0.9.0.1 it is an AssertionError without a message.
    """

    def fn(xs):
        return lax.scan(lambda c, x: (c, x), 0.0, xs, length=4)

    expected_error = raises(
        "ValueError", match="`length` argument of 4 which disagrees with .* sizes .3"
    )
    return Program(fn, args=(floats(1, 2, 3),), reference=expected_error)


ARGUMENT_NOT_NAMED = deviation(
    "jax<0.4.33",
    error="ConcretizationTypeError|TracerBoolConversionError",
    match="",
    reason="the message did not name the argument",
    issue="jax-ml/jax#23228",
)


@program(
    source="jax-ml/jax#23228",
    platforms=("cpu",),
    params={"length": {"keyword": "length"}, "unroll": {"keyword": "unroll"}},
    deviations=[ARGUMENT_NOT_NAMED],
)
def traced_length(env, keyword):
    """The error for a traced `length` or `unroll` names that argument.

    From 0.6.0 the message for `length` also names `fori_loop` and `while_loop` as the way to a
    dynamic length.
    """

    def fn(n):
        return lax.scan(lambda c, _: (c, c), 0.0, length=3, **{keyword: n})

    def length(n):
        return lax.scan(lambda c, _: (c, c), 0.0, length=n)

    match = f"The `{keyword}` argument to `scan` expects a concrete `int`"
    return Program(
        length if keyword == "length" else fn,
        args=(np.int32(3),),
        reference=raises("ConcretizationTypeError", match=match),
    )


NO_ALTERNATIVE_NAMED = deviation(
    "jax<0.6",
    error="ConcretizationTypeError",
    reason="the message named no alternative",
    issue="jax-ml/jax#27583",
)


@program(source="jax-ml/jax#27583", platforms=("cpu",), deviations=[NO_ALTERNATIVE_NAMED])
def traced_length_way_out(env):
    """The error for a traced length recommends `while_loop` or `fori_loop`."""

    def fn(n):
        return lax.scan(lambda c, _: (c + 1, None), 0, length=n)[0]

    expected_error = raises("ConcretizationTypeError", match="use `while_loop` or `fori_loop`")
    return Program(fn, args=(np.int32(3),), reference=expected_error)


INTERNAL_TYPE_IN_MESSAGE = deviation(
    "jax>=0.8.2",
    params=["carry"],
    error="TypeError",
    match="The input carry c is a <class 'jax._src.core.ShapedArray'>",
    reason="the message shows an internal type of jax where it should show the user's type",
    issue="jax-ml/jax@b2c53a3e4916",
)
MESSAGE_WORDED_DIFFERENTLY = deviation(
    "jax<0.4.33",
    params=["carry"],
    error="TypeError",
    match="the input carry c is a <class 'float'>",
    reason="the message was worded differently",
    issue="jax-ml/jax#22857",
)


@program(
    source="jax-ml/jax#22857",
    platforms=("cpu",),
    params={"carry": {"case": "carry"}, "pair": {"case": "pair"}},
    deviations=[INTERNAL_TYPE_IN_MESSAGE, MESSAGE_WORDED_DIFFERENTLY],
)
def carry_of_another_structure(env, case):
    """The error for a carry or result of the wrong structure names the user's own types.

    From 0.8.2 it reports a carry that was a Python float as a `ShapedArray`.
    """
    body = {"carry": lambda c, _: ((c, c), c), "pair": lambda c, _: c}[case]
    match = {"carry": "The input carry c is a <class 'float'>", "pair": "must be a pair"}[case]

    def fn(xs):
        return lax.scan(body, 0.0, xs)

    return Program(fn, args=(floats(1, 2),), reference=raises("TypeError", match=match))


LINEAR_WAS_A_PARAMETER = deviation(
    "jax<0.10",
    outcome="ok",
    reason="`linear` and `_split_transpose` were parameters, too",
    issue="jax-ml/jax@fdb48fa0d52a",
)
TREE_REPLACES_COUNTS = deviation(
    "jax>=0.11",
    outcome="ok",
    reason="a tree of arguments replaces the two counts",
    issue="jax-ml/jax@08958bdfe2d0",
)


@probe(source="jax-ml/jax@08958bdfe2d0", deviations=[LINEAR_WAS_A_PARAMETER, TREE_REPLACES_COUNTS])
def parameters_of_the_equation(env):
    """The parameters of a `scan` equation, which interpreters of jaxprs read, have these names.

    0.10.0 removes `linear`; 0.11.0 replaces `num_consts` and `num_carry` by `ft_in` and `ft_out`.
    """
    eqn = first(lambda xs: lax.scan(lambda c, x: (c + x, c), 0.0, xs), (floats(1, 2),), "scan")
    expected = ["jaxpr", "length", "num_carry", "num_consts", "reverse", "unroll"]
    return Observed(sorted(eqn.params), expected)


@program(source="jax-ml/jax#2956")
def gradient_through_a_loop(env):
    """The gradient of a recurrence is the same through a scan, an unrolled scan and a static fori.

    It is taken with respect to the state, the factor and the inputs.
    """

    def scanned(c, a, xs, unroll=1):
        return lax.scan(lambda c, x: (a * c + x, None), c, xs, unroll=unroll)[0]

    def fn(*args):
        loops = {
            "scan": scanned,
            "unrolled": lambda c, a, xs: scanned(c, a, xs, unroll=3),
            "fori": lambda c, a, xs: lax.fori_loop(0, 4, lambda i, c: a * c + xs[i], c),
        }
        return {name: jax.grad(loop, argnums=(0, 1, 2))(*args) for name, loop in loops.items()}

    def exact(c, a, xs):
        x0, x1, x2, _ = np.float64(xs)
        a = np.float64(a)
        by_a = 4 * a**3 * c + 3 * a**2 * x0 + 2 * a * x1 + x2
        want = a**4, by_a, np.array([a**3, a**2, a, 1])
        return dict.fromkeys(("scan", "unrolled", "fori"), want)

    args = (np.float32(2), np.float32(0.5), floats(1, -2, 3, 4))
    return Program(fn, args=args, reference=exact)


@program(source="jax-ml/jax#27001")
def empty_scan(env):
    """A scan of length zero returns the initial carry, and an empty array of stacked outputs."""

    def fn(c, xs):
        return lax.scan(lambda c, x: (c + jnp.sum(x), c * x), c, xs)

    empty = np.zeros((0, 2), np.float32)
    return Program(fn, args=(np.float32(5), empty), reference=(np.float64(5), empty))


FUNCTION_WITHIN_JAX = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the message named a function of fori_loop",
    issue="jax-ml/jax@3faff78ca8bf",
)


@probe(source="jax-ml/jax@3faff78ca8bf", platforms=("cpu",), deviations=[FUNCTION_WITHIN_JAX])
def function_of_a_failing_loop(env):
    """An error in the body of a `fori_loop` names the body, not a function within JAX."""

    def my_body(i, x):
        return bool(x)

    constant = refusal(lambda: lax.fori_loop(0, 5, my_body, 3.0), "my_body at")
    traced = refusal(lambda: jax.jit(lambda n: lax.fori_loop(0, n, my_body, 3.0))(5), "my_body at")
    return Observed([constant, traced], ["TracerBoolConversionError: my_body at"] * 2)


LOWER_CASE = deviation(
    "jax>=0.4.33,<0.4.38",
    outcome="ok",
    reason="the whole sentence was put in lower case to capitalise it",
    issue="jax-ml/jax@74e9275bf28b",
)


@probe(source="jax-ml/jax@74e9275bf28b", deviations=[LOWER_CASE])
def name_of_a_carry_in_a_message(env):
    """The message about a carry whose dtype changes has its name as it is written."""

    def step(carry, _):
        return {"Weight": carry["Weight"].astype(np.float32)}, None

    start = {"Weight": np.int32(1)}
    outcome = refusal(lambda: lax.scan(step, start, np.arange(2)), "['Weight']")
    return Observed(outcome, reference="TypeError: ['Weight']")
