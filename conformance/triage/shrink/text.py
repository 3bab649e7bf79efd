"""What a cut case looks like as a file: laid out, with what it should give. Pure."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.model.codec import CorruptValueError, to_array, to_python
from conformance.model.observation import ExpectedError
from conformance.triage.repro.layout import WIDTH, comment, imported, spaced
from conformance.triage.shrink.source import function_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.model.value import Leaf, Value

_F_STRING_START: Final[int] = getattr(tokenize, "FSTRING_START", -1)
_F_STRING_END: Final[int] = getattr(tokenize, "FSTRING_END", -1)
"""Types of tokens from Python 3.12 on."""
LARGEST: Final = 64
"""Elements of a value that is written down."""
_KEY: Final = re.compile(r"\[('[^'\]]*'|\d+)\]")
_KEYS: Final = re.compile(rf"(?:{_KEY.pattern})*")
_ALONE: Final = re.compile(r"^( *)(\w+), = ")
OPENING: Final = "([{"
CLOSING: Final = ")]}"


def lines_of_code(text: str) -> int:
    """Return how many lines of a text are neither empty nor a comment.

    Args:
        text: Python.
    """
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def laid_out(text: str, head: Iterable[str] = ()) -> str:
    """Return a text as a formatter leaves it.

    Args:
        text: Python without comments.
        head: What is said on top, one comment each.
    """
    tree: ast.Module = _Joined().visit(ast.parse(text))
    kinds = ast.Import | ast.ImportFrom
    lines = [ast.unparse(one) for one in tree.body if isinstance(one, kinds)]
    kit = [line for line in lines if line.startswith("from conformance.")]
    imports = [*imported(line for line in lines if line not in kit)]
    blocks = [_block(one) for one in tree.body if not isinstance(one, kinds)]
    parts = [
        "\n".join(line for one in head for line in comment(one)),
        "\n".join(imports),
        "\n".join(kit),
    ]
    return "\n\n".join(filter(None, parts)) + "\n\n" + spaced(blocks) + "\n"


class _Joined(ast.NodeTransformer):
    """Makes plain texts of those that are formatted from constants."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        parts: list[str] = []
        for one in node.values:
            match one:
                case ast.Constant(value=str(text)):
                    parts.append(text)
                case ast.FormattedValue(
                    value=ast.Constant(value=int() | str() as value),
                    conversion=-1,
                    format_spec=None,
                ):
                    parts.append(str(value))
                case _:
                    return node
        return ast.Constant(value="".join(parts))


def _block(node: ast.stmt) -> str:
    lines = _requoted(ast.unparse(node)).split("\n")
    kept = [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if line or not before.endswith(":")
    ]
    pieces = [one for line in _apart(kept) for one in _broken(line)]
    return "\n".join(_ALONE.sub(r"\1(\2,) = ", one) for one in pieces)


def _apart(lines: list[str]) -> Iterator[str]:
    """Yield lines with an empty one before and after each function within another."""
    inside: list[int] = []
    before = ":"
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if line:
            if inside and depth <= inside[-1]:
                while inside and depth <= inside[-1]:
                    inside.pop()
                yield ""
                before = ""
            if depth and line.lstrip().startswith("def "):
                if before and not before.endswith(":"):
                    yield ""
                inside.append(depth)
            yield line
            before = line


def _requoted(text: str) -> str:
    """Return a text whose strings stand in double quotes where that is as simple."""
    rows = text.split("\n")
    for row, start, end in _strings(text):
        prefix, quote, inner = rows[row][start:end].partition("'")
        plain = quote and inner.endswith("'") and "'" not in inner[:-1]
        if plain and not {'"', "\\"} & {*prefix, *inner}:
            rows[row] = f'{rows[row][:start]}{prefix}"{inner[:-1]}"{rows[row][end:]}'
    return "\n".join(rows)


def _strings(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield row, start and end of every string literal that is on one line."""
    opened: list[tuple[int, int]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        start = token.start
        # Since Python 3.12 an f-string is several tokens: its beginning, its parts, its end.
        if token.type == _F_STRING_START:
            opened.append(start)
            continue
        if token.type == _F_STRING_END:
            start = opened.pop()
        elif token.type != tokenize.STRING:
            continue
        if start[0] == token.end[0] and not opened:
            yield start[0] - 1, start[1], token.end[1]


def _broken(line: str, tail: str = "") -> list[str]:
    """Return a line, one item of its first bracket on a line each where it is too long."""
    if len(line) + len(tail) <= WIDTH:
        return [line + tail]
    indent = " " * (len(line) - len(line.lstrip()))
    for start, end in _brackets(line):
        items = _items(line[start + 1 : end])
        if not items or (len(items) == 1 and " for " in items[0]):
            continue
        inner = [piece for item in items for piece in _broken(f"{indent}    {item}", ",")]
        return [line[: start + 1], *inner, indent + line[end:] + tail]
    return [line + tail]


def _brackets(line: str) -> Iterator[tuple[int, int]]:
    """Yield where outermost brackets begin and end, the longest first."""
    found, depth, start = [], 0, 0
    for at, one in _outside_texts(line):
        if one in OPENING:
            start, depth = (at if depth == 0 else start), depth + 1
        elif one in CLOSING:
            depth -= 1
            if depth == 0:
                found.append((start, at))
    yield from sorted(found, key=lambda one: one[0] - one[1])


def _items(text: str) -> list[str]:
    """Return what stands between the outermost commas."""
    found, depth, start = [], 0, 0
    for at, one in _outside_texts(text):
        depth += (one in OPENING) - (one in CLOSING)
        if one == "," and depth == 0 and not _in_lambda(text[start:at]):
            found.append(text[start:at].strip())
            start = at + 1
    return [one for one in [*found, text[start:].strip()] if one]


def _in_lambda(text: str) -> bool:
    """Say whether a text ends within the parameters of a function without a name."""
    _, word, after = text.rpartition("lambda ")
    return bool(word) and ":" not in after


def _outside_texts(line: str) -> Iterator[tuple[int, str]]:
    quote, skipped = "", False
    for at, one in enumerate(line):
        if quote:
            skipped = one == "\\" and not skipped
            if one == quote and not (at and line[at - 1] == "\\"):
                quote = ""
        elif one in "\"'":
            quote = one
        else:
            yield at, one


def literal(expected: Value | ExpectedError) -> str | None:
    """Return what a value or an error is as an expression; None for one too large or strange.

    Args:
        expected: What a program should give.
    """
    if isinstance(expected, ExpectedError):
        names = [expected.type, *([expected.match] if expected.match else [])]
        return f"raises({', '.join(map(repr, names))})"
    told = [(leaf.path.removeprefix("out"), _leaf(leaf)) for leaf in expected.leaves]
    if any(one is None or not _KEYS.fullmatch(path) for path, one in told):
        return None
    return _nested([(_KEY.findall(path), str(one)) for path, one in told])


def _nested(leaves: list[tuple[list[str], str]]) -> str:
    """Return tuples and mappings of leaves, each by its keys."""
    if not leaves[0][0]:
        return leaves[0][1]
    inside: dict[str, list[tuple[list[str], str]]] = {}
    for keys, told in leaves:
        inside.setdefault(keys[0], []).append((keys[1:], told))
    items = {key: _nested(found) for key, found in inside.items()}
    if list(items) == [str(number) for number in range(len(items))]:
        return f"({', '.join(items.values())},)"
    return f"{{{', '.join(f'{key}: {value}' for key, value in items.items())}}}"


def _leaf(leaf: Leaf) -> str | None:
    """Return a leaf as an expression; None for one too large or strange."""
    try:
        if leaf.kind == "python":
            return leaf.data.decode() if leaf.dtype == "float" else repr(to_python(leaf))
        array = to_array(leaf)
    except CorruptValueError:
        return None
    plain = leaf.kind != "key" and array.dtype.kind in "fiub" and hasattr(np, leaf.dtype)
    if not plain or not np.isfinite(array).all():
        return None
    dtype = "bool" if leaf.dtype == "bool" else f"np.{leaf.dtype}"
    if array.ndim and array.size and (array == array.flat[0]).all():
        shape = array.shape[0] if array.ndim == 1 else array.shape
        return f"np.full({shape!r}, {_rounded(array.flat[0])!r}, {dtype})"
    if array.size > LARGEST:
        return None
    told = repr(_rounded(array))
    return f"np.array({told}, {dtype})" if array.ndim else f"{dtype}({told})"


def _rounded(array: Any) -> object:
    """Return an array as a nested list, or an element as a number, of as few digits as it has."""
    if np.ndim(array):
        return [_rounded(one) for one in array]
    return float(str(array[()])) if array.dtype.kind == "f" else array.item()


def with_reference(text: str, name: str, reference: str) -> str | None:
    """Return a case with what it should give; None where that cannot be said of it.

    Args:
        text: A case file.
        name: Name of its function.
        reference: An expression.
    """
    tree = ast.parse(text)
    last = function_of(tree, name).body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    called = getattr(last.value.func, "id", "") if isinstance(last.value, ast.Call) else ""
    if called not in {"Program", "Observed"}:
        kind = getattr(function_of(tree, name).decorator_list[0], "func", None)
        if getattr(kind, "id", "") != "probe":
            return None
        name_ = ast.Name(id="Observed", ctx=ast.Load())
        last.value = ast.Call(func=name_, args=[last.value], keywords=[])
        _import(tree, "Observed")
    assert isinstance(last.value, ast.Call)  # noqa: S101 - see above
    value = ast.parse(reference, mode="eval").body
    kept = [one for one in last.value.keywords if one.arg != "reference"]
    last.value.keywords = [*kept, ast.keyword(arg="reference", value=value)]
    if reference.startswith("raises"):
        _import(tree, "raises")
    first = ast.unparse(tree)
    if "np." in reference and "import numpy as np" not in first:
        first = f"import numpy as np\n{first}"
    return ast.unparse(ast.parse(first))


def with_claim(text: str, name: str, fact: str, facts: Mapping[str, Any]) -> str:
    """Return a case that claims a fact.

    Args:
        text: A case file.
        name: Name of its function.
        fact: The fact, or a part of it.
        facts: What is to be claimed of it.
    """
    tree = ast.parse(text)
    marked = function_of(tree, name).decorator_list[0]
    first = fact.partition(".")[0]
    if isinstance(marked, ast.Call):
        claim = ast.parse(repr({first: facts[first]}), mode="eval").body
        kept = [one for one in marked.keywords if one.arg != "facts"]
        marked.keywords = [*kept, ast.keyword(arg="facts", value=claim)]
    return ast.unparse(tree)


def _import(tree: ast.Module, name: str) -> None:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "conformance.kit":
            names = sorted({name, *(one.name for one in node.names)})
            node.names = [ast.alias(name=one) for one in names]
