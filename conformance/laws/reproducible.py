"""Examples of Hypothesis that depend on a seed alone."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONSTANTS: dict[object, object] = {}
"""Constants of Hypothesis by kind of number, without those of modules."""


@contextlib.contextmanager
def without_local_constants() -> Iterator[None]:
    """Make a seed draw the same examples in each process.

    Hypothesis mixes in numbers from the source of the modules that are loaded, which differ between
    processes, e.g. between a campaign and its continuation. It has no setting for this.
    """
    known = providers._get_local_constants, providers.CONSTANTS_CACHE  # noqa: SLF001
    providers._get_local_constants = Constants  # noqa: SLF001
    providers.CONSTANTS_CACHE = _CONSTANTS  # type: ignore[assignment]
    try:
        yield
    finally:
        providers._get_local_constants, providers.CONSTANTS_CACHE = known  # noqa: SLF001
