"""Measures size, shape and language of the package, and the start-up time of its commands.

    python benchmarks/house.py [--json FILE] [--seconds]

Code lines are lines with code: no blank lines, comments or docstrings. A function is used once if
its name is read at one place: of its module if it is private, else of the package. `--seconds` also
times `conformance --help`, `list` and `run --help`: the fastest of ten processes each.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import time
import tokenize
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from house_language import measure_case_files, measure_language

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "conformance"
SHORT = 4
"""Body lines of a short function: used once, it could be inlined."""
REPEATS = 10
COMPOSED = ("LocalExecutor", "ResultCache", "Judge")
"""Types that only one module should build."""
SEARCH = "conformance.cli.bisect"
NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--seconds", action="store_true", help="also time commands")
    options = parser.parse_args()
    trees = {file: ast.parse(file.read_bytes()) for file in list_modules()}
    figures = {**measure_sizes(trees), **count_compositions(trees), **count_imports()}
    figures |= measure_language(trees, int(figures["code lines"])) | measure_case_files(
        PACKAGE.parent / "cases"
    )
    if options.seconds:
        figures |= time_start_up()
    for name, value in figures.items():
        print(f"{name:64} {value:>10,}")
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


def list_modules() -> list[Path]:
    """Return the modules of the package, without the data of an installation."""
    found = PACKAGE.rglob("*.py")
    return sorted(file for file in found if "data" not in file.relative_to(PACKAGE).parts[:1])


def measure_sizes(trees: dict[Path, ast.Module]) -> dict[str, float]:
    """Return the numbers of lines, modules and functions, and the longest ones."""
    functions = [*count_uses(trees)]
    once = [node for node, uses in functions if uses == 1]
    return {
        "code lines": sum(len(find_code_lines(file, tree)) for file, tree in trees.items()),
        "modules": len(trees),
        "functions": len(functions),
        "functions used once": len(once),
        f"functions used once and at most {SHORT} lines long": sum(
            count_body_lines(one) <= SHORT for one in once
        ),
        "longest function, lines": max(
            (node.end_lineno or 0) - node.lineno + 1 for node, _ in functions
        ),
        "longest module, lines": max(len(file.read_text().splitlines()) for file in trees),
        "longest module of cli, lines": max(
            len(file.read_text().splitlines()) for file in trees if file.parent.name == "cli"
        ),
        "public class names with several meanings": len(find_shared_names(trees)),
    }


def count_uses(trees: dict[Path, ast.Module]) -> Iterator[tuple[ast.FunctionDef, int]]:
    """Yield every function with the number of reads of its name: in its module if it is private."""
    within = {file: Counter(read_names(tree)) for file, tree in trees.items()}
    everywhere: Counter[str] = Counter()
    for counts in within.values():
        everywhere.update(counts)
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                uses = within[file] if node.name.startswith("_") else everywhere
                yield node, uses[node.name]


def find_code_lines(file: Path, tree: ast.Module) -> set[int]:
    """Return the numbers of the lines with code."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(file.read_text()).readline):
        if token.type not in NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        for inner in (
            getattr(node, "body", ()) if isinstance(getattr(node, "body", 0), list) else ()
        ):
            if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant):
                found -= set(range(inner.lineno, (inner.end_lineno or 0) + 1))
    return found


def read_names(tree: ast.AST) -> Iterator[str]:
    """Yield every name and attribute that is read; importing a name does not read it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id


def count_body_lines(node: ast.FunctionDef) -> int:
    """Return the number of lines of a function's body, without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def find_shared_names(trees: dict[Path, ast.Module]) -> list[str]:
    """Return the names of public classes that several modules define."""
    names = Counter(
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, count in names.items() if count > 1)


def count_compositions(trees: dict[Path, ast.Module]) -> dict[str, float]:
    """Return the number of modules that build each part of a command."""
    calls: Counter[str] = Counter()
    for tree in trees.values():
        built = {
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        calls.update(built & set(COMPOSED))
    return {f"modules that build a {name}": calls[name] for name in COMPOSED}


def count_imports() -> dict[str, float]:
    """Return the number of modules of this package that a command imports."""
    return {
        f"modules that `{name}` imports": int(
            run_python(
                f"import sys, {module}; "
                "print(sum(name.startswith('conformance') for name in sys.modules))"
            )
        )
        for name, module in {"run": "conformance.cli.run", "bisect": SEARCH}.items()
    }


def time_start_up() -> dict[str, float]:
    """Return the seconds of commands that only print."""
    found = {}
    for command in ("--help", "list", "run --help"):
        code = f"from conformance.cli import main; main({command.split()!r})"
        taken = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            run_python(code)
            taken.append(time.perf_counter() - start)
        found[f"seconds of `conformance {command}`"] = round(min(taken), 3)
    return found


def run_python(code: str) -> str:
    """Return the output of a fresh interpreter."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # Users do not set it; with it, every process would compile every module again.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main())
