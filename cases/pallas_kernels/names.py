"""Names and keywords of Pallas that changed between releases, each by a kernel that uses it."""

import contextlib
import io

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import F32, copy, double, run, run_rows, shape, square, vector

defaults(platforms=("cpu",))

ORDERS = {
    "sizes_first": lambda: pl.BlockSpec((2,), lambda i: (i,)),
    "index_map_first": lambda: pl.BlockSpec(lambda i: (i,), (2,)),
    "list_of_sizes": lambda: pl.BlockSpec(block_shape=[2], index_map=lambda i: (i,)),
}
ONLY_INDEX_MAP_FIRST = deviation(
    "jax<0.4.31",
    params=["sizes_first", "list_of_sizes"],
    error="TypeError",
    reason="the index map came first, and the sizes were a tuple",
    issue="jax-ml/jax@a2a5068e5e1d",
)
SIZES_FIRST = deviation(
    "jax>=0.4.35",
    params=["index_map_first"],
    error="TypeError",
    match="function",
    reason="the former order was removed",
    issue="jax-ml/jax@a2a5068e5e1d",
)


@probe(
    source="jax-ml/jax@a2a5068e5e1d",
    params=[*ORDERS],
    deviations=[ONLY_INDEX_MAP_FIRST, SIZES_FIRST],
)
def order_of_a_block_spec(env, name):
    """A BlockSpec takes the sizes first from 0.4.31; the former order works up to 0.4.34."""
    out = run_rows(double, shape(8), vector(), in_specs=[ORDERS[name]()])
    return Observed(out, reference=2 * vector())


def _unblocked():
    return pl.BlockSpec(
        block_shape=(2,), index_map=lambda i: (2 * i,), indexing_mode=pl.Unblocked()
    )


def _element():
    return pl.BlockSpec((pl.Element(2),), lambda i: (2 * i,))


def _blocked():
    return pl.BlockSpec((pl.Blocked(2),), lambda i: (i,))


def _buffered():
    return pl.BlockSpec((2,), lambda i: (i,), pipeline_mode=pl.Buffered(1))


BLOCK_NAMES = {
    "unblocked": _unblocked,
    "element": _element,
    "blocked": _blocked,
    "buffered": _buffered,
}
REMOVED = deviation(
    "jax>=0.6.1",
    params=["unblocked"],
    error="AttributeError",
    match="Unblocked",
    reason="indexing_mode was removed for pl.Element",
    issue="jax-ml/jax@eab1dfccbca4",
)
NO_ELEMENT = deviation(
    "jax<0.6.1",
    params=["element"],
    error="AttributeError",
    match="Element",
    reason="indexing_mode=pl.Unblocked() did the same",
    issue="jax-ml/jax@eab1dfccbca4",
)
NO_BLOCKED = deviation(
    "jax<0.4.31",
    params=["blocked"],
    error="AttributeError",
    match="Blocked",
    reason="it did not exist",
)
NO_BLOCKED_SIZE = deviation(
    "jax>=0.4.31,<0.6.1",
    params=["blocked"],
    error="TypeError",
    match="takes no arguments",
    reason="Blocked was an indexing mode without a size",
    issue="jax-ml/jax@eab1dfccbca4",
)
NO_BUFFERED = deviation(
    "jax<0.5.1",
    params=["buffered"],
    error="AttributeError",
    match="Buffered",
    reason="a BlockSpec had no pipeline mode",
)


@probe(
    source="jax-ml/jax@eab1dfccbca4",
    params=[*BLOCK_NAMES],
    deviations=[REMOVED, NO_ELEMENT, NO_BLOCKED, NO_BLOCKED_SIZE, NO_BUFFERED],
)
def kinds_of_blocks(env, name):
    """`pl.Element` and `pl.Blocked` sizes replace `indexing_mode` in 0.6.1."""
    out = run_rows(double, shape(8), vector(), in_specs=[BLOCK_NAMES[name]()])
    return Observed(out, reference=2 * vector())


NOT_SQUEEZED = deviation(
    "jax<0.6.1",
    error="AttributeError",
    match="Squeezed",
    reason="None was the only spelling",
    issue="jax-ml/jax@eab1dfccbca4",
)


@probe(source="jax-ml/jax@eab1dfccbca4", deviations=[NOT_SQUEEZED])
def squeezed(env):
    """`pl.Squeezed()` removes an axis from the block, as None does, and mixes with Element."""
    spec = pl.BlockSpec((pl.Squeezed(), pl.Element(2)), lambda i, j: (i, j))
    out_spec = pl.BlockSpec((None, 2), lambda i, j: (i, j))
    out = run(copy, shape(4, 6), square(), grid=(4, 3), in_specs=[spec], out_specs=out_spec)
    return Observed(out, reference=np.concatenate([square()[:, j : j + 2] for j in range(3)], 1))


def _triton():
    from jax.experimental.pallas import triton  # noqa: PLC0415 - from 0.4.35

    return triton


def _masked_load(o_ref, x_ref, mask):
    o_ref[...] = pl.load(x_ref, (pl.ds(0, 8),), mask=mask, other=-1.0)


def _masked_store(o_ref, x_ref, mask):
    o_ref[...] = jnp.full_like(o_ref, -1)
    pl.store(o_ref, (pl.ds(0, 8),), x_ref[...], mask=mask)


def _triton_load(o_ref, x_ref, mask):
    o_ref[...] = _triton().load(x_ref.at[pl.ds(0, 8)], mask=mask, other=-1.0)


def _triton_store(o_ref, x_ref, mask):
    o_ref[...] = jnp.full_like(o_ref, -1)
    _triton().store(o_ref.at[pl.ds(0, 8)], x_ref[...], mask=mask)


def _tpu_store(o_ref, x_ref, mask):
    o_ref[...] = jnp.full_like(o_ref, -1)
    pltpu.store(o_ref.at[pl.ds(0, 8)], x_ref[...], mask=mask)


MASKED = {
    "pl.load": _masked_load,
    "pl.store": _masked_store,
    "triton.load": _triton_load,
    "triton.store": _triton_store,
    "tpu.store": _tpu_store,
}
LOAD_REMOVED = deviation(
    "jax>=0.9",
    params=["pl.load", "pl.store"],
    error="AttributeError",
    match="has no attribute",
    reason="removed for indexing and the functions of the backends",
    issue="jax-ml/jax@f35ed72eff13",
)
NO_TRITON = deviation(
    "jax<0.4.35",
    params=["triton.load", "triton.store"],
    error="ImportError",
    match="cannot import name 'triton'",
    reason="the module was pallas.gpu",
)
NO_LOAD_OF_TRITON = deviation(
    "jax>=0.4.35,<0.7.1",
    params=["triton.load", "triton.store"],
    error="AttributeError",
    match="has no attribute",
    reason="only pl.load and pl.store existed",
    issue="jax-ml/jax@907a64d8f415",
)
NO_STORE_OF_TPU = deviation(
    "jax<0.7.1",
    params=["tpu.store"],
    error="AttributeError",
    match="has no attribute",
    reason="only pl.load and pl.store existed",
    issue="jax-ml/jax@907a64d8f415",
)


@probe(
    source="jax-ml/jax@907a64d8f415",
    params=[*MASKED],
    deviations=[LOAD_REMOVED, NO_TRITON, NO_LOAD_OF_TRITON, NO_STORE_OF_TPU],
)
def masked(env, name):
    """Masked loads and stores move from `pl` to the backends in 0.7.1; `pl` drops them in 0.9.0."""

    def kernel(x_ref, o_ref):
        mask = jax.lax.broadcasted_iota(np.int32, (8,), 0) < 5
        MASKED[name](o_ref, x_ref, mask)

    exact = np.where(np.arange(8) < 5, vector(), -1).astype(F32)
    return Observed(run(kernel, shape(8), vector()), reference=exact)


PLACES = {"pl": lambda: pl, "triton": _triton}
ATOMICS_REMOVED = deviation(
    "jax>=0.9",
    params=["pl"],
    error="AttributeError",
    match="atomic_add",
    reason="moved to pallas.triton",
    issue="jax-ml/jax@77a1ddd7bcd6",
)
NO_MODULE_OF_TRITON = deviation(
    "jax<0.4.35",
    params=["triton"],
    error="ImportError",
    match="cannot import name 'triton'",
    reason="the module was pallas.gpu",
)
NO_ATOMICS_OF_TRITON = deviation(
    "jax>=0.4.35,<0.7.1",
    params=["triton"],
    error="AttributeError",
    match="atomic_add",
    reason="they were in pallas",
    issue="jax-ml/jax@77a1ddd7bcd6",
)


@probe(
    source="jax-ml/jax@77a1ddd7bcd6",
    params=[*PLACES],
    deviations=[ATOMICS_REMOVED, NO_MODULE_OF_TRITON, NO_ATOMICS_OF_TRITON],
)
def atomics(env, name):
    """`atomic_add` returns the former values; it moves from `pl` to `triton` in 0.7.1."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        former = PLACES[name]().atomic_add(o_ref, (pl.ds(0, 4),), x_ref[pl.ds(4, 4)])
        o_ref[pl.ds(4, 4)] = former

    exact = np.array([4, 6, 8, 10, 0, 1, 2, 3], F32)
    return Observed(run(kernel, shape(8), vector()), reference=exact)


PARAMETERS = {
    "dictionary": lambda: {"mosaic": {"dimension_semantics": ("parallel",)}},
    "TPUCompilerParams": lambda: pltpu.TPUCompilerParams(dimension_semantics=("parallel",)),
    "CompilerParams": lambda: pltpu.CompilerParams(dimension_semantics=("parallel",)),
}
DICTIONARY_REFUSED = deviation(
    "jax>=0.6.1,<0.9.1",
    params=["dictionary"],
    error="ValueError",
    match="Unknown backend in compiler_params",
    reason="parameters of the compiler are a dataclass of the backend",
    issue="jax-ml/jax@987fc45ccfd5",
)
DICTIONARY_NOT_HASHABLE = deviation(
    "jax>=0.9.1",
    params=["dictionary"],
    error="TypeError",
    reason="a dictionary of backends is no longer accepted, and has no hash",
    issue="jax-ml/jax@987fc45ccfd5",
)
NOT_YET_A_DATACLASS = deviation(
    "jax<0.4.33",
    params=["TPUCompilerParams"],
    error="AttributeError",
    match="TPUCompilerParams",
    reason="parameters of the compiler were a dictionary",
)
FORMER_NAME_REMOVED = deviation(
    "jax>=0.7.2",
    params=["TPUCompilerParams"],
    error="AttributeError",
    match="TPUCompilerParams",
    reason="the name was removed",
    issue="jax-ml/jax@f1960a81ae74",
)
NEW_NAME_MISSING = deviation(
    "jax<0.6.2",
    params=["CompilerParams"],
    error="AttributeError",
    match="CompilerParams",
    reason="the name was TPUCompilerParams",
    issue="jax-ml/jax@d0d081564953",
)


@probe(
    source="jax-ml/jax@d0d081564953",
    params=[*PARAMETERS],
    deviations=[
        DICTIONARY_REFUSED,
        DICTIONARY_NOT_HASHABLE,
        NOT_YET_A_DATACLASS,
        FORMER_NAME_REMOVED,
        NEW_NAME_MISSING,
    ],
)
def compiler_params(env, name):
    """`compiler_params` is a dictionary, then a TPUCompilerParams, from 0.6.2 a CompilerParams."""
    out = run_rows(double, shape(8), vector(), compiler_params=PARAMETERS[name]())
    return Observed(out, reference=2 * vector())


NO_ESTIMATE = deviation(
    "jax<0.4.36",
    error="AttributeError",
    match="(CostEstimate|estimate_cost)",
    reason="it did not exist",
)


@probe(source="jax-ml/jax@d872812a359a", deviations=[NO_ESTIMATE])
def cost_estimate(env):
    """`pl.estimate_cost` counts the work of a function; `cost_estimate` does not change values."""
    a, b = jax.ShapeDtypeStruct((4, 8), F32), jax.ShapeDtypeStruct((8, 4), F32)
    cost = pl.estimate_cost(lambda x, y: jnp.exp(x @ y), a, b)
    out = run_rows(double, shape(8), vector(), cost_estimate=cost)
    result = [cost.flops, cost.transcendentals, cost.bytes_accessed, out]
    return Observed(result, reference=[2 * 4 * 8 * 4, 16, 4 * (32 + 32 + 16), 2 * vector()])


PRINTS = {"pl.debug_print": lambda: pl.debug_print, "jax.debug.print": lambda: jax.debug.print}


@probe(source="jax-ml/jax@d872812a359a", params=[*PRINTS])
def debug_print(env, name):
    """A kernel prints in each step of the grid, in order."""

    def kernel(x_ref, o_ref):
        PRINTS[name]()("{} {}", pl.program_id(0), x_ref[1])
        o_ref[...] = x_ref[...]

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        jax.block_until_ready(run_rows(kernel, shape(8), vector()))
        jax.effects_barrier()
    return Observed(printed.getvalue(), reference="0 1.0\n1 3.0\n2 5.0\n3 7.0\n")


CHECKIFY_REMOVED = deviation(
    "jax>=0.10.1",
    outcome="ok",
    match="ValueError",
    reason="checkify in kernels was removed; a kernel uses debug_check",
    issue="jax-ml/jax@ee809fb8d2a7",
)


@probe(source="jax-ml/jax@ee809fb8d2a7", deviations=[CHECKIFY_REMOVED])
def checkify(env):
    """`checkify.check` in a kernel reports its message up to 0.10.0, and is refused later."""
    from jax.experimental import checkify as jax_checkify  # noqa: PLC0415 - imports slowly

    def kernel(x_ref, o_ref):
        jax_checkify.check(x_ref[0] > 0, "not positive")
        o_ref[...] = x_ref[...]

    def call():
        f = pl.pallas_call(kernel, out_shape=shape(8), interpret=True)
        error, _ = jax.jit(jax_checkify.checkify(f))(vector())
        error.throw()

    words = "not positive"
    return Observed(refusal(call, words), reference="JaxRuntimeError: not positive")
