"""Moving to host memory within a program: device_put, its gradient, and offloaded residuals."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from conformance.kit import Observed, deviation, probe

from ._helpers import memory, message, told


def _policy():
    return jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["b"],
        names_which_can_be_offloaded=["a"],
        offload_src="device",
        offload_dst="pinned_host",
    )


def _loss(policy):
    def loss(x):
        y = checkpoint_name(jnp.sin(x), "a")
        return jnp.sum(checkpoint_name(jnp.cos(y), "b") ** 2)

    return jax.checkpoint(loss, policy=policy)


def _exact(x):
    y = np.sin(x.astype(np.float64))
    return -2 * np.cos(y) * np.sin(y) * np.cos(x.astype(np.float64))


@probe(
    source="jax-ml/jax#23831",
    platforms=["cpu"],
    params={"eager": {"jitted": False}, "jitted": {"jitted": True}},
    deviations=[
        deviation(
            "jax<0.7.1",
            params=["eager"],
            error="ValueError",
            match="TransferToMemoryKind argument to jax.device_put can only be used inside jax.jit",
            reason="a memory without a device could only be named within jit",
            issue="jax-ml/jax@15094a2e7c6b",
        ),
        deviation(
            "jax<0.4.33",
            params=["jitted"],
            error="NotImplementedError",
            match="memory_kind to device_put via Shardings is not supported on platforms",
            reason="memories were behind a flag, and a CPU lowered none",
        ),
    ],
)
def offloaded_gradient(env, jitted):
    """Residuals offloaded by name leave the gradient as it is: in jit from 0.4.32, eager 0.7.1."""
    x = np.arange(8, dtype=np.float32)
    grad = jax.grad(_loss(_policy()))
    return Observed((jax.jit(grad) if jitted else grad)(x), _exact(x))


@probe(
    source="jax-ml/jax@15094a2e7c6b",
    platforms=["cpu"],
    deviations=[
        deviation(
            "jax<0.7.1",
            outcome="ok",
            match="TransferToMemoryKind",
            reason="a private class named the memory",
        )
    ],
)
def offload_in_the_jaxpr(env):
    """In the jaxpr an offloaded residual is a device_put there and one back, by memory space."""
    jaxpr = str(jax.make_jaxpr(jax.grad(_loss(_policy())))(np.ones(8, np.float32)))
    return Observed(
        re.findall(r"(TransferToMemoryKind|MemorySpace\.\w+)", jaxpr),
        ["MemorySpace.Host", "MemorySpace.Device"],
    )


@probe(source="jax-ml/jax#23831")
def saved_or_offloaded(env):
    """A name may be saved or offloaded, not both: refused when the policy is made."""

    def make(saved, offloaded):
        return jax.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[saved],
            names_which_can_be_offloaded=[offloaded],
            offload_src="device",
            offload_dst="pinned_host",
        )

    seen = [told(lambda: make("a", "a") and 0), told(lambda: make("a", "b") and 0)]
    return Observed(seen, ["ValueError", "ok"])


@probe(
    source="jax-ml/jax#23831",
    platforms=["cpu"],
    deviations=[
        deviation(
            "jax<0.4.33",
            error="NotImplementedError",
            match="memory_kind to device_put via Shardings is not supported on platforms",
            reason="memories were behind a flag, and a CPU lowered none",
        )
    ],
)
def offloaded_products(env):
    """`offload_dot_with_no_batch_dims`: matrix products go to the host until they are needed."""
    policy = jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    w = env.rng(2).standard_normal((4, 4)).astype(np.float32)
    grad = jax.jit(jax.grad(jax.checkpoint(lambda w: jnp.sin(w @ w).sum(), policy=policy)))

    def exact(w):
        w = w.astype(np.float64)
        d = np.cos(w @ w)
        return d @ w.T + w.T @ d

    return Observed(grad(w), exact(w))


@probe(
    source="jax-ml/jax@85e5734486dc",
    platforms=["cpu"],
    params={"there_and_back": {"loss": "both"}, "back_alone": {"loss": "back"}},
    deviations=[
        deviation(
            "jax<0.7.1",
            error="ValueError",
            match="Could not find memory addressable by device cpu",
            reason="a CPU has one memory, unpinned_host",
        ),
        deviation(
            "jax>=0.9.1",
            params=["there_and_back"],
            error="ValueError",
            match=r"otangent type .*float32<host>",
            reason="the transpose of device_put leaves the cotangent in the memory put to",
        ),
    ],
)
def gradient_through_device_put(env, loss):
    """Differentiating through device_put to the host and back: 2x, until 0.9.0.

    From 0.9.1 cotangents are checked for their memory, and the transpose of `device_put`, eager or
    under jit, gives one in the wrong place. Offload by a policy of jax.checkpoint instead.
    """
    x = np.arange(8, dtype=np.float32)
    host, device = memory(env, "pinned_host"), memory(env)
    losses = {
        "both": lambda y: (jax.device_put(jax.device_put(y, host), device) ** 2).sum(),
        "back": lambda y: (jax.device_put(y, device) ** 2).sum(),
    }
    jax.device_put(x, host)
    return Observed(jax.grad(losses[loss])(x), 2.0 * x.astype(np.float64))


@probe(
    source="jax-ml/jax#28137",
    platforms=["cpu"],
    deviations=[
        deviation(
            "jax<0.7.1",
            error="ValueError",
            match="Could not find memory addressable by device cpu",
            reason="a CPU has one memory, unpinned_host",
        )
    ],
)
def moved_within_a_loop(env):
    """Offloaded and fetched at each step of a scan, fetched layer by layer, and under vmap."""
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


@probe(
    source="jax-ml/jax@7455392c1833",
    platforms=["cpu"],
    deviations=[
        deviation(
            "jax<0.7.1",
            outcome="ok",
            match="Could not find memory",
            reason="a CPU has one memory, unpinned_host",
        )
    ],
)
def memory_of_an_argument(env):
    """`in_shardings` in host memory do not fetch: an argument from elsewhere is a ValueError."""
    x = np.arange(8, dtype=np.float32)

    def call():
        host, device = memory(env, "pinned_host"), memory(env)
        fn = jax.jit(lambda y: jax.device_put(y, device), in_shardings=host)
        return fn(jax.device_put(x, device))

    text = message(call)
    phrase = "does not match memory kind on the respective arg"
    return Observed(phrase if phrase in text else text, phrase)


@probe(
    source="jax-ml/jax@4fb8cdb019bb",
    platforms=["cpu"],
    params={"tpu": {"platform": "tpu"}, "cuda": {"platform": "cuda"}},
    releases="jax>=0.7.1",
)
def placed_in_the_program(env, platform):
    """Within jit, moving to the host and back is two marks in what is lowered, one each way.

    They are all that a compiler is told of it: without them the numbers are the same, and the
    memory of the device is as full as before.
    """
    host, device = memory(env, "pinned_host"), memory(env)
    there_and_back = jax.jit(lambda y: jax.device_put(jax.device_put(y, host), device) + 1)
    traced = there_and_back.trace(np.ones(3, np.float32))
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    marks = re.findall(r'_xla_buffer_placement = "(\w+)"', text)
    return Observed(" ".join(marks), "pinned_host device")
