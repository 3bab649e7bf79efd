"""Memories of the first device, arrays that may be donated, bytes that a program needs."""

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
    """Return a sharding in a memory of the first device, by default in its default memory."""
    return SingleDeviceSharding(env.devices[0], memory_kind=kind)


def kind_of(env: Any, array: Any) -> str:
    """Return in which memory an array lies; the default one is `default` on every release."""
    kind = array.sharding.memory_kind
    return "default" if kind in (None, env.devices[0].default_memory().kind) else kind


@partial(jax.jit, static_argnums=0)
def _numbered(size: int) -> jax.Array:
    return jnp.arange(size, dtype=jnp.float32)


def fresh(size: int = 64) -> jax.Array:
    """Return an array in memory of its own, as jitted functions make them: it may be donated."""
    return _numbered(size)


def told(call: Callable[[], Any]) -> str:
    """Return `ok`, the first words of what is warned of, or the type of what is raised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            jax.block_until_ready(call())
        except Exception as error:  # noqa: BLE001 - which one it is, is what is observed
            return type(error).__name__
    return " ".join(str(caught[-1].message).split()[:6]).rstrip(":") if caught else "ok"


def message(call: Callable[[], Any]) -> str:
    """Return type and message of what a call raises, on one line."""
    try:
        jax.block_until_ready(call())
    except Exception as error:  # noqa: BLE001 - which one it is, is what is observed
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return "ok"


def sizes(fn: Callable[..., Any], *args: Any, **jit: Any) -> dict[str, int]:
    """Return bytes of the compiled function: `temp`, `argument`, `output`, `alias`."""
    stats = jax.jit(fn, **jit).lower(*args).compile().memory_analysis()
    names = ("temp", "argument", "output", "alias")
    return {name: getattr(stats, f"{name}_size_in_bytes") for name in names}
