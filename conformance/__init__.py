"""jax-conformance: what a JAX version really does, before you ship on it."""

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
