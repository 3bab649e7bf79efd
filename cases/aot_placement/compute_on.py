"""`compute_on("device_host")` runs a part of a program on the host of the device.

It is only an annotation, `_xla_compute_type = "host"` on operations of the StableHLO, so its loss
is silent: the program computes the same numbers elsewhere. jax#27825 lost it by
`compute_on(jit(f)).lower(...)`: a jitted function carried `lower` as an attribute,
`functools.wraps` in compute_on copied it, and lowering ahead of time bypassed the wrapper. The
program of jax#27825 shows where it was lowered for: `platform_dependent` adds 1 on a CPU and 2 on a
TPU, so on the host of a TPU it adds 1. Any host can lower to StableHLO for a TPU. The advice is
always: put `jit` outermost, `jit(compute_on(f)).lower(...)`.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.compute_on import compute_on as raw_compute_on

from conformance.kit import Observed, Program, deviation, probe, program

from ._helpers import MARK, by_platform, is_marked, read_chosen_branch


def _wave(x):
    return jnp.sin(x) + 1.0


def _compute_wave(x):
    return np.sin(x.astype(np.float64)) + 1.0


@program(
    source="jax-ml/jax#27825",
    params={"inside": {"inner_jit": False}, "jit_both_sides": {"inner_jit": True}},
    facts={"host_compute": True},
)
def jit_outermost(env, inner_jit):
    """With jit outermost and compute_on inside, the annotation reaches the optimised HLO.

    This spelling works on every release, called or compiled ahead of time, whether or not the
    placed function is jitted itself.
    """
    f = jax.jit(_wave) if inner_jit else _wave
    return Program(
        # jitted here, because up to 0.5.3 the placed function has a `lower`: that of f
        jax.jit(env.compat.compute_on(f)),
        args=(env.rng().standard_normal(8).astype(np.float32),),
        reference=_compute_wave,
    )


GPU_FUSION_DROPS_ANNOTATION = deviation(
    "jax<0.6.1",
    platform="cuda",
    outcome="ok",
    match="host_compute",
    reason="XLA for GPUs fuses the placed part with its neighbours and loses the annotation",
)


@program(
    source="jax-ml/jax#27825",
    facts={"host_compute": True},
    deviations=[GPU_FUSION_DROPS_ANNOTATION],
)
def host_between_device(env):
    """Of three parts, device, host, device, only the middle is placed; the values are right."""
    on_host = env.compat.compute_on(_wave)

    def step(x):
        return on_host(x * 2.0) / 3.0

    return Program(
        step,
        args=(env.rng(1).standard_normal((4, 4)).astype(np.float32),),
        reference=lambda x: _compute_wave(2.0 * x) / 3.0,
    )


@probe(source="jax-ml/jax#27825")
def only_the_host_part_is_marked(env):
    """In a mixed program only the operations of the host carry the annotation."""
    on_host = env.compat.compute_on(_wave)
    x = np.ones(4, np.float32)
    lowered = jax.jit(lambda y: on_host(y * 2.0) / 3.0).lower(x)
    text = lowered.as_text()
    result = {op: is_marked(text, op) for op in ("multiply", "sine", "add", "divide")}
    expected = {"multiply": False, "sine": True, "add": True, "divide": False}
    return Observed(result, expected, artifacts={"stablehlo": lowered})


TPU_TAKES_BACK_ONE_OPERATION = deviation(
    "jax>=0.5.3,<0.7",
    params=("grad",),
    platform="tpu",
    outcome="ok",
    match="host_compute",
    reason="a single operation is left, which XLA takes back to the TPU",
)
CUDA_DROPS_ONE_ANNOTATION = deviation(
    "jax>=0.5.3,<0.7",
    params=("grad",),
    platform="cuda",
    outcome="ok",
    match="host_compute",
    reason="a single operation is left, and it loses the annotation",
)
GPU_FUSION_IN_SCAN = deviation(
    "jax<0.6.1",
    params=("scan",),
    platform="cuda",
    outcome="ok",
    match="host_compute",
    reason="XLA for GPUs fuses the placed part with its neighbours and loses the annotation",
)


@program(
    source="jax-ml/jax#27825",
    params={"grad": {"how": "grad"}, "vmap": {"how": "vmap"}, "scan": {"how": "scan"}},
    facts={"host_compute": True},
    same_as=("jit", "eager", "aot", "vmap_of_one"),
    deviations=[TPU_TAKES_BACK_ONE_OPERATION, CUDA_DROPS_ONE_ANNOTATION, GPU_FUSION_IN_SCAN],
)
def under_transforms(env, how):
    """A placed function stays on the host if differentiated, batched, or run in a scan.

    Compiled for a TPU, the gradient does not on 0.5.3 to 0.6.2: it simplifies to a cosine, and XLA
    did not keep a single operation on the host.
    """
    on_host = env.compat.compute_on(_wave)
    x = env.rng(2).standard_normal((3, 4)).astype(np.float32)
    if how == "grad":
        fn = jax.grad(lambda y: on_host(y).sum())
        return Program(fn, args=(x,), reference=lambda y: np.cos(y.astype(np.float64)))
    if how == "vmap":
        return Program(jax.vmap(on_host), args=(x,), reference=_compute_wave)

    def fn(rows):
        return lax.scan(lambda c, row: (on_host(c) + row, c), jnp.zeros(4, jnp.float32), rows)[0]

    def compute_carry(rows):
        carry = np.zeros(4)
        for row in rows:
            carry = _compute_wave(carry) + row
        return carry

    return Program(fn, args=(x,), reference=compute_carry)


@probe(source="jax-ml/jax#27825")
def call_outside_jit(env):
    """With compute_on outermost, a direct call honours the placement, on every release."""
    x = env.rng(3).standard_normal(8).astype(np.float32)
    placed = env.compat.compute_on(jax.jit(_wave))
    return Observed(placed(x), _compute_wave(x))


LOWER_BYPASSES_COMPUTE_ON = deviation(
    "jax<0.6",
    outcome="ok",
    match="adds|marked",
    reason="lower and trace, copied from the jitted function, silently bypass compute_on",
    issue="jax-ml/jax#27825",
)
LOWER_IS_A_CLASS_ATTRIBUTE = deviation(
    "jax>=0.6",
    error="AttributeError",
    match="has no attribute '(trace|lower)'",
    reason="jax#27873 made lower and trace class attributes: an error instead of silence",
    issue="jax-ml/jax#27825",
)


@probe(
    source="jax-ml/jax#27825", deviations=[LOWER_BYPASSES_COMPUTE_ON, LOWER_IS_A_CLASS_ATTRIBUTE]
)
def lower_outside_jit(env):
    """jax#27825 itself, still open: compute_on outermost, lowered ahead of time for a TPU.

    Up to 0.5.3 the module has no annotation and takes the TPU's branch, so the program computes
    another number on another processor. From 0.6.0 the wrapper has no `trace` or `lower`. In either
    case, put jit outermost.
    """
    placed = env.compat.compute_on(jax.jit(by_platform))
    lowered = placed.trace(np.float32(0)).lower(lowering_platforms=("tpu",))
    text = lowered.as_text()
    result = {"marked": MARK in text, "adds": read_chosen_branch(text)}
    return Observed(result, {"marked": True, "adds": 1.0}, artifacts={"stablehlo": lowered})


BRANCH_BY_LOWERING_PLATFORM = deviation(
    "jax<0.4.31",
    outcome="ok",
    match="adds",
    reason="platform_dependent looked at the lowering platform, not at compute_on",
    issue="jax-ml/jax#27825",
)


@probe(
    source="jax-ml/jax#27825",
    params={"inside": {"inner_jit": False}, "jit_both_sides": {"inner_jit": True}},
    deviations=[BRANCH_BY_LOWERING_PLATFORM],
)
def branch_on_the_host_of_a_tpu(env, inner_jit):
    """With jit outermost, `platform_dependent` on the host of a TPU takes the CPU's branch.

    On 0.4.30 the annotation was present, but the branch was the TPU's: the host ran code meant for
    the device.
    """
    f = jax.jit(by_platform) if inner_jit else by_platform
    placed = jax.jit(env.compat.compute_on(f))
    lowered = placed.trace(np.float32(0)).lower(lowering_platforms=("tpu",))
    text = lowered.as_text()
    result = {"marked": MARK in text, "adds": read_chosen_branch(text)}
    return Observed(result, {"marked": True, "adds": 1.0}, artifacts={"stablehlo": lowered})


WRAPS_COPIED_LOWER = deviation(
    "jax<0.6",
    outcome="ok",
    match="aot",
    reason="functools.wraps copied lower, an attribute of each jitted function",
    issue="jax-ml/jax#27829",
)


@probe(source="jax-ml/jax#27829", deviations=[WRAPS_COPIED_LOWER])
def wrapper_is_not_bypassed(env):
    """A wrapper around a jitted function must not inherit the inner function's `lower`.

    This is the mechanism of jax#27825 without compute_on: a wrapper swaps the arguments, and
    `functools.wraps` copies the attributes of the wrapped function. To have no `lower` is right, to
    lower the unwrapped function is wrong: called, it gives 2, and compiled ahead of time it gave
    the number 1. Fixed in 0.6.0 by jax#27873.
    """
    first = jax.jit(lambda x, y: x + 0.0 * y)

    @functools.wraps(first)
    def swapped(x, y):
        return first(y, x)

    one, two = np.float32(1), np.float32(2)
    if hasattr(swapped, "lower"):
        aot = float(swapped.lower(one, two).compile()(one, two))
    else:
        aot = "no lower"
    return Observed(
        {"called": float(swapped(one, two)), "aot": aot}, {"called": 2.0, "aot": "no lower"}
    )


COMPUTE_TYPE_NOT_IN_KEY = deviation(
    "jax<0.4.33",
    params=("unplaced_after_placed",),
    outcome="ok",
    match="marked",
    reason="the compute type was not part of the key of jit's trace cache",
)


@probe(
    source="jax-ml/jax#27825",
    params={
        "unplaced_after_placed": {"placed_first": True},
        "placed_after_unplaced": {"placed_first": False},
    },
    deviations=[COMPUTE_TYPE_NOT_IN_KEY],
)
def placement_is_in_the_cache_key(env, placed_first):
    """A function used with and without placement has a separate trace for each use.

    On 0.4.30 and 0.4.31 a function that was traced under compute_on silently stayed on the host
    wherever it was jitted afterwards.
    """

    def f(x):
        return x * 2.0 + 1.0

    plain, placed = jax.jit(f), jax.jit(env.compat.compute_on(jax.jit(f)))
    x = np.float32(1)
    if placed_first:
        jax.block_until_ready(placed(x))
        return Observed({"marked": MARK in plain.lower(x).as_text()}, {"marked": False})
    jax.block_until_ready(plain(x))
    return Observed({"marked": MARK in placed.lower(x).as_text()}, {"marked": True})


CONTEXT_MANAGER_REMOVED = deviation(
    "jax>=0.11.1",
    params=("context_manager",),
    error="TypeError",
    match="missing 2 required keyword-only arguments",
    reason="compute_on2 took over the name, and the context manager was removed",
)
CONTEXT_MANAGER_SIGNATURE = deviation(
    "jax>=0.7.1,<0.11.1",
    params=("function",),
    error="TypeError",
    match="multiple values for argument 'compute_type'",
    reason="compute_on had the signature of the context manager",
)
MEMORY_SPACES_NOT_PUBLIC = deviation(
    "jax<0.7.1",
    params=("function",),
    error="AttributeError",
    match="no attribute 'memory'",
    reason="memory spaces were not public yet",
)


@probe(
    source="jax-ml/jax#27825",
    params={"context_manager": {"old": True}, "function": {"old": False}},
    deviations=[CONTEXT_MANAGER_REMOVED, CONTEXT_MANAGER_SIGNATURE, MEMORY_SPACES_NOT_PUBLIC],
)
def spelling(env, old):
    """Each of the two spellings of compute_on works only on some releases.

    Up to 0.11.0 it is a context manager that also decorates, `compute_on("device_host")`. In 0.11.1
    `compute_on2` took over the name: a transformation of a function, with the memory spaces of its
    results as an argument. Code for both sides asks `inspect.signature`.
    """
    x = np.ones(4, np.float32)
    if old:

        def fn(y):
            with raw_compute_on("device_host"):
                return jnp.sin(y)
    else:
        space = jax.memory.Space.Device
        fn = raw_compute_on(jnp.sin, compute_type="device_host", out_memory_spaces=space)
    return Observed({"marked": MARK in jax.jit(fn).lower(x).as_text()}, {"marked": True})


NESTED = deviation(
    "jax>=0.5.1,<0.10.1",
    error="NotImplementedError",
    match="Nesting `compute_on`",
    reason="the context of each operation of the derivative counted as another placement",
    issue="jax-ml/jax@95cb0eb1c969",
)
PLACED_WHERE_MADE = deviation(
    "jax<0.5.1",
    outcome="ok",
    reason="operations of a derivative keep the placement of the function that it is made of",
    issue="jax-ml/jax@95cb0eb1c969",
)
PLACED_WHERE_MADE_AGAIN = deviation(
    "jax>=0.10.1,<0.11.1",
    outcome="ok",
    reason="operations of a derivative keep the placement of the function that it is made of",
    issue="jax-ml/jax@46f75a2a310d",
)


@probe(
    source="jax-ml/jax@95cb0eb1c969",
    deviations=[NESTED, PLACED_WHERE_MADE, PLACED_WHERE_MADE_AGAIN],
)
def derivative_made_outside(env):
    """A function that `jax.vjp` made outside of `compute_on` is placed on the host within it."""

    def f(x):
        _, pull = jax.vjp(_wave, x)
        return env.compat.compute_on(lambda x: pull(x)[0])(x)

    lowered = jax.jit(f).lower(np.float32(1))
    return Observed({"marked": MARK in lowered.as_text()}, {"marked": True})
