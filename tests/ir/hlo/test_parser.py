"""Modules, computations and instructions, as releases and print options spell them."""

from __future__ import annotations

import pytest

from conformance.ir.graph import IrSyntaxError, Tensor
from conformance.ir.hlo import parse
from tests.ir.hlo.same import instruction, module, same_graph

F32 = Tensor("f32")
HEAD = "HloModule m\n\nENTRY %e () -> f32[] {\n"
CONSTANT = "  %c = f32[] constant(1)\n"


def test_a_module_is_computations_of_instructions() -> None:
    """Operands are the instructions themselves."""
    found = module("%y = f32[4]{0} negate(%x)", "ROOT %z = f32[4]{0} add(%y, %x)")
    assert (found.kind, found.name, found.entry.name) == ("hlo", "m", "main")
    assert list(found.computations) == ["add", "main"]
    x, y, z = found.entry.instructions
    assert (z.name, z.op, z.type, z.line) == ("z", "add", Tensor("f32", (4,), "0"), 12)
    assert z.operands == (y, x)
    assert z.paths == ((), ())
    assert found.entry.results == [(z, ())]
    assert x.attributes == {"index": 0}
    assert found.not_understood == {}


def test_a_comment_after_a_computation_is_ignored() -> None:
    """XLA's dumps up to jax 0.5.0 repeat the name there; the attributes before it are kept."""
    found = parse(f'{HEAD}{CONSTANT}}}, execution_thread="host" // e.1_spmd\n')
    assert found.entry.attributes == {"execution_thread": "host"}


@pytest.mark.parametrize(
    "line",
    [
        "%z = f32[4]{0} add(%y, %t, %x)",
        "z = f32[4]{0} add(y, t, x)",
        "%z = f32[4]{0} add(f32[4]{0} %y, (f32[], f32[]) %t, f32[4]{0} %x)",
        "z = f32[4]{0} add(f32[4] y, (f32[], f32[]) t, f32[4] x)",
        "%z = f32[4]{0} add(%y, %t, /*index=5*/%x)",
        "  %z = f32[4]{0} add((f32[4]) %y, /*index=5*/f32[4]{0:T(8,128)} %t, f32[4] %x)  ",
    ],
)
def test_operands_resolve_in_every_spelling(line: str) -> None:
    """With and without `%`, types, and index comments."""
    found = instruction("%y = f32[4] tanh(%x)", "%t = (f32[], f32[]) custom-call()", line)
    assert [operand.name for operand in found.operands] == ["y", "t", "x"]


def test_an_operand_may_be_a_part_of_a_tuple() -> None:
    """The compact spelling of `get-tuple-element`."""
    found = instruction("%t = ((f32[], f32[4]), f32[]) rng()", "%y = f32[4] add(%t#0#1, %t#1)")
    assert found.paths == ((0, 1), (1,))


@pytest.mark.parametrize(
    ("operand", "index", "message"),
    [
        ("%t", 2, "got 'index=2', expected an index below 2"),
        ("%x", 0, "expected one operand, a tuple"),
    ],
)
def test_an_element_beyond_the_tuple_is_refused(operand: str, index: int, message: str) -> None:
    """Passes index types without a check."""
    with pytest.raises(IrSyntaxError, match=message):
        instruction(
            "%t = (f32[], f32[4]) tuple(%x, %x)",
            f"%y = f32[4] get-tuple-element({operand}), index={index}",
        )


def test_windows_line_ends_are_ignored() -> None:
    """A text may have passed through another system."""
    text = HEAD + CONSTANT + '  ROOT %d = f32[] add(%c, %c), metadata={op_name="f"}\n}\n'
    assert same_graph(parse(text.replace("\n", "\r\n")), parse(text))


def test_asynchronous_pairs_stay_two_instructions() -> None:
    """A pass folds them later."""
    found = instruction(
        "%s = ((f32[4]{0}), f32[8]{0}, u32[]) all-gather-start(%x), dimensions={0}",
        "%d = f32[8]{0} all-gather-done(%s)",
    )
    (start,) = found.operands
    assert (start.op, found.op) == ("all-gather-start", "all-gather-done")
    assert start.type == ((Tensor("f32", (4,), "0"),), Tensor("f32", (8,), "0"), Tensor("u32"))


def test_a_buffer_type_is_read() -> None:
    """Newer releases pass some values by reference."""
    assert instruction("%y = b(f32[4]{0}) custom-call(%x)").type == Tensor("b(f32)", (4,), "0")


def test_an_unknown_operation_is_read() -> None:
    """Releases add operations."""
    assert instruction("%y = f32[4] brand-new-op(%x)").op == "brand-new-op"


def test_the_header_is_attributes_of_the_module() -> None:
    """Aliases are (output, parameter, path within it, kind)."""
    found = parse(
        "HloModule jit_f, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias), "
        "{1}: (2, {0,1}, must-alias) }, buffer_donor={ (1, {}) }, "
        "entry_computation_layout={(f32[]{:T(128)}, /*index=5*/f32[])->(f32[])}, "
        "allow_spmd_sharding_propagation_to_output={true,false}, num_partitions=4, "
        'frontend_attributes={a="b"}, novelty=1\n\n'
        "ENTRY %main (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n"
    )
    assert found.attributes == {
        "is_scheduled": True,
        "input_output_alias": (((), 0, (), "may-alias"), ((1,), 2, (0, 1), "must-alias")),
        "buffer_donor": ((1, ()),),
        "entry_computation_layout": ((Tensor("f32", (), ":T(128)"), F32), (F32,)),
        "allow_spmd_sharding_propagation_to_output": (True, False),
        "num_partitions": 4,
        "frontend_attributes": (("a", "b"),),
        "novelty": found.attributes["novelty"],
    }
    assert found.not_understood == {"attribute novelty of the module": 1}


def test_a_header_may_span_lines() -> None:
    """Tables of origins are printed into it."""
    found = parse(
        'HloModule m, origin_recovery_table={\n  {"a"} : {"b"},\n  "\n    ENTRY e { }\n  "\n},\n'
        'debug_attributes={\n  {"a"}:({callback_id=1})\n}\n\nENTRY e {\n  p = f32[] parameter(0)\n}'
    )
    assert list(found.attributes) == ["origin_recovery_table", "debug_attributes"]
    assert found.entry.instructions[0].line == 12


@pytest.mark.parametrize(
    "header",
    [
        "%f (p: f32[]) -> f32[] {",
        "f (p: f32[]) -> f32[] {",
        "%f (p.1: (f32[], /*index=5*/s32[2]{0}), q: u32[]) -> (f32[]) {",
        "f {",
        "%f () -> () {",
    ],
)
def test_the_signature_of_a_computation_is_optional(header: str) -> None:
    """Short texts omit it; instructions repeat its types."""
    body = "\n  ROOT %p = f32[] parameter(0)\n}\n"
    found = parse(f"HloModule m\n\n{header}{body}\nENTRY {header.replace('f', 'g', 1)}{body}")
    assert list(found.computations) == ["f", "g"]
    assert found.entry.name == "g"


def test_a_thread_is_an_attribute_of_a_computation() -> None:
    """Computations of the host run on another thread."""
    found = parse(
        "HloModule m\n\n%h () -> f32[] {\n  ROOT %c = f32[] constant(1)\n"
        '}, execution_thread="host"\n\nENTRY %main () -> f32[] {\n'
        '  ROOT %r = f32[] call(), to_apply=%h\n}, execution_thread="main"\n'
    )
    assert found.computations["h"].attributes == {"execution_thread": "host"}
    assert found.entry.attributes == {"execution_thread": "main"}
    assert found.entry.instructions[0].bodies == (("to_apply", found.computations["h"]),)


def test_a_caller_may_precede_its_callee() -> None:
    """As in texts written by hand."""
    found = parse(
        "// by hand\nHloModule m\nENTRY e {\n  // a comment\n  p = f32[] parameter(0)\n"
        "  r = f32[] map(p), to_apply=f\n}\nf {\n  q = f32[] parameter(0)\n}"
    )
    assert [c.name for c in found.find_reachable()] == ["f", "e"]


def test_without_a_root_the_last_instruction_is_returned() -> None:
    """As in XLA's own parser."""
    found = module("%y = f32[4] tanh(%x)")
    assert found.entry.results == [(found.entry.instructions[-1], ())]


def test_bodies_may_be_printed_within_an_instruction() -> None:
    """`HloPrintOptions.canonical()` prints them so; a branch may hold another."""
    folded = parse("""HloModule m
ENTRY e {
  x = f32[] parameter(0)
  y = f32[] conditional(s32[] x), branch_computations={
  {
    p = f32[] parameter(0)
    ROOT q = f32[] call(f32[] p), to_apply=
    {
      ROOT r = f32[] parameter(0)
    }
  },
  {
    ROOT s = f32[] parameter(0)
  }
}
  ROOT z = f32[] while(f32[] y), condition=
  {
    ROOT c = pred[] parameter(0)
  }, body=
  {
    ROOT b = f32[] parameter(0)
  }, channel_id=1
}
""")
    plain = parse("""HloModule m
inline.1 {
  ROOT r = f32[] parameter(0)
}
inline.0 {
  p = f32[] parameter(0)
  ROOT q = f32[] call(p), to_apply=inline.1
}
inline.2 {
  ROOT s = f32[] parameter(0)
}
inline.3 {
  ROOT c = pred[] parameter(0)
}
inline.4 {
  ROOT b = f32[] parameter(0)
}
ENTRY e {
  x = f32[] parameter(0)
  y = f32[] conditional(x), branch_computations={inline.0, inline.2}
  ROOT z = f32[] while(y), condition=inline.3, body=inline.4, channel_id=1
}
""")
    assert same_graph(folded, plain)
    assert folded.entry.instructions[-1].line == 16


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: got 'end of line', expected 'HloModule name'"),
        ("module @jit_f {\n}", "line 1: got 'module @jit_f {', expected 'HloModule name'"),
        ("HloModule m\n", "line 2: got 'end of text', expected a computation marked ENTRY"),
        (
            "HloModule m\n\nf {\n  c = f32[] constant(1)\n}",
            "line 5: got 'end of text', expected a computation marked ENTRY",
        ),
        (
            "HloModule m\n\nwhat is this\n",
            "line 3: got 'what is this', expected a computation, 'name (parameters) -> type {'",
        ),
        (HEAD + CONSTANT, "line 5: got 'end of text', expected '}' of computation e"),
        (HEAD + "}\n", "line 4: got '}', expected an instruction"),
        (HEAD + "  %c\n}", "line 4: got '%c', expected 'name = type operation(...)'"),
        (HEAD + "  %c = add(%c)\n}", "line 4: got 'add(%c)', expected a type and an operation"),
        (
            HEAD + CONSTANT + "  %d = f32[] add(%c, %nowhere)\n}",
            "line 5: got '%nowhere', expected the name of an instruction above",
        ),
        (
            HEAD + CONSTANT + CONSTANT + "}",
            "line 5: got 'c', expected each name once in a computation",
        ),
        (
            HEAD + "  ROOT %a = f32[] constant(1)\n  ROOT %b = f32[] constant(1)\n}",
            "line 5: got 'ROOT', expected one root",
        ),
        (
            HEAD + "  %a = f32[] parameter(0)\n  %b = f32[] parameter(0)\n}",
            "line 5: got '0', expected each parameter once",
        ),
        (
            HEAD + CONSTANT + "  %d = f32[] map(%c), to_apply=%f\n}",
            "line 5: got 'f', expected the name of a computation",
        ),
        (
            HEAD + CONSTANT + "  %d = f32[] map(%c), control-predecessors={%f}\n}",
            "line 5: got 'f', expected the name of an instruction of the computation",
        ),
        (HEAD + CONSTANT + "}\n" + HEAD[13:] + CONSTANT + "}", "line 6: got 'e', expected each"),
        (
            HEAD + CONSTANT + "}\nENTRY %f () -> f32[] {\n" + CONSTANT + "}",
            "line 6: got 'ENTRY', expected one entry",
        ),
        (
            "HloModule m\n\nENTRY %e (x) -> f32[] {\n}",
            "line 3: got 'x', expected 'name: type'",
        ),
        (
            HEAD + "  %c = f32[] constant(1\n}",
            "line 4: got 'end of line', expected ')'",
        ),
    ],
)
def test_an_error_names_line_and_token(text: str, message: str) -> None:
    """And the expected text."""
    with pytest.raises(IrSyntaxError) as caught:
        parse(text)
    assert str(caught.value).startswith(f"hlo {message}")


@pytest.mark.parametrize(
    "text",
    [
        "HloModule m, " + "{" * 10_000,
        HEAD + "  %c = " + "(" * 10_000 + "f32[]" + ")" * 10_000 + " parameter(0)\n}",
        HEAD + "  %c = f32[] parameter(0), foo=" + "{" * 10_000 + "}" * 10_000 + "\n}",
        HEAD + '  %c = f32[] map(), backend_config="{\\"a\\":' + "[" * 10_000 + '"\n}',
        HEAD + "  %c = (" + ") a" * 100_000 + "\n}",
        HEAD + '  %c = f32[] map(), foo="' + '\\"' * 100_000 + "\n}",
        HEAD + "  %c = f32[] parameter(" + "1" * 10_000 + ")\n}",
        HEAD + "=\n{\n" * 10_000,
        HEAD + "  %c = f32[] map()" + ", metadata={" * 10_000 + "\n}",
        HEAD + "  %c = f32[] map(), replica_groups=[9999999,9999999]<=[99999980000001]\n}",
    ],
    ids=range(10),
)
def test_hostile_texts_are_refused_quickly(text: str) -> None:
    """Depth, length and numbers have limits."""
    with pytest.raises(IrSyntaxError):
        parse(text)


@pytest.mark.parametrize("numbers", [(1,), (0, 2), (-1, 0), (9999999,)])
def test_parameters_are_numbered_from_0_without_gaps(numbers: tuple[int, ...]) -> None:
    """Callers bind arguments by these numbers."""
    lines = [f"  p{at} = f32[] parameter({number})\n" for at, number in enumerate(numbers)]
    with pytest.raises(IrSyntaxError, match=r"got 'parameter\(-?\d+\)', expected parameters"):
        parse(f"HloModule m\n\nENTRY e {{\n{''.join(lines)}}}\n")
