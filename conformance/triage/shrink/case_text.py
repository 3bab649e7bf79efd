"""The text of a case while it is shrunk: extracted from its file, then its jaxpr, then formatted.

Each operation of an inlined jaxpr is a statement. So the operations of libraries can be cut as
well, and dropping a statement drops an equation.
"""

from __future__ import annotations

import ast
import subprocess
from typing import TYPE_CHECKING, Any, Final

from ruff import find_ruff_bin

from conformance.ir.graph import IrSyntaxError
from conformance.model.observation import ExpectedError
from conformance.model.value import CorruptValueError
from conformance.triage.jaxpr_code.code import render_jaxpr
from conformance.triage.jaxpr_code.literals import IMPORTS
from conformance.triage.jaxpr_code.program import UnsupportedJaxprError
from conformance.triage.new.reference import render_value
from conformance.triage.repro.case_source import extract_source
from conformance.triage.repro.layout import WIDTH, render_comment
from conformance.triage.shrink.simplification import simplify
from conformance.triage.shrink.syntax import (
    count_stores,
    find_function,
    find_undefined,
    parse_expression,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.model.case import Case
    from conformance.model.value import Value
    from conformance.triage.repro.case_source import ReadFile

DEFAULTS: Final = {
    "devices": 1, "platforms": (), "x64": False, "xla_flags": (), "config": {}, "facts": {},
    "timeout": 60.0, "memory": 4096, "observation_mb": 256, "rtol": None, "atol": None,
    "requires": (),
}  # fmt: skip
"""Keywords of a case that change its job or its judgement, with their defaults."""
REFERENCE_IMPORTS: Final = "import numpy as np\nfrom conformance.kit import Observed, raises"
"""The names that a reference may need."""
FORMATTERS: Final = (
    ("check", "--select=I", "--fix", "--config=lint.isort.known-first-party=['conformance']"),
    ("format", f"--line-length={WIDTH}"),
)
"""Commands of Ruff that sort the imports, and format the code."""


def extract_case(case: Case, read: ReadFile) -> str:
    """Return the text of a case file that contains one case alone, its parameters filled in.

    Args:
        case: The case, one parametrization of it.
        read: Returns the text of a file.

    Raises:
        NotStaticError: If a name it uses cannot be found by reading files.
    """
    source = extract_source(case.file, case.name, read)
    kit = sorted({*source.kit, case.kind})
    lines = [
        *(["from __future__ import annotations"] if source.has_future_annotations else []),
        *source.imports,
        f"from conformance.kit import {', '.join(kit)}",
        *source.definitions,
    ]
    tree = ast.parse("\n".join(lines))
    function = find_function(tree, case.name)
    # `extract_source` leaves out the decorator of the case, whose keywords may be names.
    function.decorator_list.insert(0, _make_decorator(case))
    # Parameters become statements, so that their values are cut like any others.
    _fill_parameters(function, case.params)
    return ast.unparse(simplify(ast.fix_missing_locations(tree), case.name))


def _make_decorator(case: Case) -> ast.Call:
    """Return a decorator with the keywords that change the job of a case."""
    keywords = [
        ast.keyword(arg=name, value=parse_expression(repr(value)))
        for name, default in DEFAULTS.items()
        if (value := getattr(case, name)) != default
    ]
    return ast.Call(func=ast.Name(id=case.kind, ctx=ast.Load()), args=[], keywords=keywords)


def _fill_parameters(function: ast.FunctionDef, params: Mapping[str, Any]) -> None:
    """Replace the parameters of a case by assignments of their values."""
    arguments = function.args
    defaults = {
        **dict(zip(reversed(arguments.args), reversed(arguments.defaults), strict=False)),
        **dict(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)),
    }
    parameters = (*arguments.args, *arguments.kwonlyargs)
    function.body[:0] = [
        ast.Assign(
            targets=[ast.Name(id=parameter.arg, ctx=ast.Store())],
            value=parse_expression(repr(params[parameter.arg])),
        )
        for parameter in parameters
        if parameter.arg in params
    ]
    arguments.args = [p for p in arguments.args if p.arg not in params]
    arguments.kwonlyargs = [p for p in arguments.kwonlyargs if p.arg not in params]
    # Defaults belong to the last parameters: those of dropped parameters must go with them.
    arguments.defaults = [default for p in arguments.args if (default := defaults.get(p))]
    arguments.kw_defaults = [defaults[parameter] for parameter in arguments.kwonlyargs]


def inline_jaxpr(text: str, name: str, document: bytes, release: str) -> str | None:
    """Return a case whose function is its jaxpr, written as code.

    Args:
        text: The case; it returns `Program(function, ...)`.
        name: Name of its function.
        document: Its jaxpr.
        release: The release that traced it.

    Returns:
        The case; None if its jaxpr cannot be written as code, or it takes more than its arguments.
    """
    tree = ast.parse(text)
    case = find_function(tree, name)
    match case.body[-1]:
        case ast.Return(value=ast.Call(func=ast.Name(id="Program"), args=[_, *_]) as call):
            pass
        case _:
            return None
    # A jaxpr has positional inputs alone, and is traced with the options of `jit` already applied.
    if any(keyword.arg in {"kwargs", "jit"} for keyword in call.keywords):
        return None
    # Most cases name their function `fn`; its reference may still use that function.
    function = "fn" if "fn" not in count_stores(tree) else "steps"
    try:
        code = render_jaxpr(document, release=release, name=function)
    except (UnsupportedJaxprError, IrSyntaxError):
        return None
    if not code.parameters:
        call.keywords = [keyword for keyword in call.keywords if keyword.arg != "args"]
    call.args[0] = ast.Name(id=code.name, ctx=ast.Load())
    case.body[-1:-1] = ast.parse("\n".join(code.statements)).body
    present = {ast.unparse(node) for node in tree.body}
    imports = [line for line in IMPORTS.values() if line not in present]
    tree.body[:0] = ast.parse("\n".join(imports)).body
    written = ast.unparse(simplify(tree, name))
    # The code reads `env`, which the case may have named otherwise.
    return None if find_undefined(written) else written


def count_lines(text: str) -> int:
    """Return the number of lines of a text that are neither empty nor a comment.

    Args:
        text: Python.
    """
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def format_text(text: str, head: Iterable[str] = ()) -> str:
    """Return a text as Ruff formats it.

    Args:
        text: Python without comments.
        head: Comments on top of it.
    """
    # Ruff would leave the empty line that `ast.unparse` puts before a function within another.
    text = ast.unparse(ast.parse(text)).replace(":\n\n", ":\n")
    # Isolated: the text must not depend on the configuration in the working directory. Imports are
    # sorted as in a project whose own package is `conformance`, whose case files this text may
    # join.
    for options in FORMATTERS:
        text = subprocess.run(
            [find_ruff_bin(), *options, "--isolated", "--quiet", "-"],
            input=text, capture_output=True, text=True, encoding="utf-8", check=True,
        ).stdout  # fmt: skip
    comments = "".join(f"{line}\n" for paragraph in head for line in render_comment(paragraph))
    return f"{comments}\n{text}" if comments else text


def add_reference(text: str, name: str, expected: Value | ExpectedError) -> str | None:
    """Return a case with a reference; None if it cannot be written.

    Args:
        text: A case file.
        name: Name of its function.
        expected: The expected value or error.
    """
    tree = ast.parse(text)
    match find_function(tree, name):
        case ast.FunctionDef(
            body=[*_, ast.Return(value=ast.Call(func=ast.Name(id="Program" | "Observed")) as call)]
        ):
            pass
        case ast.FunctionDef(
            body=[*_, ast.Return(value=ast.expr() as value) as last],
            decorator_list=[ast.Call(func=ast.Name(id="probe")), *_],
        ):
            observed = ast.Name(id="Observed", ctx=ast.Load())
            last.value = call = ast.Call(func=observed, args=[value], keywords=[])
        case _:
            return None
    if isinstance(expected, ExpectedError):
        arguments = [expected.type, *([expected.match] if expected.match else [])]
        reference = f"raises({', '.join(map(repr, arguments))})"
    else:
        try:
            reference = render_value(expected)
        # A value that cannot be decoded has no literal.
        except CorruptValueError:
            reference = ""
    if not reference:
        return None
    _set_keyword(call, "reference", reference)
    # `simplify` drops those that the reference does not use.
    tree.body[:0] = ast.parse(REFERENCE_IMPORTS).body
    return ast.unparse(simplify(tree, name))


def add_claim(text: str, name: str, fact: str, facts: Mapping[str, Any]) -> str:
    """Return a case that claims a fact.

    Args:
        text: A case file.
        name: Name of its function.
        fact: Name of the fact, or of a part of it.
        facts: Values of facts by name.
    """
    tree = ast.parse(text)
    match find_function(tree, name).decorator_list:
        case [ast.Call() as decorator, *_]:
            first = fact.partition(".")[0]
            # A claim is about a whole fact, not about a part of it.
            _set_keyword(decorator, "facts", repr({first: facts[first]}))
        case _:
            pass
    return ast.unparse(tree)


def _set_keyword(call: ast.Call, name: str, value: str) -> None:
    others = [keyword for keyword in call.keywords if keyword.arg != name]
    call.keywords = [*others, ast.keyword(arg=name, value=parse_expression(value))]
