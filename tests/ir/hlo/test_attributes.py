"""Attributes of instructions and modules, and the computations that instructions call."""

from __future__ import annotations

import pytest

from conformance.ir.graph import Attribute, IrSyntaxError, Opaque, Sharding, Tensor
from tests.ir.hlo.same import attribute, instruction, module

KNOWN = {
    "dimensions={0,1}": (0, 1),
    "dimensions={}": (),
    "channel_id=3": 3,
    "is_stable=true": True,
    "direction=LT": "LT",
    "epsilon=0.001": 0.001,
    "algorithm=dot_bf16_bf16_f32": "dot_bf16_bf16_f32",
    "dim_labels=b01f_01io->b01f": "b01f_01io->b01f",
    "operand_precision={highest,default}": ("highest", "default"),
    "parameter_replication={true,false}": (True, False),
    "source_target_pairs={{0,1},{1,2}}": ((0, 1), (1, 2)),
    "sparsity=L.0@2:4": "L.0@2:4",
    "slice={[0:4:2], [1:3]}": ((0, 4, 2), (1, 3, 1)),
    "padding=0_1x-2_3_4": ((0, 1), (-2, 3, 4)),
    "window={size=3x2 stride=2x1 pad=1_1x0_0 rhs_reversal=1x0}": (
        ("size", (3, 2)),
        ("stride", (2, 1)),
        ("pad", ((1, 1), (0, 0))),
        ("rhs_reversal", (1, 0)),
    ),
    "replica_groups=[2,2]<=[4]": ((0, 1), (2, 3)),
    "replica_groups=mesh['x'=2,'y'=2], device_ids=(0,2,1,3) {'x'}": ((0, 1), (2, 3)),
    "sharding={maximal device=1}": Sharding("maximal", devices=(1,)),
    'custom_call_target="foo\\"bar"': 'foo"bar',
    "api_version=API_VERSION_STATUS_RETURNING": "API_VERSION_STATUS_RETURNING",
    "operand_layout_constraints={f32[4]{0}, (s32[])}": (
        Tensor("f32", (4,), "0"),
        (Tensor("s32"),),
    ),
    "output_to_operand_aliasing={{}: (0, {}), {1}: (2, {0})}": (
        ((), 0, (), ""),
        ((1,), 2, (0,), ""),
    ),
    "outfeed_shape=(u32[3]{0}, pred[])": (Tensor("u32", (3,), "0"), Tensor("pred")),
    "literal=s32[2]{0} {1, 2}": (Tensor("s32", (2,), "0"), "{1,2}"),
    "literal=( f32[] 0.1, pred[2]{0} {1, 0} )": (
        (Tensor("f32"), "0.1"),
        (Tensor("pred", (2,), "0"), "{true,false}"),
    ),
    "control-predecessors={%x}": ("x",),
    'frontend_attributes={b="2",a="1",c={n = 1 : i32, m = dense<1>}}': (
        ("a", "1"),
        ("b", "2"),
        ("c", "{n = 1 : i32, m = dense<1>}"),
    ),
    "statistics={visualizing_index=1,stat-1=33}": "{visualizing_index=1,stat-1=33}",
    'origin={({"v1"}, {"v2" {0}})}': '{({"v1"}, {"v2" {0}})}',
    'backend_config={"b":[1,{}],"a":{"d":null,"c":1.5}}': (
        ("a", (("c", 1.5), ("d", None))),
        ("b", (1, ())),
    ),
    'backend_config="{\\"b\\":1}"': (("b", 1),),
    'backend_config="not { JSON"': "not { JSON",
    'backend_config={key: "value"}': '{key: "value"}',
}


@pytest.mark.parametrize(("text", "expected"), KNOWN.items(), ids=KNOWN)
def test_a_known_attribute_is_a_plain_value(text: str, expected: Attribute) -> None:
    """Numbers, words and tuples of them, independent of the spelling."""
    assert attribute(text) == expected


def test_json_does_not_depend_on_the_order_of_keys() -> None:
    """GPU configurations come in any order."""
    assert attribute('backend_config={"a":1,"b":{"c":2,"d":3}}') == attribute(
        'backend_config={"b":{"d":3,"c":2},"a":1}'
    )


def test_attributes_after_metadata_are_kept_in_order() -> None:
    """They belong to the instruction as well."""
    found = instruction(
        '%y = f32[] reduce(%x), dimensions={0}, metadata={op_name="a}b"}, backend_config={"k":1}'
    )
    assert list(found.attributes.items()) == [("dimensions", (0,)), ("backend_config", (("k", 1),))]
    assert found.origin.name == "a}b"


def test_metadata_within_a_string_or_a_sharding_is_no_attribute() -> None:
    """Brackets and quotes decide."""
    found = instruction(
        '%y = f32[4] tanh(%x), sharding={mesh[], replicated, metadata={{op_name="no"}}}, '
        'frontend_attributes={a=", metadata={"}, metadata={op_name="yes"}'
    )
    assert found.attributes["sharding"] == Sharding("replicated")
    assert found.attributes["frontend_attributes"] == (("a", ", metadata={"),)
    assert found.origin.name == "yes"


def test_an_unknown_attribute_is_kept_and_counted() -> None:
    """A change of it shows, and reports count that it was not understood."""
    found = module("%y = f32[4] tanh(%x), foo={1, bar(2)}, index=1", "%z = f32[4] tanh(%y), foo=3")
    assert found.entry.instructions[1].attributes == {"foo": Opaque("{1, bar(2)}"), "index": 1}
    assert found.not_understood == {"attribute foo of tanh": 2}


def test_shard_groups_are_a_separate_attribute() -> None:
    """The sharding is the same with and without a group."""
    found = instruction("%y = f32[4] tanh(%x), sharding={replicated shard_as 1}")
    assert found.attributes == {"sharding": Sharding("replicated"), "shard_groups": ("as 1",)}


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("to_apply=%add", ["to_apply"]),
        ("condition=%add, body=%add", ["condition", "body"]),
        ("calls=add", ["calls"]),
        ("select=%add, scatter=%add", ["select", "scatter"]),
        ("true_computation=%add, false_computation=%add", ["true", "false"]),
        ("branch_computations={%add, %add}", ["branch 0", "branch 1"]),
        ("called_computations={%add}", ["called 0"]),
    ],
)
def test_called_computations_have_roles(text: str, roles: list[str]) -> None:
    """They are bodies, not attributes."""
    found = instruction(f"%y = f32[4] custom-call(%x), {text}")
    assert [(role, body.name) for role, body in found.bodies] == [(role, "add") for role in roles]
    assert found.attributes == {}


def test_a_repeated_attribute_must_be_equal() -> None:
    """0.8.3 on CUDA prints `frontend_attributes` twice."""
    text = 'frontend_attributes={a="1"}'
    assert attribute(f"{text}, {text}") == (("a", "1"),)
    with pytest.raises(IrSyntaxError, match="each attribute once"):
        attribute("index=1, index=2")


@pytest.mark.parametrize(
    "text",
    [
        "index",
        "index=",
        "index=1,",
        "index=1 2",
        "index=(1",
        "index={1}}",
        "direction=(LT)",
        "window={size}",
        "slice={[0]}",
        "padding=1_x",
        "source_target_pairs={{0,1}",
        "custom_call_target=foo",
        'custom_call_target="foo',
        "frontend_attributes={a}",
        "to_apply={%add",
        "to_apply=%a b",
        "output_to_operand_aliasing={{0}}",
        "operand_layout_constraints={what}",
        "literal=f32[] {1}",
    ],
)
def test_a_malformed_attribute_is_refused(text: str) -> None:
    """With the line, whether the attribute is known or not."""
    with pytest.raises(IrSyntaxError, match=r"^hlo line 11: got '.*', expected "):
        instruction(f"%y = f32[4]{{0}} custom-call(%x), {text}")
