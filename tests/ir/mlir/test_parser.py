"""From text to the graph: operations, regions, functions, the module."""

from __future__ import annotations

import pytest

from conformance.ir.graph import IrSyntaxError, Origin, Sharding, Tensor
from conformance.ir.mlir import parse

from .same import operation, text

VECTOR = Tensor("f32", (4,))
LOOP = """\
%i = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
%w:2 = "stablehlo.while"(%i, %x) ({
^bb0(%a: tensor<i32> loc("i"), %b: tensor<4xf32>):
  %t = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
  "stablehlo.return"(%t) : (tensor<i1>) -> ()
}, {
^bb0(%c: tensor<i32>, %d: tensor<4xf32>):
  %e = "stablehlo.add"(%d, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "stablehlo.return"(%c, %e) : (tensor<i32>, tensor<4xf32>) -> ()
}) {mhlo.note} : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
%r = "stablehlo.negate"(%w#1) : (tensor<4xf32>) -> tensor<4xf32>"""


def test_operands_are_producers_with_paths() -> None:
    """The path leads into the result of several."""
    negate = operation(LOOP)
    (loop,) = negate.operands
    assert (negate.name, negate.op, negate.type) == ("r", "stablehlo.negate", VECTOR)
    assert negate.paths == ((1,),)
    assert loop.type == (Tensor("s32"), VECTOR)
    assert loop.paths == ((), ())
    assert loop.attributes == {"mhlo.note": True}


def test_regions_are_computations_with_a_role() -> None:
    """Their arguments are parameters, the operands of their terminator are results."""
    (loop,) = operation(LOOP).operands
    (_, condition), (_, body) = loop.bodies
    assert [role for role, _ in loop.bodies] == ["condition", "body"]
    assert [one.name for one in condition.parameters] == ["a", "b"]
    assert condition.parameters[0].origin == Origin("i")
    assert [one.attributes for one in body.parameters] == [{"index": 0}, {"index": 1}]
    assert [(one.name, path) for one, path in body.results] == [("c", ()), ("e", ())]
    assert (condition.name, body.name) == ("w.condition", "w.body")


def test_a_region_sees_the_values_around_it() -> None:
    """An operand is then an instruction of another computation."""
    module = parse(text(*LOOP.splitlines()))
    (loop,) = module.entry.instructions[-1].operands
    add = loop.bodies[1][1].instructions[-1]
    assert add.operands[1] is module.entry.parameters[0]


@pytest.mark.parametrize(
    ("op", "roles"),
    [
        ("stablehlo.case", ["branch 0", "branch 1", "branch 2"]),
        ("stablehlo.if", ["branch 0", "branch 1"]),
        ("stablehlo.all_reduce", ["to_apply"]),
        ("stablehlo.sort", ["to_apply"]),
        ("stablehlo.select_and_scatter", ["select", "scatter"]),
        ("sdy.manual_computation", ["region 0"]),
        ("new.op", ["region 0", "region 1"]),
    ],
)
def test_known_regions_have_the_roles_of_hlo(op: str, roles: list[str]) -> None:
    """Other regions have numbers."""
    regions = ", ".join(['{\n  "a.yield"() : () -> ()\n}'] * len(roles))
    one = operation(f'"{op}"() ({regions}) : () -> ()')
    assert [role for role, _ in one.bodies] == roles
    assert len({body.name for _, body in one.bodies}) == len(roles)


FUNCTIONS = """\
"builtin.module"() <{sym_name = "jit_f"}> ({
  "func.func"() <{arg_attrs = [{mhlo.sharding = "{replicated}", tf.aliasing_output = 0 : i32}, {}],
    function_type = (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>,
    res_attrs = [{jax.result_info = ""}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%a: tensor<4xf32>, %b: tensor<f32>):
    %0 = "func.call"(%a) <{callee = @"odd name"}> : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.custom_call"(%0) <{call_target_name = "t", called_computations = [@g]}>
      : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.composite"(%1) <{decomposition = @g, name = "n"}>
      : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() ({
  ^bb0(%a: tensor<4xf32>):
    "func.return"(%a) : (tensor<4xf32>) -> ()
  }) {function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "odd name"} : () -> ()
  "func.func"() <{function_type = () -> (), sym_name = "g", sym_visibility = "private"}> ({
    "func.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (f32) -> (), sym_name = "h", sym_visibility = "private"}> ({
  }) : () -> ()
  "ml.global"() <{sym_name = "x", value = 3 : i64}> : () -> ()
}) {mhlo.num_partitions = 4 : i32} : () -> ()
"""


def test_calls_link_to_functions() -> None:
    """In the order of the text, also to a later one."""
    module = parse(FUNCTIONS)
    _, _, call, custom, composite = module.entry.instructions
    assert (module.kind, module.name, module.entry.name) == ("stablehlo", "jit_f", "main")
    assert list(module.computations) == ["main", "odd name", "g", "h"]
    assert call.bodies == (("callee", module.computations["odd name"]),)
    assert custom.bodies == (("called 0", module.computations["g"]),)
    assert composite.bodies == (("decomposition", module.computations["g"]),)
    assert call.attributes == {}
    assert composite.attributes == {"name": "n"}


def test_attributes_of_arguments_move_to_parameters() -> None:
    """Those of results stay with the function."""
    module = parse(FUNCTIONS)
    first, second = module.entry.parameters
    replicated = Sharding("replicated")
    assert first.attributes == {
        "index": 0,
        "mhlo.sharding": replicated,
        "tf.aliasing_output": 0,
    }
    assert second.attributes == {"index": 1}
    assert module.entry.attributes == {
        "result 0": (("jax.result_info", ""),),
        "sym_visibility": "public",
    }


def test_other_operations_of_a_module_become_attributes() -> None:
    """A function without a body has its type as an attribute."""
    module = parse(FUNCTIONS)
    assert module.attributes == {"mhlo.num_partitions": 4, "ml.global @x": (("value", 3),)}
    assert module.computations["h"].attributes == {
        "function_type": "(f32) -> ()",
        "sym_visibility": "private",
    }
    assert parse(text()).attributes["sdy.mesh @empty"] == (
        ("mesh", (("axes", ()), ("device_ids", ()))),
    )


def test_lines_spaces_and_comments_are_ignored() -> None:
    """An operation may span lines or share one with others."""
    one = text(
        '%a = "a.b"(%x) <{k = 1}> : (tensor<4xf32>) -> tensor<4xf32> // so', '"a.c"() : () -> ()'
    )
    module = parse(one.replace("\n", " ").replace("// so", "") + "// the end")
    spread = parse(one.replace(" ", "\n   ").replace("//\n   so", "// so"))
    assert [i.name for i in module.walk()] == [i.name for i in spread.walk()] == ["x", "a", "a.c"]
    assert [i.line for i in module.walk()] == [1, 1, 1]


def test_instructions_know_their_line() -> None:
    """Counted from 1."""
    module = parse(text('"a.b"() : () -> ()', "", '"a.b"() : () -> ()'))
    assert [one.line for one in module.walk()] == [8, 9, 11]


def test_a_tuple_is_one_result() -> None:
    """It is used as a whole; several results are used separately."""
    get = operation(
        '%t = "stablehlo.tuple"(%x) : (tensor<4xf32>) -> tuple<tensor<4xf32>>',
        '%g = "stablehlo.get_tuple_element"(%t) <{index = 0 : i32}> : '
        "(tuple<tensor<4xf32>>) -> tensor<4xf32>",
    )
    assert get.operands[0].type == (VECTOR,)
    assert get.paths == ((),)


def test_the_number_of_a_first_result_is_optional() -> None:
    """And a single result may have one."""
    add = operation(
        '%p:2 = "a.b"() : () -> (tensor<f32>, tensor<f32>)',
        '%q = "a.b"() : () -> tensor<f32>',
        '%r = "a.c"(%p, %q#0) : (tensor<f32>, tensor<f32>) -> tensor<f32>',
    )
    assert add.paths == ((0,), ())


def test_the_only_public_function_is_the_entry() -> None:
    """If no function is called `main`."""
    assert parse(text().replace('"main"', '"f"')).entry.name == "f"
    with pytest.raises(IrSyntaxError, match="got '0 public functions', expected 'main'"):
        parse(text().replace('"main"', '"f"').replace('"public"', '"private"'))


def test_resources_at_the_end_are_skipped() -> None:
    """References to them are kept as text."""
    resources = '\n{-#\n  dialect_resources: {\n    builtin: {a: "0x04"}\n  }\n#-}\n'
    assert parse(text() + resources).name == "m"
