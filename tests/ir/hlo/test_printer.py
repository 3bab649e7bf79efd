"""Graphs printed as text."""

from __future__ import annotations

from conformance.ir.hlo import parse
from tests.ir.hlo.printer import print_module
from tests.ir.hlo.same import module, same_graph

TEXT = """\
HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, num_partitions=2

%body {
  %a = f32[] parameter(0)
  ROOT %b = f32[] negate(%a), foo={some thing}
}, execution_thread="host"

ENTRY %main {
  %p = (f32[2]{0:T(128)S(5)}, f32[]) parameter(0), sharding={{devices=[2]<=[2]}, {replicated}}
  %c = f32[2]{0} constant({1.0,2.0})
  %d = f32[] constant({...})
  %s = f32[2] slice(%c), slice={[0:2:1]}, frontend_attributes={k="a \\"b\\""}
  %r = f32[] all-reduce(%d), channel_id=1, replica_groups={{0,1}}, to_apply=%body
  %w = f32[] conditional(%r, %p#1), branch_computations={%body, %body}, metadata={op_name="f" \
source_file="a.py" source_line=3}
  ROOT %t = (f32[2], f32[]) tuple(%s, %w), control-predecessors={%r}, backend_config={"a": [1, {}]}
}
"""


def test_printed_text_is_canonical() -> None:
    """Reading and printing it again changes nothing."""
    found = parse(TEXT)
    assert print_module(found) == TEXT
    assert same_graph(parse(print_module(found)), found)


def test_shard_groups_are_printed_separately() -> None:
    """And read back."""
    found = module("%y = f32[4] tanh(%x), sharding={{replicated}, {manual shard_as 1}}")
    assert same_graph(parse(print_module(found)), found)


def test_long_constants_are_printed_as_digests() -> None:
    """The graph does not hold their values."""
    numbers = ", ".join(["1"] * 2000)
    found = module(f"%y = s32[2000] constant({{{numbers}}})")
    text = print_module(found)
    assert "constant(sha256:" in text
    assert same_graph(parse(text), found)


def test_called_computations_keep_their_order() -> None:
    """Lists of them among single ones."""
    found = module("%y = f32[4] foo(%x), branch_computations={%add, %add}, to_apply=%add")
    assert "branch_computations={%add, %add}, to_apply=%add" in print_module(found)
    assert same_graph(parse(print_module(found)), found)
