"""Shardings: the axes of Shardy and the device lists of GSPMD are equal."""

from __future__ import annotations

import pytest

from conformance.ir.graph import IrSyntaxError, Opaque, Sharding

from .same import attribute, attributes, operation

REPLICATED = Sharding("replicated")


def gspmd(spelled: str) -> object:
    """Return the value of a `mhlo.sharding`."""
    line = f'"a.b"() {{mhlo.sharding = "{spelled}"}} : () -> ()'
    return operation(line).attributes["mhlo.sharding"]


@pytest.mark.parametrize(
    ("spelled", "same"),
    [
        ("<@mesh, []>", "{replicated}"),
        ("<@mesh, [{}, {}]>", "{replicated}"),
        ("<@empty, [{}, {?}]>", "{replicated}"),
        ("<@one, []>", "{maximal device=3}"),
        ('<@mesh, [{"x"}, {"y"}]>', "{devices=[2,2]<=[4]}"),
        ('<@mesh, [{"y"}, {"x"}]>', "{devices=[2,2]<=[2,2]T(1,0)}"),
        ('<@mesh, [{"x", "y"}]>', "{devices=[4]<=[4]}"),
        ('<@mesh, [{"y", "x"}]>', "{devices=[4]0,2,1,3}"),
        ('<@mesh, [{"x"}, {}]>', "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"),
        ('<@mesh, [{"y"}]>', "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"),
        ('<@mesh, [{"y"}]>', "{devices=[2,2]2,0,3,1 last_tile_dims={replicated}}"),
        ('<@odd, [{"x"}, {"y"}]>', "{devices=[2,2]0,2,1,3}"),
        ('<mesh<["z"=4]>, [{"z"}]>', "{devices=[4]<=[4]}"),
        (
            '<@line, [{"a":(1)2}, {"a":(4)2}]>',
            "{devices=[2,2,2]0,2,1,3,4,6,5,7 last_tile_dim_replicate}",
        ),
        ('<@mesh, [{"x"}], unreduced={"y"}>', "{devices=[2,2]<=[4] last_tile_dims={unreduced}}"),
        ('<@mesh, [{"x"}], replicated={"y"}>', "{devices=[2,2]<=[4] last_tile_dim_replicate}"),
    ],
)
def test_axes_and_device_lists_are_equal_shardings(spelled: str, same: str) -> None:
    """In a replicated group the order of devices has no meaning."""
    found = attribute(f"#sdy.sharding{spelled}")
    assert isinstance(found, Sharding)
    assert found == gspmd(same)


def test_notes_of_shardy_are_separate_attributes() -> None:
    """Open dimensions, priorities and replicated axes guide propagation only."""
    found = attributes('#sdy.sharding<@mesh, [{"x", ?}p1, {?}], replicated={"y":(1)2}>')
    assert found == {
        "key": gspmd("{devices=[2,1,2]<=[4] last_tile_dim_replicate}"),
        "key open": (0, 1),
        "key priorities": ((0, 1),),
        "key replicated": ("y:(1)2",),
    }


def test_shardings_of_several_values_are_a_tuple() -> None:
    """With the notes of each."""
    found = attributes('#sdy.sharding_per_value<[<@mesh, [{"x"}, {?}]>, <@mesh, []>]>')
    halves = gspmd("{devices=[2,1,2]<=[4] last_tile_dim_replicate}")
    assert found == {"key": (halves, REPLICATED), "key open": ((1,), ())}


def test_an_unknown_gspmd_sharding_stays_a_text() -> None:
    """A later release may write it."""
    assert gspmd("{nobody knows}") == "{nobody knows}"
    assert attribute('"{replicated}"') == "{replicated}"


MESH = (
    '#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, '
    '#stablehlo.mesh_axis<name = "y", size = 4>]>'
)


@pytest.mark.parametrize(
    ("mesh", "axes", "expected"),
    [
        ("@mesh", '#stablehlo.axis_ref<name = "x">', ((0, 2), (1, 3))),
        ("@mesh", '#stablehlo.axis_ref<name = "y">', ((0, 1), (2, 3))),
        (
            "@mesh",
            '#stablehlo.axis_ref<name = "y">, #stablehlo.axis_ref<name = "x">',
            ((0, 2, 1, 3),),
        ),
        ("@odd", '#stablehlo.axis_ref<name = "x">', ((0, 1), (2, 3))),
        (MESH, '#stablehlo.axis_ref<name = "x">', ((0, 4), (1, 5), (2, 6), (3, 7))),
        (
            '#sdy.mesh<["a"=8]>',
            '#stablehlo.axis_ref<name = "a", sub_axis_info = (2)2>',
            ((0, 2), (1, 3), (4, 6), (5, 7)),
        ),
        ("@line", '#sdy<axis_ref"a":(1)2>', ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("@mesh", '"y"', ((0, 1), (2, 3))),
        ("@mesh", "", ((0,), (1,), (2,), (3,))),
    ],
)
def test_groups_by_axes_become_device_lists(mesh: str, axes: str, expected: object) -> None:
    """As other releases print them."""
    spelled = f"#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{axes}]>"
    assert attribute(spelled) == expected


@pytest.mark.parametrize(
    "spelled",
    [
        "#stablehlo.replica_group_mesh_axes<mesh = @nowhere, axes = []>",
        "#sdy.sharding<@nowhere, []>",
    ],
)
def test_an_undefined_mesh_is_refused(spelled: str) -> None:
    """Read as no groups, it would mean all devices."""
    with pytest.raises(IrSyntaxError, match="got '@nowhere', expected a mesh"):
        attribute(spelled)


@pytest.mark.parametrize(
    "spelled",
    [
        '#sdy.sharding<@mesh, [{"z"}]>',
        '#sdy.sharding<@mesh, [{"x"}, {"x"}]>',
        '#sdy.sharding<@mesh, [{"x"}], replicated={"x"}>',
        '#sdy.sharding<@line, [{"a":(1)3}]>',
        '#sdy.sharding<@mesh, [{"x"}], wanted={"y"}>',
        '#sdy.sharding<mesh<["x"=0]>, []>',
        '#sdy.sharding<mesh<["x"=2], device_ids=[0]>, []>',
        '#sdy.sharding<mesh<["x"=99999999]>, []>',
        "#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [3]>",
        "#stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = 3>, axes = []>",
    ],
)
def test_a_malformed_dialect_attribute_is_kept_and_counted(spelled: str) -> None:
    """It is never read as something else."""
    assert attribute(spelled) == Opaque(spelled)
