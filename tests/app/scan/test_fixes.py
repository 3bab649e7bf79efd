"""Fixes of a code base, by the releases of the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.app.context import load_context
from conformance.app.scan.api import FIXES, load_fixes, read_literal
from conformance.app.scan.changes import scan
from conformance.app.scan.fixes import add_fixes, write_fixes
from conformance.errors import UsageError
from conformance.golden.store import GoldenStore
from conformance.report.scan.text import make_scan_json, render_fixes
from conformance.scan.fixes import DROPPED, CodeFix, FormState
from tests.projects import ROOT, write_files
from tests.shipped import CASES

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.scan.result import ScanResult

COMPAT = "from jax.experimental.shard_map import shard_map\n"
CALL = "from .compat import shard_map\n\ng = shard_map(f, mesh, a, b, check_rep=False)\n"
FIXED_CALL = CALL.replace("mesh, a, b, check_rep", "mesh=mesh, in_specs=a, out_specs=b, check_vma")
GONE = "import jax\n\nx = jax.tree_map(f, y)\n"


def fix(
    folder: Path, files: dict[str, str], old: str = "0.5.3", new: str = "0.12.0.1"
) -> ScanResult:
    """Return the fixes of a package, which are written."""
    package = folder / "own"
    package.mkdir()
    write_files(package, {"__init__.py": "", **files})
    result = scan([package], old, new)
    add_fixes(result)
    write_fixes(result.fixes)
    return result


def test_a_name_that_another_module_passes_on_is_fixed_in_both(tmp_path: Path) -> None:
    """The import where it is, and the arguments of the call."""
    fix(tmp_path, {"compat.py": COMPAT, "step.py": CALL})
    assert (tmp_path / "own/compat.py").read_text() == "from jax import shard_map\n"
    assert (tmp_path / "own/step.py").read_text() == FIXED_CALL


def test_a_name_that_is_passed_on_stays_if_one_call_cannot_be_fixed(tmp_path: Path) -> None:
    """Else the other module would break."""
    auto = CALL.replace("check_rep=False", "auto=frozenset('x')")
    result = fix(tmp_path, {"compat.py": COMPAT, "step.py": CALL, "other.py": auto})
    assert result.fixes == {}


@pytest.mark.parametrize(
    ("source", "ends", "expected"),
    [
        (GONE, ("0.5.3", "0.6.0"), GONE.replace("tree_map", "tree.map")),
        # Deprecated before 0.6.0, but there.
        (GONE, ("0.4.30", "0.4.31"), GONE.replace("tree_map", "tree.map")),
        # The newer form does not exist yet.
        (COMPAT, ("0.5.3", "0.6.0"), COMPAT),
        # The older form neither warns nor raises.
        (COMPAT, ("0.6.2", "0.7.2"), COMPAT),
        (COMPAT, ("0.6.2", "0.8.0"), "from jax import shard_map\n"),
        # The module moved, but not this name of it.
        ("from jax.experimental.export import nothing\n", ("0.4.30", "0.6.0"), None),
    ],
)
def test_a_fix_is_for_some_releases(
    tmp_path: Path, source: str, ends: tuple[str, str], expected: str | None
) -> None:
    """Those in which the form before warns or raises, and the form after works."""
    fix(tmp_path, {"a.py": source}, *ends)
    assert (tmp_path / "own/a.py").read_text() == (expected or source)


def test_hits_have_their_fixes(tmp_path: Path) -> None:
    """And say whether the change must wait for the upgrade."""
    result = fix(
        tmp_path, {"a.py": f"{GONE}z = jax.core.ConcreteArray\n", "compat.py": COMPAT}, "0.4.35"
    )
    rows = {row["name"]: row["fix"] for row in make_scan_json(result)["hits"]}
    assert rows["jax.core.ConcreteArray"] is None
    assert rows["jax.tree_map"] == {"id": "tree_map", "form": "jax.tree.map", "works_before": True}
    assert not rows["jax.experimental.shard_map.shard_map"]["works_before"]
    lines = [*render_fixes(result)]
    assert "+x = jax.tree.map(f, y)" in lines
    assert "  `jax.core.ConcreteArray` is gone (0.4.36)" in lines
    assert "fixes: 2 places in 2 files, for 2 of 3 hits" in lines
    assert lines[-1].endswith("(1 place): make the change together with the upgrade")


def test_notebooks_and_broken_files_stay(tmp_path: Path) -> None:
    """They are scanned or named as without fixes."""
    notebook = (
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code", '
    )
    notebook += '"source": "import jax\\njax.tree_map(f, x)"}]}'
    result = fix(tmp_path, {"a.ipynb": notebook, "broken.py": "def ("})
    assert len(result.hits) == 1
    assert result.fixes == {}
    assert [file.name for file in result.unreadable] == ["broken.py"]


def test_files_keep_their_mode_and_links(tmp_path: Path) -> None:
    """The file that it points to is written, and the link stays."""
    target = tmp_path / "script"
    target.write_text(GONE)
    target.chmod(0o755)
    link = tmp_path / "link.py"
    link.symlink_to(target)
    result = scan([link], "0.5.3", "0.6.0")
    add_fixes(result)
    write_fixes(result.fixes)
    assert link.is_symlink()
    assert "tree.map" in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o755


def test_a_file_that_changes_meanwhile_is_an_error(tmp_path: Path) -> None:
    """No file is written then."""
    file = tmp_path / "a.py"
    file.write_text(GONE)
    result = scan([file], "0.5.3", "0.6.0")
    add_fixes(result)
    file.write_text(f"{GONE}# more\n")
    with pytest.raises(UsageError, match="has changed since it was read"):
        write_fixes(result.fixes)


def load_all() -> list[CodeFix]:
    """Return all fixes with their states in each release."""
    context = load_context()
    return load_fixes(context, GoldenStore(CASES), [*context.releases.versions])


def test_every_fix_is_for_some_release() -> None:
    """It has states, the form before goes or warns, and the form after works in the newest one."""
    fixes = load_all()
    assert {one.id for one in fixes} == {*read_literal(CASES.joinpath(*FIXES), "FIXES")}
    assert len(fixes) >= 40
    assert [one.id for one in fixes if not any(map(one.is_due, one.states))] == []
    newest = [*load_context().releases.versions][-1]
    assert [one.id for one in fixes if one.states[newest][0] is FormState.WORKS] == []


def test_parameters_match_one_by_one() -> None:
    """Those that are dropped are the last: the positions of the others stay."""
    for one in load_all():
        if not one.code:
            names = [parameter.name for parameter in one.renamed]
            assert len(names) == len(one.parameters)
            assert DROPPED not in names[:-1]


def test_the_page_lists_every_fix() -> None:
    """As `benchmarks/fixes_page.py` writes it."""
    page = (ROOT / "docs" / "fixes.md").read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| `jax")]
    listed = {tuple(row.split(" | ")[:2]) for row in rows}
    assert {(row[0].strip("| `").partition("(")[0], row[1].strip("`")) for row in listed} == {
        (one.old, one.text) for one in load_all()
    }
