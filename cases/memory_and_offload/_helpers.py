"""Memories of the first device, donatable arrays, outcomes of calls, and sizes of programs."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax.sharding import SingleDeviceSharding

if TYPE_CHECKING:
    from collections.abc import Callable


def memory(env: Any, kind: str | None = None) -> SingleDeviceSharding:
    """Return a sharding on the first device in a memory kind, by default in its default memory."""
    return SingleDeviceSharding(env.devices[0], memory_kind=kind)


def kind_of(env: Any, array: Any) -> str:
    """Return the memory kind of an array; the default memory is `default` on every release."""
    kind = array.sharding.memory_kind
    return "default" if kind in (None, env.devices[0].default_memory().kind) else kind


@partial(jax.jit, static_argnums=0)
def _numbered(size: int) -> jax.Array:
    return jnp.arange(size, dtype=jnp.float32)


def make_donatable(size: int = 64) -> jax.Array:
    """Return an array in separate memory, as jitted functions create it: it may be donated."""
    return _numbered(size)


def summarize_call(call: Callable[[], Any]) -> str:
    """Return `ok`, the first words of the last warning of a call, or the type of its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            jax.block_until_ready(call())
        except Exception as error:  # noqa: BLE001 - the type of the error is the observation
            return type(error).__name__
    return " ".join(str(caught[-1].message).split()[:6]).rstrip(":") if caught else "ok"


def describe_error(call: Callable[[], Any]) -> str:
    """Return the type and the message of the error of a call, on one line, or `ok`."""
    try:
        jax.block_until_ready(call())
    except Exception as error:  # noqa: BLE001 - the type of the error is the observation
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return "ok"


def measure_memory(fn: Callable[..., Any], *args: Any, **jit: Any) -> dict[str, int]:
    """Return sizes in bytes of the compiled function: `temp`, `argument`, `output`, `alias`."""
    stats = jax.jit(fn, **jit).lower(*args).compile().memory_analysis()
    names = ("temp", "argument", "output", "alias")
    return {name: getattr(stats, f"{name}_size_in_bytes") for name in names}
