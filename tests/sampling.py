"""A sample of the parameters of a test that takes long for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence


def spread(values: Sequence[Any], count: int) -> list[Any]:
    """Return all values, of which a sample has `count`, spread evenly: the others are `long`.

    Args:
        values: Values of a parameter; tuples of several parameters.
        count: Number of values in a sample.
    """
    kept = {index * len(values) // count for index in range(count)}
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=() if index in kept else pytest.mark.long,
        )
        for index, value in enumerate(values)
    ]
