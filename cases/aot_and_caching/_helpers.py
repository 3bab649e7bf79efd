"""Counting what jit does again, and telling how a call went."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import jax
import jax.monitoring

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

FOUR = jax.ShapeDtypeStruct((4,), "float32")


def counted(fn: Callable[..., Any]) -> tuple[Callable[..., Any], Counter[str]]:
    """Return a function to trace, and how often its Python body has run, as `traces`."""
    seen: Counter[str] = Counter(traces=0)

    def body(*args: Any, **kwargs: Any) -> Any:
        seen["traces"] += 1
        return fn(*args, **kwargs)

    return body, seen


def traces(seen: Counter[str], calls: Iterable[Callable[[], Any]]) -> list[int]:
    """Return how many traces there have been after each of some calls."""
    counts = []
    for call in calls:
        call()
        counts.append(seen["traces"])
    return counts


def told(call: Callable[[], Any]) -> str:
    """Return `ok`, the category of what is warned of, or the type of what is raised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            jax.block_until_ready(call())
        except Exception as error:  # noqa: BLE001 - which one it is, is what is observed
            return type(error).__name__
    return caught[-1].category.__name__ if caught else "ok"


def message(call: Callable[[], Any]) -> str:
    """Return type and message of what a call raises, on one line and without addresses."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - which one it is, is what is observed
        text = re.sub(r"0x[0-9a-f]+", "0x", " ".join(str(error).split()))
        return f"{type(error).__name__}: {text}"
    return "ok"


@contextlib.contextmanager
def work() -> Iterator[Counter[str]]:
    """Yield how often jax has lowered a module and compiled one, by its own monitoring."""
    done: Counter[str] = Counter(lowered=0, compiled=0)
    names = {"jaxpr_to_mlir_module_duration": "lowered", "backend_compile_duration": "compiled"}

    def listen(event: str, _: float, **__: Any) -> None:
        if name := names.get(event.rsplit("/", 1)[-1]):
            done[name] += 1

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield done


def enabled_x64() -> Any:
    """Return the context in which 64-bit types are on; `jax.enable_x64` from 0.8.0."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # noqa: PLC0415 - gone from 0.9.0

    return enable_x64(True)
