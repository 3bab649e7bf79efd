"""Names of operations."""

from __future__ import annotations

from conformance.ir.normal.spelling import spell_alike
from tests.ir.texts import after, hlo, ops, stablehlo

ADD = (
    '%r = "stablehlo.shift_right_logical"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'
)


def test_stablehlo_is_named_as_hlo_is() -> None:
    """Without its prefix, with dashes."""
    assert ops(after(stablehlo(ADD), spell_alike)) == ["shift-right-logical"]


def test_hlo_keeps_its_names() -> None:
    """They are the ones the others get."""
    assert ops(after(hlo("%r = f32[4] shift-left(%x, %y)"), spell_alike)) == ["shift-left"]
