"""Transfers to host memory within a program: device_put, its gradient, and offloaded residuals."""

from __future__ import annotations

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import Offloadable, Recompute, checkpoint_name

from conformance.kit import Observed, deviation, probe

from ._helpers import describe_error, memory, summarize_call


def _make_policy():
    return jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["b"],
        names_which_can_be_offloaded=["a"],
        offload_src="device",
        offload_dst="pinned_host",
    )


def _make_loss(policy):
    def loss(x):
        y = checkpoint_name(jnp.sin(x), "a")
        return jnp.sum(checkpoint_name(jnp.cos(y), "b") ** 2)

    return jax.checkpoint(loss, policy=policy)


def _compute_gradient(x):
    y = np.sin(x.astype(np.float64))
    return -2 * np.cos(y) * np.sin(y) * np.cos(x.astype(np.float64))


MEMORY_NAMED_ONLY_IN_JIT = deviation(
    "jax<0.7.1",
    params=["eager"],
    error="ValueError",
    match="TransferToMemoryKind argument to jax.device_put can only be used inside jax.jit",
    reason="a memory without a device could only be named within jit",
    issue="jax-ml/jax@15094a2e7c6b",
)
JITTED_MEMORIES_BEHIND_A_FLAG = deviation(
    "jax<0.4.33",
    params=["jitted"],
    error="NotImplementedError",
    match="memory_kind to device_put via Shardings is not supported on platforms",
    reason="memories were behind a flag, and a CPU lowered none",
)


@probe(
    source="jax-ml/jax#23831",
    platforms=["cpu"],
    params={"eager": {"jitted": False}, "jitted": {"jitted": True}},
    deviations=[MEMORY_NAMED_ONLY_IN_JIT, JITTED_MEMORIES_BEHIND_A_FLAG],
)
def offloaded_gradient(env, jitted):
    """Offloading residuals by name keeps the gradient: in jit from 0.4.32, eagerly from 0.7.1."""
    x = np.arange(8, dtype=np.float32)
    grad = jax.grad(_make_loss(_make_policy()))
    return Observed((jax.jit(grad) if jitted else grad)(x), _compute_gradient(x))


ONE_RESULT_ONLY = deviation(
    "jax>=0.4.33,<0.5",
    error="ValueError",
    match="safe_map",
    reason="one memory was given for all results of the operation",
    issue="jax-ml/jax#25841",
)
OPERATION_BEHIND_A_FLAG = deviation(
    "jax<0.4.33",
    error="NotImplementedError",
    match="memory_kind to device_put via Shardings is not supported on platforms",
    reason="memories were behind a flag, and a CPU lowered none",
)


@probe(
    source="jax-ml/jax#25841",
    platforms=["cpu"],
    deviations=[ONE_RESULT_ONLY, OPERATION_BEHIND_A_FLAG],
)
def offloaded_operation_with_two_results(env):
    """A policy may offload an operation with several results, such as `top_k`, from 0.5.0 on."""

    def policy(primitive, *_, **__):
        if primitive.name == "top_k":
            return Offloadable("device", "pinned_host")
        return Recompute

    @partial(jax.checkpoint, policy=policy)
    def loss(x):
        return (lax.top_k(x, 2)[0] ** 2).sum()

    result = jax.jit(jax.grad(loss))(np.float32([5, 1, 3, 4]))
    return Observed(result, reference=np.array([10.0, 0, 0, 8]))


PRIVATE_CLASS_IN_JAXPR = deviation(
    "jax<0.7.1",
    outcome="ok",
    match="TransferToMemoryKind",
    reason="a private class named the memory",
)


@probe(source="jax-ml/jax@15094a2e7c6b", platforms=["cpu"], deviations=[PRIVATE_CLASS_IN_JAXPR])
def offload_in_the_jaxpr(env):
    """In the jaxpr an offloaded residual is a device_put to the host and a device_put back.

    Both name a memory space.
    """
    jaxpr = str(jax.make_jaxpr(jax.grad(_make_loss(_make_policy())))(np.ones(8, np.float32)))
    return Observed(
        re.findall(r"(TransferToMemoryKind|MemorySpace\.\w+)", jaxpr),
        ["MemorySpace.Host", "MemorySpace.Device"],
    )


@probe(source="jax-ml/jax#23831")
def saved_or_offloaded(env):
    """A name may be saved or offloaded; a policy with both is refused when it is created."""

    def make(saved, offloaded):
        return jax.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[saved],
            names_which_can_be_offloaded=[offloaded],
            offload_src="device",
            offload_dst="pinned_host",
        )

    outcomes = [
        summarize_call(lambda: make("a", "a") and 0),
        summarize_call(lambda: make("a", "b") and 0),
    ]
    return Observed(outcomes, ["ValueError", "ok"])


MEMORIES_BEHIND_A_FLAG = deviation(
    "jax<0.4.33",
    error="NotImplementedError",
    match="memory_kind to device_put via Shardings is not supported on platforms",
    reason="memories were behind a flag, and a CPU lowered none",
)


@probe(source="jax-ml/jax#23831", platforms=["cpu"], deviations=[MEMORIES_BEHIND_A_FLAG])
def offloaded_products(env):
    """`offload_dot_with_no_batch_dims` keeps matrix products on the host until they are needed."""
    policy = jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    w = env.rng(2).standard_normal((4, 4)).astype(np.float32)
    grad = jax.jit(jax.grad(jax.checkpoint(lambda w: jnp.sin(w @ w).sum(), policy=policy)))

    def exact(w):
        w = w.astype(np.float64)
        d = np.cos(w @ w)
        return d @ w.T + w.T @ d

    return Observed(grad(w), exact(w))


CPU_HAS_ONE_MEMORY = deviation(
    "jax<0.7.1",
    error="ValueError",
    match="Could not find memory addressable by device cpu",
    reason="a CPU had one memory, unpinned_host",
)
COTANGENT_IN_TARGET_MEMORY = deviation(
    "jax>=0.9.1",
    params=["there_and_back"],
    error="ValueError",
    match=r"otangent type .*float32<host>",
    reason="the transpose of device_put leaves the cotangent in the target memory",
)


@probe(
    source="jax-ml/jax@85e5734486dc",
    platforms=["cpu"],
    params={"there_and_back": {"loss": "both"}, "back_alone": {"loss": "back"}},
    deviations=[CPU_HAS_ONE_MEMORY, COTANGENT_IN_TARGET_MEMORY],
)
def gradient_through_device_put(env, loss):
    """The gradient through device_put to the host and back is 2x up to 0.9.0.

    From 0.9.1 the memory of cotangents is checked, and the transpose of `device_put`, eager or
    under jit, returns a cotangent in the wrong memory. Offload by a policy of jax.checkpoint
    instead.
    """
    x = np.arange(8, dtype=np.float32)
    host, device = memory(env, "pinned_host"), memory(env)
    losses = {
        "both": lambda y: (jax.device_put(jax.device_put(y, host), device) ** 2).sum(),
        "back": lambda y: (jax.device_put(y, device) ** 2).sum(),
    }
    jax.device_put(x, host)
    return Observed(jax.grad(losses[loss])(x), 2.0 * x.astype(np.float64))


@probe(source="jax-ml/jax#28137", platforms=["cpu"], deviations=[CPU_HAS_ONE_MEMORY])
def moved_within_a_loop(env):
    """Arrays can be moved between memories in the steps of a scan, and under vmap.

    The first scan offloads and fetches its carry in each step; the second fetches a stack layer by
    layer.
    """
    host, device = memory(env, "pinned_host"), memory(env)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)

    def there_and_back(c, _):
        return jax.device_put(jax.device_put(c, host), device) + 1, None

    def fetched(c, w):
        return c + jax.device_put(w, device), None

    @jax.jit
    def loops(x, stacked):
        carry, _ = lax.scan(there_and_back, x, None, length=3)
        return carry, lax.scan(fetched, jnp.zeros(3), stacked)[0]

    carry, stack = loops(x, jax.device_put(x, host))
    mapped = jax.vmap(lambda y: jax.device_put(y, host))(x)
    return Observed(
        {"carry": carry, "stack": stack, "mapped": mapped},
        {"carry": x + 3, "stack": x.sum(0), "mapped": x},
    )


PINNED_HOST_NOT_FOUND = deviation(
    "jax<0.7.1",
    outcome="ok",
    match="Could not find memory",
    reason="a CPU had one memory, unpinned_host",
)


@probe(source="jax-ml/jax@7455392c1833", platforms=["cpu"], deviations=[PINNED_HOST_NOT_FOUND])
def memory_of_an_argument(env):
    """`in_shardings` in host memory move no argument: from another memory it is a ValueError."""
    x = np.arange(8, dtype=np.float32)

    def call():
        host, device = memory(env, "pinned_host"), memory(env)
        fn = jax.jit(lambda y: jax.device_put(y, device), in_shardings=host)
        return fn(jax.device_put(x, device))

    text = describe_error(call)
    phrase = "does not match memory kind on the respective arg"
    return Observed(phrase if phrase in text else text, phrase)


@probe(
    source="jax-ml/jax@4fb8cdb019bb",
    platforms=["cpu"],
    params={"tpu": {"platform": "tpu"}, "cuda": {"platform": "cuda"}},
    releases="jax>=0.7.1",
)
def placed_in_the_program(env, platform):
    """Under jit, moving to the host and back lowers to two annotations, one for each direction.

    The compiler has no other information about the moves: without the annotations the numbers are
    the same, and the memory of the device is as full as before.
    """
    host, device = memory(env, "pinned_host"), memory(env)
    there_and_back = jax.jit(lambda y: jax.device_put(jax.device_put(y, host), device) + 1)
    traced = there_and_back.trace(np.ones(3, np.float32))
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    marks = re.findall(r'_xla_buffer_placement = "(\w+)"', text)
    return Observed(" ".join(marks), "pinned_host device")


COTANGENT_LEFT_ON_THE_DEVICE = deviation(
    "jax>=0.7.1,<0.9.1",
    outcome="ok",
    reason="the cotangent was left in the memory of the device",
    issue="jax-ml/jax@19e90ae085d3",
)
COTANGENT_REFUSED = deviation(
    "jax>=0.9.1,<0.9.2",
    error="ValueError",
    match=r"otangent type .*float32<host>",
    reason="the cotangent was left in the memory of the device, which was refused",
    issue="jax-ml/jax@19e90ae085d3",
)
RESULT_LEFT_ON_THE_DEVICE = deviation(
    "jax>=0.9.2,<0.10.2",
    outcome="ok",
    reason="results were not moved to the memory of a host that their type names",
)


@probe(
    source="jax-ml/jax@19e90ae085d3",
    platforms=["cpu"],
    deviations=[
        CPU_HAS_ONE_MEMORY,
        COTANGENT_LEFT_ON_THE_DEVICE,
        COTANGENT_REFUSED,
        RESULT_LEFT_ON_THE_DEVICE,
    ],
)
def gradient_of_a_host_array(env):
    """Under `jit`, the gradient of an array in `pinned_host` that a function fetches.

    It is in that memory, too, from 0.10.2 on.
    """
    x = np.arange(8, dtype=np.float32)
    host, device = memory(env, "pinned_host"), memory(env)
    slope = jax.jit(jax.grad(lambda y: (jax.device_put(y, device) ** 2).sum()))
    out = slope(jax.device_put(x, host))
    return Observed((np.asarray(out), out.sharding.memory_kind), (2 * x, "pinned_host"))
