"""Counters of traces, lowerings and compilations, and the outcomes of calls."""

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


def count_traces(fn: Callable[..., Any]) -> tuple[Callable[..., Any], Counter[str]]:
    """Return a function to trace, and a counter whose `traces` is how often its Python body ran."""
    counter: Counter[str] = Counter(traces=0)

    def body(*args: Any, **kwargs: Any) -> Any:
        counter["traces"] += 1
        return fn(*args, **kwargs)

    return body, counter


def collect_trace_counts(counter: Counter[str], calls: Iterable[Callable[[], Any]]) -> list[int]:
    """Return the number of traces after each of some calls."""
    counts = []
    for call in calls:
        call()
        counts.append(counter["traces"])
    return counts


def classify_outcome(call: Callable[[], Any]) -> str:
    """Return `ok`, the category of the last warning of a call, or the type of its error."""
    # dispatch is asynchronous: without waiting, an error would be raised after the call
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            jax.block_until_ready(call())
        except Exception as error:  # noqa: BLE001 - the type of the error is the observation
            return type(error).__name__
    return caught[-1].category.__name__ if caught else "ok"


def format_error(call: Callable[[], Any]) -> str:
    """Return `ok`, or the type and message of an error, on one line and without addresses."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the type of the error is the observation
        text = re.sub(r"0x[0-9a-f]+", "0x", " ".join(str(error).split()))
        return f"{type(error).__name__}: {text}"
    return "ok"


@contextlib.contextmanager
def count_compilations() -> Iterator[Counter[str]]:
    """Yield a counter of the modules that JAX lowered and compiled, by its own monitoring."""
    counter: Counter[str] = Counter(lowered=0, compiled=0)
    names = {"jaxpr_to_mlir_module_duration": "lowered", "backend_compile_duration": "compiled"}

    def listen(event: str, _: float, **__: Any) -> None:
        if name := names.get(event.rsplit("/", 1)[-1]):
            counter[name] += 1

    # never unregistered: each job has its own process
    jax.monitoring.register_event_duration_secs_listener(listen)
    yield counter


def enable_64_bits() -> Any:
    """Return the context that turns on 64-bit types: `jax.enable_x64` from 0.8.0."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # noqa: PLC0415 - removed in 0.9.0

    return enable_x64(True)
