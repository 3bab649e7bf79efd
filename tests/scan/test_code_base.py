"""Names that the modules of a code base pass on to one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.scan.code_base import CodeBase, name_module
from conformance.scan.uses import NameUse, find_uses

if TYPE_CHECKING:
    from pathlib import Path


def follow(name: str, **modules: str) -> NameUse:
    """Return where a use of a name leads, through modules of the package `own`."""
    found = [
        find_uses(
            source, "own" if key == "init" else f"own.{key}",
            is_package=key == "init", packages=["own", "jax"],
        )
        for key, source in modules.items()
    ]  # fmt: skip
    return CodeBase(found).follow_names(NameUse(names=frozenset({name}), line=1, column=1))


def test_a_name_is_followed_to_its_package() -> None:
    """Through as many modules as there are, and attributes."""
    use = follow(
        "own.a.n.clip", a="from .b import n", b="from .c import *", c="from jax import numpy as n"
    )
    assert use.names == {"jax.numpy.clip"}
    assert not use.guarded


def test_a_package_passes_names_on() -> None:
    """Its `__init__` is the package."""
    assert follow("own.jit", init="from jax import jit").names == {"jax.jit"}


def test_what_a_module_defines_itself_is_uncertain() -> None:
    """A wrapper of the same name is no name of jax."""
    use = follow("own.a.jit", a="import jax\ndef jit(f): ...")
    assert use.names == frozenset()
    assert use.guarded


def test_a_cycle_of_imports_ends() -> None:
    """It leads nowhere."""
    use = follow("own.a.x", a="from .b import x", b="from .a import x")
    assert use.names == frozenset()


def test_names_of_other_packages_stay() -> None:
    """They are not followed."""
    assert follow("jax.jit", a="").names == {"jax.jit"}


def test_modules_are_named_by_their_folders(tmp_path: Path) -> None:
    """As far up as there is an `__init__.py`."""
    inner = tmp_path / "own" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner.parent, inner):
        (folder / "__init__.py").touch()
    assert name_module(inner / "module.py") == ("own.inner.module", False)
    assert name_module(inner / "__init__.py") == ("own.inner", True)
    assert name_module(tmp_path / "script.py") == ("script", False)
