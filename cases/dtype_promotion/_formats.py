"""Formats of small floats, by their bits: decoding and rounding without JAX and ml_dtypes.

A format is (exponent bits, mantissa bits, bias, kind). The kind states which patterns are special:
`ieee` has infinities and NaN in the topmost exponent, `fn` a NaN where all bits but the sign are
set, `fnuz` a NaN at the pattern of -0, `finite` no special pattern, `scale` powers of two alone.
"""

from __future__ import annotations

import numpy as np

FORMATS = {
    "float4_e2m1fn": (2, 1, 1, "finite"),
    "float6_e2m3fn": (2, 3, 1, "finite"),
    "float6_e3m2fn": (3, 2, 3, "finite"),
    "float8_e3m4": (3, 4, 3, "ieee"),
    "float8_e4m3": (4, 3, 7, "ieee"),
    "float8_e4m3b11fnuz": (4, 3, 11, "fnuz"),
    "float8_e4m3fn": (4, 3, 7, "fn"),
    "float8_e4m3fnuz": (4, 3, 8, "fnuz"),
    "float8_e5m2": (5, 2, 15, "ieee"),
    "float8_e5m2fnuz": (5, 2, 16, "fnuz"),
    "float8_e8m0fnu": (8, 0, 127, "scale"),
}


def decode(name):
    """Return the numbers of all patterns of a format, in the order of the patterns."""
    exponent_bits, mantissa_bits, bias, kind = FORMATS[name]
    if kind == "scale":
        return np.array([*(2.0 ** (e - bias) for e in range(255)), np.nan])
    top, ones = 2**exponent_bits - 1, 2**mantissa_bits - 1
    sign = 2 ** (exponent_bits + mantissa_bits)
    nans = {"fn": (sign - 1, 2 * sign - 1), "fnuz": (sign,)}
    numbers = []
    for pattern in range(2 * sign):
        negative = pattern & sign
        exponent, mantissa = pattern >> mantissa_bits & top, pattern & ones
        fraction = mantissa / 2**mantissa_bits
        number = 2.0 ** (max(exponent, 1) - bias) * (fraction + (exponent > 0))
        if kind == "ieee" and exponent == top:
            number = np.nan if mantissa else np.inf
        elif pattern in nans.get(kind, ()):
            number = np.nan
        numbers.append(-number if negative else number)
    return np.array(numbers)


def round_to(name, x):
    """Return numbers rounded to nearest, ties to even, as float64.

    Beyond the largest number, a format with infinities gives infinity, one with NaN gives NaN, and
    one with neither its largest number.

    Args:
        name: Name of a format that is not a `scale`.
        x: Numbers that float64 represents exactly.
    """
    numbers = decode(name)
    keep = np.isfinite(numbers) & ~np.signbit(numbers)
    values, patterns = numbers[keep], np.flatnonzero(keep)
    # The number that would follow the largest, for the rounding of those beyond it.
    values = np.append(values, 2 * values[-1] - values[-2])
    patterns = np.append(patterns, patterns[-1] + 1)
    magnitude = np.minimum(np.abs(np.where(np.isnan(x), 0, x)), values[-1])
    above = np.maximum(np.searchsorted(values, magnitude), 1)
    low, high = values[above - 1], values[above]
    even = np.where(patterns[above] % 2 == 0, high, low)
    middle = (low + high) / 2
    nearest = np.where(magnitude < middle, low, np.where(magnitude > middle, high, even))
    beyond = {"ieee": np.inf, "fn": np.nan, "fnuz": np.nan, "finite": values[-2]}
    result = np.where(nearest == values[-1], beyond[FORMATS[name][3]], nearest)
    return np.where(np.isnan(x), np.nan, np.copysign(result, x))


def list_probes(name):
    """Return float32 numbers near the midpoints and limits of a format, of both signs.

    Args:
        name: Name of a format that is not a `scale`.
    """
    numbers = decode(name)
    values = np.sort(numbers[np.isfinite(numbers) & ~np.signbit(numbers)])
    values = np.append(values, values[-1] + (values[-1] - values[-2]) * np.array([1, 2, 8]))
    middle = (values[1:] + values[:-1]) / 2
    near = [values, middle * (1 - 2.0**-18), middle, middle * (1 + 2.0**-18)]
    special = [1e9, np.inf] if FORMATS[name][3] == "finite" else [1e9, np.inf, np.nan]
    positive = np.concatenate([*near, special])
    return np.concatenate([positive, -positive]).astype(np.float32)
