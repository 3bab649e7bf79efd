"""The vocabulary of case files, as the static reader expects it, on every supported Python."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from conformance import kit
from conformance.corpus.metadata import DeviationMetadata, Metadata
from conformance.kit import Observed, Program, Raises, deviation, probe, program, raises
from conformance.kit.case import MARK

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKOUT = Path(__file__).resolve().parents[2]
KIT = CHECKOUT / "conformance" / "kit"


def declared(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function's keywords and their defaults."""
    return {name: p.default for name, p in inspect.signature(function).parameters.items()}


def read(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return a struct's fields and their defaults; an empty container stands for None."""
    return {
        field.name: field.default
        if field.default is not msgspec.NODEFAULT
        else field.default_factory() or None
        for field in msgspec.structs.fields(struct)
    }


@pytest.mark.parametrize(
    ("function", "struct", "without"),
    [
        (program, Metadata, ("records",)),
        (probe, Metadata, ("facts", "policy", "same_as")),
        (deviation, DeviationMetadata, ()),
    ],
    ids=["program", "probe", "deviation"],
)
def test_keywords_are_those_of_the_static_reader(
    function: Callable[..., Any], struct: type[msgspec.Struct], without: tuple[str, ...]
) -> None:
    """The same names, order and defaults."""
    expected = {name: value for name, value in read(struct).items() if name not in without}
    assert list(declared(function)) == list(expected)
    assert declared(function) == expected


@pytest.mark.parametrize("mark", [program, probe])
def test_decorator_returns_the_function(mark: Callable[..., Any]) -> None:
    """Calling it needs no harness."""

    def case(env: object) -> int:
        return 42

    assert mark(devices=2)(case) is case
    assert getattr(case, MARK) == mark.__name__
    assert case(None) == 42


def test_defaults_of_the_vocabulary() -> None:
    """Case files depend on them."""
    assert Program(abs) == Program(fn=abs, args=(), kwargs={}, reference=None, jit={})
    assert Observed(1) == Observed(value=1, reference=None, artifacts={})
    assert raises("TypeError|ValueError", match="bad") == Raises("TypeError|ValueError", "bad")


def test_all_lists_the_vocabulary() -> None:
    """`from conformance.kit import *` imports nothing else."""
    assert all(hasattr(kit, name) for name in kit.__all__)
    assert list(kit.__all__) == sorted(kit.__all__)


def test_kit_imports_neither_jax_nor_the_harness() -> None:
    """Case files can be imported without jax."""
    code = "import sys, conformance.kit; print(sorted(m for m in sys.modules if '.' not in m))"
    code += "; print([m for m in sys.modules if m.startswith('conformance.') and '.kit' not in m])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    modules, ours = done.stdout.splitlines()
    assert not {"jax", "jaxlib", "numpy", "msgspec"} & set(ast.literal_eval(modules))
    assert ast.literal_eval(ours) == []


@pytest.mark.parametrize("file", sorted(KIT.glob("*.py")), ids=lambda file: file.name)
def test_kit_has_the_syntax_of_python_3_10(file: Path) -> None:
    """The Python of a cell may be older than that of the orchestrator."""
    ast.parse(file.read_bytes(), filename=str(file), feature_version=(3, 10))
