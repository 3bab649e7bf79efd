"""Measures the language of the package: its names, docstrings and comments."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

_PARTICIPLES = """
told said kept seen found given asked left made known shown taken gone come meant held stood
heard begun done drawn read run set put cut built bound sent lost met worn written
"""
PARTICIPLES = frozenset(_PARTICIPLES.split())
"""Irregular participles; the others end in `ed`."""
_NO_PARTICIPLES = """
need feed seed speed embed exceed shed read run set put cut
"""
NO_PARTICIPLES = frozenset(_NO_PARTICIPLES.split())
"""Imperatives that look like participles."""
_VERBS = """
accept add advance align analyse analyze append apply ask assert assign attach begin bind bisect
blame build cache calculate call cancel canonicalize capture cast check choose classify clean
clear close collect color combine commit compare compile complete compress compute configure
confirm connect contain convert copy count create cut declare decode decompress define delete
derive describe detect determine diff digest discard discover display distribute divide download
draw drop dump elide eliminate emit encode end enter erase escape estimate evaluate examine
exclude execute exit expand explain export extract fail fetch fill filter find finish fit fix
flatten fold follow forbid forget fork format freeze gather generate get group guess halve handle
hash hide hoist hold identify ignore import include indent index infer inherit initialize inline
insert inspect install intern interrupt intersect invert iterate join judge keep kill label launch
learn leave limit link list load locate lock log look lower make map mark mask match measure merge
migrate move name narrow normalise normalize note notify number observe offer open order pair
parse pass pick pin place plan poll prefer prepare present print probe process propose provision
prune publish pull push put query quote raise rank read rebuild receive recompute record recover
redirect reduce refer refine refresh refuse register rejudge release remove rename render renew
reorder repair repeat replace replay report require reserve reset resolve restore resume retire
return review rewrite round run save say scan scope search select send separate serialize serve
set settle shift shorten show shrink shut sign simplify skip slice sort spawn spell splice split
spread start state step stop store strip submit substitute subtract suggest summarize suspend swap
take tell test tokenize touch trace track transform translate traverse trim truncate try unfold
unify unlink unpack unquote update use validate verify visit wait walk warn watch weigh widen wrap
write yield
"""
VERBS = frozenset(_VERBS.split())
"""First words of a function name that describe an action."""
PREDICATES = ("is", "has", "may", "can", "needs", "should", "was", "are", "differs", "covers")
PRONOUNS = re.compile(
    r"^\s+\w+: (?:It|They|That|Them|One|This|What it|The same)\b[^.]{0,12}\.", re.MULTILINE
)
SUPPRESSION = re.compile(r"#\s*(?:noqa|type:\s*ignore)")
FORMATTING = re.compile(r"#\s*(?:noqa|type:|fmt:|pragma)")


def measure_language(trees: dict[Path, ast.Module], code: int) -> dict[str, float]:
    """Return figures about names, docstrings and comments of modules.

    A function is named by a bare participle if its name is one word, such as `told`. Properties
    and dunder methods do not count among the functions that should begin with a verb.

    Args:
        trees: The modules.
        code: Number of their code lines.
    """
    functions = [node for tree in trees.values() for node in functions_of(tree)]
    names = [name for node in functions if (name := node.name.strip("_"))]
    acting = [n.name.strip("_") for n in functions if not (is_property(n) or n.name[:2] == "__")]
    verbs = sum(starts_with_verb(name) for name in acting)
    docs = [doc for tree in trees.values() for doc in docstrings(tree)]
    comments = sum(
        not FORMATTING.match(comment)
        for file in trees
        for comment in comments_of(file.read_text(encoding="utf-8"))
    )
    return {
        "functions named by a bare participle": sum(map(is_participle, names)),
        "functions whose name starts with a verb, per cent": round(100 * verbs / len(acting)),
        "docstrings that open with What": sum(doc.startswith("What") for doc in docs),
        "arguments documented by a pronoun": sum(len(PRONOUNS.findall(doc)) for doc in docs),
        "comments per 100 code lines": round(100 * comments / code, 1),
        "suppressions (noqa, type: ignore)": sum(
            len(SUPPRESSION.findall(file.read_text(encoding="utf-8"))) for file in trees
        ),
    }


def measure_case_files(folder: Path) -> dict[str, float]:
    """Return figures about the metadata in case files.

    Args:
        folder: Folder of the families.
    """
    longer = cases = repeated = 0
    for file in sorted(folder.glob("*/[!_]*.py")):
        deviations: Counter[str] = Counter()
        for node in ast.parse(file.read_bytes()).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            decorators = [one for one in node.decorator_list if _is_case(one)]
            body = node.body[1:] if ast.get_docstring(node) else node.body
            cases += bool(decorators)
            longer += bool(decorators) and count_lines(decorators) > count_lines(body)
            deviations.update(
                ast.unparse(call)
                for call in ast.walk(ast.Module(body=[node], type_ignores=[]))
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "deviation"
            )
        repeated += sum(count - 1 for count in deviations.values())
    return {
        "cases": cases,
        "cases whose decorator is longer than the body": longer,
        "deviations repeated within their file": repeated,
    }


def count_lines(nodes: Sequence[ast.expr] | Sequence[ast.stmt]) -> int:
    """Return the number of lines of some nodes that follow each other."""
    return (nodes[-1].end_lineno or 0) - nodes[0].lineno + 1 if nodes else 0


def _is_case(decorator: ast.expr) -> bool:
    name = getattr(decorator.func, "id", "") if isinstance(decorator, ast.Call) else ""
    return name in {"program", "probe"}


def functions_of(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Say whether a function is a property."""
    names = {getattr(one, "id", getattr(one, "attr", "")) for one in node.decorator_list}
    return bool(names & {"property", "cached_property", "setter"})


def is_participle(name: str) -> bool:
    """Say whether a name is one participle."""
    if "_" in name or name in NO_PARTICIPLES:
        return False
    return name in PARTICIPLES or name.endswith("ed")


def starts_with_verb(name: str) -> bool:
    """Say whether a name begins with a verb, or is a predicate."""
    first = name.split("_", maxsplit=1)[0]
    return first in VERBS or first in PREDICATES


def docstrings(tree: ast.Module) -> Iterable[str]:
    """Yield the docstrings of a module, its classes and functions."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds) and (doc := ast.get_docstring(node)):
            yield doc


def comments_of(text: str) -> Iterator[str]:
    """Yield the comments of a source text."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
