"""A scan of a code base, with the names and signatures of the corpus."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from conformance.app.context import load_context
from conformance.app.scan.api import load_api
from conformance.app.scan.changes import scan
from conformance.corpus.behaviour_changes import load_families
from conformance.errors import UsageError
from conformance.golden.store import GoldenStore
from conformance.report.scan.text import make_scan_json, render_scan
from conformance.scan.hits import HitKind
from conformance.scan.scopes import RESULT
from conformance.scan.touches import IMPORT, OPTION, parse_touch

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
import jax
import jax.numpy as jnp
from .compat import tree_map


def step(x):
    x = jnp.clip(x, a_min=0)
    return tree_map(jnp.sum, x)


jax.config.update("jax_pmap_no_rank_reduction", True)
"""
COMPAT = "from jax import tree_map\n"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A package of two modules, and a file that is no Python."""
    package = tmp_path / "train"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "steps.py").write_text(SOURCE)
    (package / "compat.py").write_text(COMPAT)
    return package


def test_hits_are_those_of_the_corpus(code: Path) -> None:
    """With their releases and places."""
    result = scan([code], "0.5.3", "0.12.0.1")
    found = {(one.hit.kind, one.hit.name): (one.file.name, one.line, one.hit.release)
             for one in result.hits}  # fmt: skip
    assert found[HitKind.REMOVED, "jax.tree_map"] == ("compat.py", 1, "0.6.0")
    assert found[HitKind.SIGNATURE, "jax.numpy.clip"] == ("steps.py", 8, "0.10.0")
    assert (result.files, result.lines) == (3, 13)
    text = "\n".join(render_scan(result))
    assert "`jax.numpy.clip` has no parameter `a_min` (0.10.0)" in text
    assert "Write `jnp.clip(x, low, high)`, by position." in text
    assert text.splitlines()[-1].startswith("0.5.3 -> 0.12.0.1: 3 files, 13 lines")
    rows = make_scan_json(result)["hits"]
    assert {row["kind"] for row in rows} >= {"removed", "signature"}
    assert all(row["loud"] for row in rows if row["kind"] == "removed")


def test_a_shorter_way_has_fewer_hits(code: Path) -> None:
    """Only what changes between the ends counts."""
    result = scan([code], "0.5.3", "0.6.0")
    assert HitKind.SIGNATURE not in {one.hit.kind for one in result.hits}
    assert scan([code / "steps.py"], "0.11.2", "0.12.0").hits == []


def test_a_file_that_is_no_python_is_named(code: Path) -> None:
    """The others are scanned."""
    (code / "broken.py").write_text("def (")
    result = scan([code], "0.5.3", "0.6.0")
    (problem,) = result.unreadable.values()
    assert problem.startswith("is no Python source")
    assert result.hits


@pytest.mark.parametrize(
    ("names", "ends", "words"),
    [
        (["missing"], ("0.5.3", "0.6.0"), "does not exist"),
        (["empty"], ("0.5.3", "0.6.0"), "has no Python file"),
        (["train"], ("0.6.0", "0.5.3"), "expected an older and a newer release"),
        (["train"], ("0.6.0", "nonsense"), "nonsense"),
    ],
)
def test_bad_input_is_one_error(
    code: Path, names: list[str], ends: tuple[str, str], words: str
) -> None:
    """A path without Python, or ends in the wrong order."""
    (code.parent / "empty").mkdir()
    with pytest.raises(UsageError, match=words):
        scan([code.parent / name for name in names], *ends)


def test_many_files_are_read_by_several_processes(tmp_path: Path) -> None:
    """With the same hits."""
    for number in range(60):
        (tmp_path / f"script_{number}.py").write_text("import jax\njax.tree_map(f, x)\n")
    result = scan([tmp_path], "0.5.3", "0.6.0")
    assert len(result.hits) == result.files == 60


def test_lines_of_the_history_are_about_public_names() -> None:
    """Of some release; options are names, too."""
    context = load_context()
    api = load_api(context, GoldenStore(context.project.cases), [*context.releases.versions])
    families = load_families(context.project.cases).values()
    touches = {text for one in families for change in one.change for text in change.touches}
    parsed = [*map(parse_touch, touches)]
    written = {one.name.partition(RESULT)[0].removeprefix(IMPORT) for one in parsed}
    names = written | {one.other for one in parsed} - {""}
    assert [
        name for name in names if not name.startswith(OPTION) and api.resolve(name) is None
    ] == []


def test_notebooks_are_scanned(tmp_path: Path) -> None:
    """A hit has its cell, as has an error of the syntax."""
    cells = [["%pip install jax\n", "import jax\n"], ["# maps\n", "jax.tree_map(f, x)"]]
    notebook = {"cells": [{"cell_type": "code", "source": source} for source in cells]}
    (tmp_path / "train.ipynb").write_text(json.dumps(notebook, indent=1))
    notebook["cells"][1]["source"] = ["x = 1\n", "def ("]
    (tmp_path / "broken.ipynb").write_text(json.dumps(notebook, indent=1))
    result = scan([tmp_path], "0.5.3", "0.6.0")
    assert [place.place for place in result.hits] == [f"{tmp_path / 'train.ipynb'}:cell 2:2"]
    (problem,) = result.unreadable.values()
    assert problem.endswith("(cell 2, line 2)")


SHARDED = """
import jax
from jax.experimental.shard_map import shard_map

def descend(w, x):
    w = jax.lax.while_loop(lambda w: w.sum() > 0, lambda w: w - 1, w)
    return jax.grad(lambda w: jax.lax.psum(w @ x, "i"))(w)

step = shard_map(descend, mesh, specs, specs)
gradient = jax.grad(step)
"""


def test_patterns_are_hits_where_they_apply(tmp_path: Path) -> None:
    """A gradient within a map has other values in 0.6.0; that its loop is accepted is no hit."""
    (tmp_path / "train.py").write_text(SHARDED)
    hits = scan([tmp_path], "0.5.3", "0.6.0").hits
    silent = [one for one in hits if one.hit.kind is HitKind.BEHAVIOUR and not one.hit.is_loud]
    assert {one.hit.name for one in silent} == {"jax.grad"}
    assert {one.line for one in silent} == {7}
    assert not any("`while_loop`" in one.hit.text for one in hits)
    every = scan([tmp_path], "0.5.3", "0.6.0", every=True).hits
    assert any("`while_loop` inside `shard_map` is accepted" in one.hit.text for one in every)


def test_a_change_that_was_taken_back_is_no_hit(tmp_path: Path) -> None:
    """`argmax` within a map was refused in 0.6.0 alone."""
    source = SHARDED.replace("jax.lax.psum(w @ x, 'i')", "x").replace(
        "w - 1", "jax.numpy.argmax(w)"
    )
    (tmp_path / "train.py").write_text(source)
    refused = "`jnp.argmax` and `jnp.argmin` of values that vary raise"
    found = {
        new: any(refused in one.hit.text for one in scan([tmp_path], "0.5.3", new).hits)
        for new in ("0.6.0", "0.6.1")
    }
    assert found == {"0.6.0": True, "0.6.1": False}
