"""jax-conformance: what a JAX version really does, before you ship on it."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__version__ = "0.1.0"


def snapshot(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function, and mark the call as a case for comparisons between releases.

    `conformance upgrade FROM TO script.py` makes a case of each call outside of the functions of
    the script. In any other run of the script it only calls the function.

    Args:
        function: Function, as for `jax.jit`.
        *args: Positional arguments of the function.
        **kwargs: Keyword arguments of the function.

    Returns:
        The result of the function.
    """
    return function(*args, **kwargs)


@contextmanager
def timed(region: str) -> Iterator[None]:
    """Measure the time of a region of a script, for `conformance bisect --when time`.

    If the region is entered several times, the fastest counts, because the first one compiles. Wait
    for results within the region, e.g. with `jax.block_until_ready`. In any other run of the script
    nothing is recorded.

    Args:
        region: Name of the region, as `--region` takes it.
    """
    start = time.perf_counter()
    try:
        yield
    finally:
        line = json.dumps(["region", region, time.perf_counter() - start])
        if note := os.environ.get("CONFORMANCE_TIMES"):
            # Appended line by line: a script that crashes later has recorded its regions.
            with open(note, "a", encoding="utf-8") as file:  # noqa: PTH123 - start-up time
                file.write(line + "\n")
