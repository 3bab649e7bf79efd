"""Positions of static and donated arguments: in any order, and counted from the end."""

from __future__ import annotations

import gc
import weakref

import jax
import numpy as np

from conformance.kit import Observed, deviation, probe


def evaluate(jaxpr, *args):
    """Evaluate a closed jaxpr, and return its first result."""
    return jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)[0]


TRANSFORMS = {
    "jit": lambda f, **static: jax.jit(f, **static)(5, 2, 3),
    "aot": lambda f, **static: jax.jit(f, **static).lower(5, 2, 3).compile()(3),
    "make_jaxpr": lambda f, **static: evaluate(jax.make_jaxpr(f, **static)(5, 2, 3), 3),
    "checkpoint": lambda f, **static: jax.checkpoint(f, **static)(5, 2, 3),
    "gradient": lambda f, **static: jax.grad(lambda c: jax.checkpoint(f, **static)(5, 2, c))(3.0),
}

SWAPPED = deviation(
    "jax<0.6.1",
    params=["jit", "aot", "make_jaxpr"],
    outcome="ok",
    reason="the values of static arguments were exchanged",
    issue="jax-ml/jax#28065",
)


@probe(source="jax-ml/jax#28065", params=[*TRANSFORMS], deviations=[SWAPPED])
def positions_in_any_order(env, name):
    """`static_argnums=(1, 0)` makes the first two arguments static, as `(0, 1)` does.

    Up to 0.6.0 the function silently received its first argument as its second.
    """

    def compute(positions):
        # The traces of one function are shared, so each order has a function of its own.
        return TRANSFORMS[name](lambda a, b, c: (a - b) * c, static_argnums=positions)

    exact = 3 if name == "gradient" else 9
    return Observed(np.float64([compute((0, 1)), compute((1, 0))]), np.float64([exact, exact]))


FIRST_VALUE_AGAIN = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="calls with another value of the static argument ran the program of the first",
    issue="jax-ml/jax@d7a22d37207e",
)


@probe(source="jax-ml/jax@d7a22d37207e", deviations=[FIRST_VALUE_AGAIN])
def position_from_the_end(env):
    """`static_argnums=-1` compiles again for each value of the last argument."""
    times = jax.jit(lambda x, n: x * n, static_argnums=-1)

    def is_right(n):
        try:
            return float(times(2.0, n)) == 2 * n
        except ValueError:  # on 0.4.30 a buffer too many was sometimes noticed
            return False

    return Observed([is_right(n) for n in (3, 4, 5)], [True, True, True])


GIVEN_TWICE_AS_AN_ARGUMENT = deviation(
    "jax<0.9",
    error="TypeError",
    match="takes 2 positional arguments but 3 were given",
    reason="a position that was listed twice gave the function an argument too many",
)


@probe(source="jax-ml/jax@d7a22d37207e", deviations=[GIVEN_TWICE_AS_AN_ARGUMENT])
def position_listed_twice(env):
    """`static_argnums=(1, 1)` makes the second argument static, as 1 does."""
    return Observed(float(jax.jit(lambda x, n: x**n, static_argnums=(1, 1))(2.0, 3)), 8.0)


TRACED = deviation(
    "jax<0.4.36",
    error="TypeError",
    match="Shapes must be 1D sequences of concrete values",
    reason="eval_shape traced all arguments of the jitted function, also the static ones",
)
TRACED_AND_REFUSED = deviation(
    "jax>=0.4.36,<0.7",
    error="ValueError",
    match="Non-hashable static arguments",
    reason="eval_shape traced all arguments, and the jitted function refused the traced number",
)


@probe(source="jax-ml/jax@9afc047bf02c", deviations=[TRACED, TRACED_AND_REFUSED])
def shape_with_a_static_argument(env):
    """`jax.eval_shape` of a jitted function accepts its static arguments."""
    f = jax.jit(lambda x, n: x.reshape(n, -1), static_argnums=1)
    return Observed(jax.eval_shape(f, np.zeros(6, np.float32), 2).shape, (2, 3))


DONATES_NOTHING = deviation(
    outcome="ok",
    reason="the position is accepted, and no argument is donated",
    issue="jax-ml/jax@462e5c603a6c",
)


@probe(
    source="jax-ml/jax@462e5c603a6c",
    params={"any_number": {"mapped": False}, "pmap": {"mapped": True}},
    deviations=[DONATES_NOTHING],
)
def donated_position_from_the_end(env, mapped):
    """`donate_argnums=-1` is ignored by `jit` of a function of `*args`, and by `pmap`."""
    if mapped:
        # pmap donates only arrays that are split over devices.
        add = jax.pmap(lambda x, y: x + y, donate_argnums=-1)
        split = jax.pmap(lambda x: x)
        x, y = (split(np.ones((1, 8), np.float32)) for _ in range(2))
    else:
        add = jax.jit(lambda *args: args[0] + args[1], donate_argnums=-1)
        x, y = (jax.device_put(np.ones(8, np.float32)) for _ in range(2))
    add(x, y)
    return Observed([x.is_deleted(), y.is_deleted()], reference=[False, True])


TRACED_BY_NAME = deviation(
    "jax<0.12",
    outcome="ok",
    reason="a position from the end stood for no name, so an argument by keyword was traced",
    issue="jax-ml/jax@462e5c603a6c",
)


@probe(source="jax-ml/jax@462e5c603a6c", deviations=[TRACED_BY_NAME])
def position_from_the_end_by_keyword(env):
    """With `static_argnums=-1`, the last argument is static by keyword, too, from 0.12.0 on.

    Before, it was silently traced if it was passed by keyword. With `static_argnums=1` it is not.
    """
    kinds = []

    def scale(x, n):
        kinds.append(type(n).__name__)
        return x * n

    jax.jit(scale, static_argnums=-1)(2.0, n=3)
    return Observed(kinds[0], reference="int")


FREED_TWICE = deviation(
    "jax>=0.7,<0.7.1",
    outcome="crashed",
    reason="the jitted function was freed twice",
    issue="jax-ml/jax#30517",
)


@probe(source="jax-ml/jax#30517", deviations=[FREED_TWICE])
def static_function_that_keeps_its_jit(env):
    """`jax.clear_caches` may free a jitted function whose weak key is a static argument of it."""
    cache = weakref.WeakKeyDictionary()

    def call():
        def key(_):
            pass

        def ignore(fn):
            pass

        ignore = cache[key] = jax.jit(ignore, static_argnums=0)
        ignore(key)

    call()
    jax.clear_caches()
    gc.collect()
    return Observed(np.float64(1), reference=np.float64(1))
