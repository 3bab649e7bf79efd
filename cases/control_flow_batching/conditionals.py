"""Conditionals under vmap: when `cond` becomes a select, and effects of the branch not taken.

A mapped predicate turns `cond` into a select, and both branches run. Values stay correct; costs,
effects and the axes of results change. With an unmapped predicate the conditional must stay as
written.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program, raises
from conformance.kit.equations import counts, first

from ._helpers import donate, floats

BRANCHES = (jnp.sin, jnp.cos, jnp.exp)


@probe(source="jax-ml/jax#8409")
def predicate(env):
    """`cond` and `switch` become a select under vmap only if their predicate is mapped."""
    x = floats(0.5, 1.0, 1.5)

    def make_call(kind, index):
        def fn(i, x):
            if kind == "cond":
                return lax.cond(i == 1, BRANCHES[1], BRANCHES[0], x)
            return lax.switch(i, BRANCHES, x)

        return jax.vmap(fn, in_axes=(0 if np.ndim(index) else None, 0)), (np.int32(index), x)

    indices = {"cond": [1, 0, 1], "cond_shared": 1, "switch": [2, 0, 1], "switch_shared": 2}
    calls = {name: make_call(name.partition("_")[0], index) for name, index in indices.items()}
    found = {name: counts(*call, "cond select_n") for name, call in calls.items()}
    values = jax.jit(lambda: {name: fn(*args) for name, (fn, args) in calls.items()})()
    left = {name: (count["cond"], count["select_n"] > 0) for name, count in found.items()}
    exact = (np.sin, np.cos, np.exp)
    expected = {
        name: np.array([exact[i](np.float64(v)) for i, v in np.broadcast(index, x)])
        for name, index in indices.items()
    }
    expected_left = {name: (1, False) if "shared" in name else (0, True) for name in indices}
    return Observed({"value": values, "left": left}, {"value": expected, "left": expected_left})


@probe(source="jax-ml/jax#8409")
def predicate_of_a_collective(env):
    """A psum over the mapped axis is equal in all lanes, so a `cond` on it stays a `cond`."""
    fn = jax.vmap(
        lambda x: lax.cond(lax.psum(x, "i") > 5, lambda x: 10 * x, lambda x: -x, x), axis_name="i"
    )
    found = counts(fn, (floats(0, 1, 2, 3),), "cond select_n")
    return Observed(
        {"value": jax.jit(fn)(floats(0, 1, 2, 3)), **found},
        {"value": floats(0, 10, 20, 30), "cond": 1, "select_n": 0},
    )


@program(source="jax-ml/jax#5658", platforms=("cpu",))
def dead_branch_root(env):
    """The infinite derivative of a root at 0, in the branch not taken, does not reach the result.

    The select that replaces the cond also guards the operands of the branch; `jnp.where` does not.
    """

    def root(x):
        return lax.cond(x > 0, jnp.sqrt, lambda x: 0 * x, x)

    def fn(x):
        return {
            "vmap_of_grad": jax.vmap(jax.grad(root))(x),
            "grad_of_vmap": jax.grad(lambda x: jax.vmap(root)(x).sum())(x),
            "second": jax.vmap(jax.hessian(root))(x),
        }

    first_order, second = np.array([0, 0.25]), np.array([0, -1 / 32])
    want = {"vmap_of_grad": first_order, "grad_of_vmap": first_order, "second": second}
    return Program(fn, args=(floats(0, 4),), reference=want)


ZERO_TIMES_INFINITY = deviation(
    params=["where"],
    outcome="ok",
    reason="the cotangent of the side not taken is 0 times infinity",
    issue="jax-ml/jax#1052",
)


@program(
    source="jax-ml/jax#1052",
    platforms=("cpu",),
    params={"where": {"guard": False}, "double_where": {"guard": True}},
    deviations=[ZERO_TIMES_INFINITY],
)
def where_at_a_singularity(env, guard):
    """`where(x > 0, sqrt(x), 0)` has a NaN gradient at 0; guard the operand with a second where."""

    def root(x):
        operand = jnp.where(x > 0, x, 1.0) if guard else x
        return jnp.where(x > 0, jnp.sqrt(operand), 0.0).sum()

    return Program(jax.grad(root), args=(floats(0, 4),), reference=np.array([0, 0.25]))


OPERANDS_NOT_FORWARDED = deviation(
    "jax<0.4.31",
    error="ValueError",
    match="out_axes",
    reason="an operand that every branch returns was an output of the cond, and so mapped",
    issue="jax-ml/jax#21806",
)
SWITCH_DID_NOT_FORWARD = deviation(
    ">=0.4.31,<0.6",
    params=["switch"],
    error="ValueError",
    match="out_axes",
    reason="only cond forwarded its operands; switch did not",
    issue="jax-ml/jax#27084",
)


@program(
    source="jax-ml/jax#21806",
    platforms=("cpu",),
    params={"cond": {"kind": "cond"}, "switch": {"kind": "switch"}},
    deviations=[OPERANDS_NOT_FORWARDED, SWITCH_DID_NOT_FORWARD],
)
def operand_passed_through(env, kind):
    """An operand that all branches return unchanged stays unmapped; `out_axes=None` accepts it."""
    branches = (lambda x, y: (x, 2 * y), lambda x, y: (x, 3 * y), lambda x, y: (x, 4 * y))

    def fn(i, x, y):
        if kind == "cond":
            return lax.cond(i == 1, branches[1], branches[0], x, y)
        return lax.switch(i, branches, x, y)

    return Program(
        jax.vmap(fn, in_axes=(0, None, None), out_axes=(None, 0)),
        args=(np.array([0, 1, 0], np.int32), np.float32(7), np.float32(2)),
        reference=(np.float64(7), np.array([4.0, 6.0, 4.0])),
    )


CLOSED_OVER_ARRAY_PASSED_TWICE = deviation(
    "jax<0.5.3",
    outcome="ok",
    reason="an array that both branches close over was passed once for each branch",
    issue="jax-ml/jax@e6db7a9d99fb",
)


@probe(source="jax-ml/jax@e6db7a9d99fb", deviations=[CLOSED_OVER_ARRAY_PASSED_TWICE])
def array_closed_over_twice(env):
    """An array that both branches close over is a single operand of the cond, not two."""

    def fn(p, x, shared):
        return lax.cond(p, lambda x: x + shared, lambda x: x * shared, x)

    args = (np.bool_(True), floats(1, 2), floats(10, 20))
    eqn = first(fn, args, "cond")
    return Observed(
        {"value": fn(*args), "operands": len(eqn.invars)},
        {"value": floats(11, 22), "operands": 3},
    )


CALLBACK_RUNS_IN_EVERY_LANE = deviation(
    params=["batched"],
    outcome="ok",
    reason="both branches of the select run, so the callback is called in every lane",
    issue="jax-ml/jax#19314",
)


@probe(
    source="jax-ml/jax#19314",
    params={"batched": {"axis": 0}, "shared": {"axis": None}},
    deviations=[CALLBACK_RUNS_IN_EVERY_LANE],
)
def callback_in_a_branch(env, axis):
    """Under a mapped predicate, a debug callback in one branch runs for every lane."""
    calls = []

    def told(x):
        jax.debug.callback(lambda value: calls.append(float(value)), x)
        return x

    predicates = np.array([False, True, False]) if axis == 0 else np.bool_(True)
    fn = jax.vmap(lambda p, x: lax.cond(p, told, lambda x: -x, x), in_axes=(axis, 0))
    value = jax.jit(fn)(predicates, floats(1, 2, 3))
    jax.effects_barrier()  # callbacks run asynchronously
    lanes = [2.0] if axis == 0 else [1.0, 2.0, 3.0]
    sign = [-1, 2, -3] if axis == 0 else [1, 2, 3]
    return Observed(
        {"value": value, "told": sorted(calls)}, {"value": floats(*sign), "told": lanes}
    )


IO_REFUSED_FOR_ANY_PREDICATE = deviation(
    params=["shared"],
    error="NotImplementedError",
    match="IO effect not supported in vmap-of-cond",
    reason="vmap of cond refuses IO effects whether or not the predicate is mapped",
    issue="jax-ml/jax#20628",
)


@program(
    source="jax-ml/jax#20628",
    platforms=("cpu",),
    params={"batched": {"axis": 0}, "shared": {"axis": None}},
    deviations=[IO_REFUSED_FOR_ANY_PREDICATE],
)
def io_in_a_branch(env, axis):
    """`io_callback` in a branch is refused under vmap, even if the predicate is unmapped.

    Call it outside of the cond, or use `lax.map` instead of vmap.
    """
    from jax.experimental import io_callback  # noqa: PLC0415 - as users import it

    def told(x):
        return io_callback(np.asarray, jax.ShapeDtypeStruct((), np.float32), x)

    expected_error = raises("NotImplementedError", match="IO effect")
    return Program(
        jax.vmap(lambda p, x: lax.cond(p, told, lambda x: -x, x), in_axes=(axis, 0)),
        args=(np.array([True, False]) if axis == 0 else np.bool_(True), floats(1, 2)),
        reference=expected_error if axis == 0 else np.array([1.0, 2.0]),
    )


WEAK_TYPE_OF_FALSE_BRANCH = deviation(
    params=["literal_if_false"],
    outcome="ok",
    reason="the result of a cond has the weak type of its false branch alone",
)


@probe(
    source="jax-ml/jax#4896",
    params={"literal_if_true": {"last": False}, "literal_if_false": {"last": True}},
    deviations=[WEAK_TYPE_OF_FALSE_BRANCH],
)
def weak_type_of_branches(env, last):
    """A cond with a float32 in one branch and the literal 1.0 in the other is a strong float32.

    It is weak if the literal is in the false branch, so that float16 then wins in a sum. Under vmap
    the same cond is a select, whose result is strong. Write the literal as `jnp.float32(1)`.
    """
    strong, weak = (lambda x: x), (lambda _: 1.0)
    branches = (strong, weak) if last else (weak, strong)

    def fn(p, half):
        cond = lambda p: lax.cond(p, *branches, np.float32(2))  # noqa: E731 - reads best in place
        return {"plain": cond(p[0]) + half, "mapped": jax.vmap(cond)(p) + half}

    found = jax.eval_shape(fn, np.array([True]), np.float16(1))
    return Observed(
        {name: str(value.dtype) for name, value in found.items()},
        {"plain": "float32", "mapped": "float32"},
    )


MESSAGE_WITHOUT_FUNCTIONS = deviation(
    "jax<0.6",
    error="TypeError",
    match="must have (identical types|same type structure)",
    reason="the message neither named the functions nor stated the difference",
    issue="jax-ml/jax@892cb65308d6",
)


@program(
    source="jax-ml/jax@892cb65308d6",
    platforms=("cpu",),
    params={"dtype": {"case": "dtype"}, "shape": {"case": "shape"}, "tree": {"case": "tree"}},
    deviations=[MESSAGE_WITHOUT_FUNCTIONS],
)
def branches_that_differ(env, case):
    """Branches of different types raise a TypeError that names the functions and the difference."""
    other = {"dtype": jnp.int32, "shape": lambda x: x[:1], "tree": lambda x: (x, x)}[case]
    match = {"dtype": "the dtypes do not match", "shape": "the shapes do not match"}

    def fn(p, x):
        return lax.cond(p, jnp.sin, other, x)

    return Program(
        fn,
        args=(np.bool_(True), floats(1, 2)),
        reference=raises("TypeError", match=match.get(case, "Python types differ")),
    )


@program(source="jax-ml/jax#4896", platforms=("cpu",))
def gradient_of_switch(env):
    """The gradient of a switch is that of the branch taken; too large an index takes the last."""

    def fn(i, x):
        return lax.switch(i, (lambda x: x, lambda x: x + jnp.float32(1), lambda x: x**3), x)

    def each(indices, x):
        return lax.map(lambda i: jax.grad(fn, argnums=1)(i, x), indices)

    args = (np.array([0, 1, 2, 7, -1], np.int32), np.float32(3))
    return Program(each, args=args, reference=np.array([1.0, 1, 27, 27, 1]))


COND_RETURNS_ITS_OPERAND = deviation(
    "jax>=0.4.31",
    params=["cond"],
    outcome="ok",
    reason="an operand that every branch returns is not an output of the cond, but forwarded",
    issue="jax-ml/jax#21806",
)
SWITCH_RETURNS_ITS_OPERAND = deviation(
    "jax>=0.6",
    params=["switch"],
    outcome="ok",
    reason="an operand that every branch returns is not an output of the switch, but forwarded",
    issue="jax-ml/jax#27084",
)


@probe(
    source="jax-ml/jax#21806",
    params={"cond": {"kind": "cond"}, "switch": {"kind": "switch"}},
    deviations=[COND_RETURNS_ITS_OPERAND, SWITCH_RETURNS_ITS_OPERAND],
)
def operand_of_a_donated_result(env, kind):
    """Outside of jit, to donate a result of a conditional leaves the operand.

    From 0.4.31 `cond`, and from 0.6.0 `switch`, return an operand that all branches return as the
    same array, so that the donation deletes it. Results of jit are never its arguments.
    """
    operand = jax.device_put(floats(1, 2))
    branches = (lambda x: (x, 2 * x), lambda x: (x, 3 * x))
    if kind == "cond":
        kept, _ = lax.cond(True, *branches, operand)
    else:
        kept, _ = lax.switch(1, branches, operand)
    donate(kept)
    return Observed({"deleted": operand.is_deleted()}, {"deleted": False})


LARGEST_INDEX_IS_NEGATIVE = deviation(
    params=["unsigned"],
    outcome="ok",
    reason="the index is converted to int32 before it is clamped",
    issue="jax-ml/jax@6015a2a6893a",
)


@probe(
    source="jax-ml/jax@6015a2a6893a",
    params={"signed": {"dtype": "int32"}, "unsigned": {"dtype": "uint32"}},
    deviations=[LARGEST_INDEX_IS_NEGATIVE],
)
def branch_beyond_the_last(env, dtype):
    """`lax.switch` clamps an index beyond the last branch, except the largest unsigned ones.

    The index 2**32 - 1 silently takes the first branch.
    """
    index = np.array(np.iinfo(dtype).max, dtype)
    return Observed(int(lax.switch(index, (lambda: 1, lambda: 2))), reference=2)


METHODS_EACH_TIME = deviation(
    "jax>=0.4.31",
    outcome="ok",
    reason="the cache keeps a program as long as its branches, and each method is a new object",
    issue="jax-ml/jax@8db862c02eea",
)


@probe(source="jax-ml/jax@8db862c02eea", deviations=[METHODS_EACH_TIME])
def traces_of_methods(env):
    """Outside of jit, three calls of a `cond` trace its branches once, also if they are methods."""

    class Model:
        traces = 0

        def grow(self, x):
            self.traces += 1
            return 2 * x

    models = {"methods": Model(), "functions": Model()}
    function = models["functions"].grow
    for _ in range(3):
        lax.cond(True, models["methods"].grow, jnp.sin, np.float32(1))
        lax.cond(True, function, jnp.sin, np.float32(1))
    traces = {name: model.traces for name, model in models.items()}
    return Observed(traces, {"methods": 1, "functions": 1})
