"""Lowering a program for platforms that are not here: StableHLO needs no compiler of theirs."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from jax._src.interpreters import mlir

from conformance.worker import capture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLATFORMS = ("tpu", "cuda", "rocm")


class CrossLowering:
    """One traced program, to be lowered for other platforms.

    A module that differs from the program's own by nothing but locations is told in the words of
    that one: locations say from where the lowering was called. So equal modules are equal texts.

    Args:
        traced: The program.
        lowered: The program as lowered for the platform it runs on; None if it is refused there.
        text: The StableHLO of `lowered`, as it is told.
    """

    def __init__(self, traced: Any, lowered: Any | None, text: str) -> None:
        self._traced = traced
        self._lowered = lowered
        self._text = text

    @cached_property
    def _own(self) -> str:
        """The program's own module without locations."""
        return "" if self._lowered is None else _bare(self._lowered)

    def artifacts(self) -> dict[str, Callable[[], str]]:
        """Return what tells the StableHLO for each platform, by the artifact's name."""
        return {f"stablehlo-{name}": partial(self._told, name) for name in PLATFORMS}

    def _told(self, platform: str) -> str:
        with warnings.catch_warnings(), context_of(self._lowered):
            warnings.simplefilter("ignore")  # said once already, of the platform it runs on
            found = self._traced.lower(lowering_platforms=(platform,))
        return self._text if _bare(found) == self._own else capture.stablehlo(found)


def _bare(lowered: Any) -> str:
    """Return a module without its locations."""
    operation = lowered.compiler_ir("stablehlo").operation
    return str(operation.get_asm(print_generic_op_form=True, large_elements_limit=None))


@contextmanager
def context_of(lowered: Any | None) -> Iterator[None]:
    """Lower in the MLIR context of a module that there is, which saves half of the time.

    To make a context takes as long as to lower a small program. A release that makes its contexts
    otherwise makes one for each lowering, as ever.

    Args:
        lowered: A lowered program; nothing is done for None.
    """
    make = getattr(mlir, "make_ir_context", None)
    if make is None or lowered is None:
        yield
        return
    mlir.make_ir_context = lambda: lowered.compiler_ir("stablehlo").context
    try:
        yield
    finally:
        mlir.make_ir_context = make
