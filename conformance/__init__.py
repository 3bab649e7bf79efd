"""jax-conformance: what a JAX version really does, before you ship on it."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__version__ = "0.1.0"


def snapshot(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function, in a script of which each such call is to be compared between releases.

    `conformance upgrade FROM TO script.py` makes a case of each call that is not within a function
    of the script; elsewhere it is only a call.

    Args:
        function: Anything that `jax.jit` takes.
        *args: What it is called with.
        **kwargs: The same, by name.

    Returns:
        What the function returns.
    """
    return function(*args, **kwargs)


@contextmanager
def timed(region: str) -> Iterator[None]:
    """Time a region of a script, as `conformance bisect --when time` compares it.

    The fastest of several entries counts: the first one compiles. Wait for results within the
    region, e.g. with `jax.block_until_ready`. Elsewhere nothing is measured.

    Args:
        region: Name of the region, as `--region` takes it.
    """
    start = time.perf_counter()
    try:
        yield
    finally:
        line = json.dumps(["region", region, time.perf_counter() - start])
        if note := os.environ.get("CONFORMANCE_TIMES"):
            with open(note, "a", encoding="utf-8") as file:  # noqa: PTH123 - start-up time
                file.write(line + "\n")
