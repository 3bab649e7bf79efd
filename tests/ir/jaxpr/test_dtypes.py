"""Element types in HLO's spelling."""

from __future__ import annotations

import pytest

from conformance.ir.jaxpr.dtypes import hlo_dtype


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bool", "pred"),
        ("int4", "s4"),
        ("uint32", "u32"),
        ("float32", "f32"),
        ("bfloat16", "bf16"),
        ("complex64", "c64"),
        ("float8_e4m3fn", "f8e4m3fn"),
        ("float4_e2m1fn", "f4e2m1fn"),
        ("ref<int32>", "ref<s32>"),
        ("float0", "float0"),
        ("key<fry>", "key<fry>"),
        ("token", "token"),
    ],
)
def test_a_dtype_goes_by_its_name_in_hlo(name: str, expected: str) -> None:
    """A name that HLO does not have is left as it is."""
    assert hlo_dtype(name) == expected
