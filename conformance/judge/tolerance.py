"""How far two numbers may lie apart and still be the same, by dtype.

Goldens hold on any host, so the defaults cover another instruction set or summation order, and
are far below what a wrong result shows:

| dtype | rtol | in ULP | scale |
|---|---|---|---|
| float64, complex128 | 1e-12 | 4,500 | 1e-14 |
| float32, complex64 | 2e-5 | 170 | 2e-6 |
| float16 | 8e-3 | 8 | 2e-3 |
| bfloat16 | 1.6e-2 | 2 | 8e-3 |
| 8 bits and fewer | one ULP at 1 (`eps`) | 1 | half of it |

An element is within tolerance when `|observed - golden| <= atol + rtol * |golden|`. Elements near
zero carry the rounding of their large neighbours, so an unstated `atol` is `scale` times the
largest finite magnitude of the golden leaf. A stated `rtol` makes an unstated `atol` 0: what a
case states is all there is, and 0 means exact. Integers, bools, keys and text are always exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import ml_dtypes
import numpy as np

from conformance.judge.ulp import parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DEFAULTS = {
    "float64": (1e-12, 1e-14),
    "float32": (2e-5, 2e-6),
    "float16": (8e-3, 2e-3),
    "bfloat16": (1.6e-2, 8e-3),
}


class Stating(Protocol):
    """Anything that states a tolerance."""

    @property
    def rtol(self) -> float | None:
        """Relative tolerance."""
        ...

    @property
    def atol(self) -> float | None:
        """Absolute tolerance."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The tolerance that a case states.

    Attributes:
        rtol: Relative to the golden element; None is the dtype's default, 0 is exact.
        atol: Absolute; None is 0 under a stated `rtol`, else the dtype's scale times the
            leaf's largest finite magnitude.
        ulp: In units in the last place, in place of both; None is not stated so.
    """

    rtol: float | None = None
    atol: float | None = None
    ulp: int | None = None

    @classmethod
    def of(cls, case: Stating) -> Tolerance:
        """Return what a case states.

        Args:
            case: The case, as its file or as a run tells of it.
        """
        return cls(rtol=case.rtol, atol=case.atol)

    def limits(self, golden: NDArray[Any]) -> Limits:
        """Return the tolerance that applies to one leaf.

        Args:
            golden: The leaf's elements, floating or complex.

        Returns:
            Both limits, resolved.
        """
        if self.ulp is not None:
            return Limits(rtol=0.0, atol=0.0, ulp=self.ulp)
        rtol, scale = defaults(golden.dtype)
        if self.rtol is not None:
            rtol, scale = self.rtol, 0.0
        if self.atol is not None:
            return Limits(rtol=rtol, atol=self.atol)
        return Limits(rtol=rtol, atol=scale * _largest(golden))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resolved tolerance of one leaf: `|observed - golden| <= atol + rtol * |golden|`, or ULP.

    Attributes:
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        ulp: Distance in ULP, in place of both; None is not stated so.
    """

    rtol: float
    atol: float
    ulp: int | None = None

    @property
    def exact(self) -> bool:
        """Whether only the same number will do."""
        return self.rtol == 0 and self.atol == 0 and not self.ulp

    def __str__(self) -> str:
        if self.ulp is not None:
            return f"at most {self.ulp} ulp"
        if self.exact:
            return "exact"
        return f"rtol {self.rtol:g}" + (f", atol {self.atol:.2g}" if self.atol != 0 else "")


def defaults(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the default `(rtol, scale)` of a floating or complex dtype."""
    name = f"float{4 * dtype.itemsize}" if dtype.kind == "c" else dtype.name
    if name in _DEFAULTS:
        return _DEFAULTS[name]
    eps = float(ml_dtypes.finfo(dtype).eps)
    return eps, eps / 2


def _largest(array: NDArray[Any]) -> float:
    magnitudes = np.abs(parts(array).astype(np.float64))
    return float(magnitudes.max(initial=0.0, where=np.isfinite(magnitudes)))
