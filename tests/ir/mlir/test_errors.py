"""Malformed texts raise an error that names the line, and no other error."""

from __future__ import annotations

import contextlib
import time

import pytest

from conformance.ir.graph import IrSyntaxError
from conformance.ir.mlir import parse

from .same import text

BARE = '"builtin.module"() ({\n}) : () -> ()\n'


@pytest.mark.parametrize(
    ("whole", "message"),
    [
        ("", "line 1: got the end, expected a module; the text is empty"),
        ("\n\n  ", "line 3: got the end, expected a module"),
        ("what is this", "line 1: got 'what', expected '\"builtin.module\"'"),
        ("HloModule m\n", "expected StableHLO in MLIR's generic form; this is HLO"),
        ("module @jit_f {\n}\n", "the generic form, as operation.get_asm(print_generic_op_form"),
        ("#loc = loc(unknown)\nmodule @jit_f attributes {} {", "line 2: got 'module'"),
        ('"func.func"() : () -> ()', "expected '\"builtin.module\"'"),
        (BARE, "0 public functions"),
        (text()[:-20], "got "),
        (text() + "and more", "got 'and', expected the end"),
        (text() + BARE, "expected the end"),
        ('"builtin.module"() ({\n^bb0(%a: f32):\n}) : () -> ()', "line 2: got '%a', expected"),
        ('"builtin.module"() : () -> ()', "0 public functions"),
    ],
)
def test_a_text_that_is_no_module_is_refused(whole: str, message: str) -> None:
    """The message names the language of the text, and how to get the right one."""
    with pytest.raises(IrSyntaxError) as raised:
        parse(whole)
    assert str(raised.value).startswith("stablehlo line ")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%a = stablehlo.add %x, %x : tensor<4xf32>", "got 'stablehlo.add', expected a string"),
        ("stablehlo.return", "got 'stablehlo.return', expected an operation in generic form or"),
        ('"a.b"(%y) : (f32) -> ()', "got '%y', expected a value that is defined above"),
        ('"a.b"(%x#1) : (f32) -> ()', "got '%x#1', expected a value that is defined above"),
        ('%x = "a.b"() : () -> f32', "got '%x', expected a value of a new name"),
        ('%a:2 = "a.b"() : () -> f32', "got '%a:2', expected 1 results"),
        ('%a = "a.b"() : () -> ()', "got '%a:1', expected 0 results"),
        ('"a.b"(%x) : () -> ()', "as many operands as types, 0"),
        ('"a.b"(%x) : (f32) -> ()', "got '%x', expected an operand of the type it was given"),
        ('"a.b"(%x,) : (f32) -> ()', "got ')', expected"),
        ('"a.b"(x) : (f32) -> ()', "got 'x', expected an operand or ')'"),
        ('"a.b"()', "got '\"func.return\"', expected ':'"),
        ('"a.b"() : ()', "expected '->'"),
        ('"a.b"()[^bb1] : () -> ()', "expected an operation without successors"),
        ('"a.b"() <{k = 1}> {k = 2} : () -> ()', "expected 'k' once"),
        ('"a.b"() ({}, ) : () -> ()', "got ')', expected '{'"),
        ("^bb1:", "got '^bb1', expected one block a region"),
        ('"a.return"() : () -> ()', "got 'func.return', expected '}' after the terminator"),
        ('"func.call"() <{callee = @f}> : () -> ()', "got '@f', expected a function"),
        ('"func.call"() <{callee = 3}> : () -> ()', "got '3', expected the symbols of"),
        ('"a.b"() : () -> () loc(', "expected a location"),
        ("}", "got '\"func.return\"', expected ')'"),
        ('"a.b', "got '\"'"),
    ],
)
def test_a_line_that_is_no_operation_is_refused(line: str, message: str) -> None:
    """The message names its line, or the line of the missing text."""
    with pytest.raises(IrSyntaxError) as raised:
        parse(text(line))
    assert str(raised.value).startswith(("stablehlo line 9: ", "stablehlo line 10: "))
    assert message.replace("expected a location", "expected 'loc'") in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("arg_attrs = [{}]", "arg_attrs = [{}, {}]", "expected 1 dictionaries"),
        ("arg_attrs = [{}]", "arg_attrs = [3]", "expected dictionaries"),
        ('"main"', '""', "expected a function with a name of its own"),
        ('sym_name = "odd"', 'sym_name = "mesh"', "expected a name of its own"),
        ('#sdy.mesh<["a"=8]>', "3", "expected a mesh before it"),
    ],
)
def test_an_inconsistent_module_is_refused(old: str, new: str, message: str) -> None:
    """Names and numbers of arguments."""
    with pytest.raises(IrSyntaxError, match=message):
        parse(text().replace(old, new))


def nested(depth: int) -> str:
    """Return a module with regions this deep."""
    return text(*['"a.b"() ({'] * depth, *["}) : () -> ()"] * depth)


def test_deep_regions_are_read_up_to_a_limit() -> None:
    """Without reaching the limit of Python."""
    module = parse(nested(200))
    assert len(module.find_reachable()) == 201
    with pytest.raises(IrSyntaxError, match="regions nested at most 500 deep"):
        parse(nested(10_000))


@pytest.mark.parametrize(
    "long",
    [
        '"a.b"() : () -> () ' * 20_000,
        '"a.b"(' + "%x, " * 100_000,
        '"a.b"() <{k = "' + "x" * 1_000_000,
        '"a.b"() <{k = ' + "[" * 100_000,
        '"a.b"() <{k = dense<[' + "1, " * 100_000,
        '"a.b"() : () -> ' + "tensor<" * 100_000,
        '"a.b"() : () -> () loc(' + '"a"(' * 100_000,
        '"a.b"() ({' * 50_000,
        "\\" * 100_000,
        '"' * 100_000,
        "{-#" * 100_000,
        " " * 1_000_000,
    ],
    ids=lambda long: long[:20],
)
def test_long_malformed_texts_take_linear_time(long: str) -> None:
    """No pattern backtracks."""
    begin = time.process_time()
    with contextlib.suppress(IrSyntaxError):
        parse(text(long))
    assert time.process_time() - begin < 3
