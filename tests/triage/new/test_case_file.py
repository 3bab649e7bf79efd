"""Cases in their files: rendered, appended, formatted."""

from __future__ import annotations

import ast
import subprocess
from typing import TYPE_CHECKING

import pytest
from ruff import find_ruff_bin

from conformance.triage.new.case_file import (
    Declarations,
    append_case,
    create_file,
    find_clashes,
    format_file,
    render_case,
)
from conformance.triage.new.draft import Draft, DraftOptions
from conformance.triage.repro.layout import WIDTH
from tests.projects import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TOPICS = sorted((ROOT / "cases").glob("*/[!_]*.py"))
DRAFT = Draft(
    options=DraftOptions(),
    body="return Observed(functools.reduce(jnp.add, np.ones(3)))",
    states_reference=False,
    outer={"jnp": "import jax.numpy as jnp", "np": "import numpy as np",
           "functools": "import functools"},
)  # fmt: skip


def text_of(draft: Draft = DRAFT, keywords: Mapping[str, object] | None = None) -> str:
    """Return the function of a case."""
    declarations = Declarations(
        doc="What it is about.", keywords=keywords or {}, deviations=("deviation()",)
    )
    return render_case(draft, "added", declarations)


def test_long_first_lines_of_docstrings_are_wrapped() -> None:
    """Every line has room for its indentation and the quotes."""
    for length in range(80, 110):
        doc = " ".join(["ab"] * (length // 3)) + "c" * (length % 3) + "."
        text = render_case(DRAFT, "added", Declarations(doc=doc, keywords={}, deviations=()))
        assert max(map(len, text.splitlines())) <= WIDTH


@pytest.mark.long(keep=15)
@pytest.mark.parametrize("file", TOPICS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_appending_a_case_keeps_other_statements(file: Path) -> None:
    """Every statement except imports is unchanged; imports are where a sorter leaves them."""
    before = file.read_text()
    after = append_case(before, text_of(), DRAFT)
    old, new = ast.parse(before).body, ast.parse(after).body
    kept = [ast.get_source_segment(before, node) for node in old if not _imports(node)]
    now = [ast.get_source_segment(after, node) for node in new if not _imports(node)]
    assert now[:-1] == kept
    assert _bound(old) | {"jnp", "np", "functools", "probe", "Observed", "deviation"} == _bound(new)
    command = [find_ruff_bin(), "check", "--select", "I", "--stdin-filename", str(file), "-"]
    done = subprocess.run(command, input=after, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def _imports(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _bound(body: list[ast.stmt]) -> set[str]:
    nodes = (node for node in body if isinstance(node, ast.Import | ast.ImportFrom))
    return {alias.asname or alias.name for node in nodes for alias in node.names}


@pytest.mark.parametrize(
    ("keywords", "first"),
    [
        ({}, "@probe()"),
        ({"devices": 4, "source": "a/b#1"}, '@probe(devices=4, source="a/b#1")'),
        ({"xla_flags": ["--flag=" + "x" * 90]}, "@probe("),
    ],
)
def test_decorator_is_one_line_if_it_fits(keywords: Mapping[str, object], first: str) -> None:
    """Otherwise each argument is on a separate line."""
    lines = render_case(DRAFT, "added", Declarations(doc="It.", keywords=keywords)).splitlines()
    assert lines[0] == first
    assert any(line.startswith("def added(env):") for line in lines)


def test_new_file_passes_the_linter(tmp_path: Path) -> None:
    """Findings in the code of the script are marked with `noqa`."""
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    draft = Draft(
        options=DraftOptions(),
        body="f = lambda x: x\nx=   1\ndef g(): return f\nassert x\nreturn Observed(str(  x ))",
        states_reference=False,
        inner=("from jax import tree_map",),
    )
    file = tmp_path / "cases" / "family" / "topic.py"
    text = format_file(create_file(text_of(draft), draft, "Topic."), file)
    file.parent.mkdir(parents=True)
    file.write_text(text)
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [find_ruff_bin(), *command, file],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
    assert "    x = 1\n" in text


def test_added_imports_are_sorted() -> None:
    """Names of one module are in one statement, except names with `as`."""
    file = (
        "from __future__ import annotations\n\nimport jax\n"
        "from jax.sharding import PartitionSpec as P\n\nfrom conformance.kit import probe\n"
    )
    lines = {
        "N": "from jax.sharding import NamedSharding",
        "S": "from jax.sharding import PartitionSpec",
        "functools": "import functools",
        "np": "import numpy as np",
    }
    draft = Draft(options=DraftOptions(), body="", states_reference=False, outer=lines)
    text = "@probe(deviations=[deviation()])\ndef added(env):\n    return Observed(1)\n"
    assert append_case(file, text, draft).removesuffix(f"\n\n\n{text}") == (
        "from __future__ import annotations\n\nimport functools\n\nimport jax\n"
        "import numpy as np\nfrom jax.sharding import NamedSharding, PartitionSpec\n"
        "from jax.sharding import PartitionSpec as P\n\n"
        "from conformance.kit import Observed, deviation, probe"
    )


def test_clashing_imports_are_found() -> None:
    """A file may bind the name to something else."""
    assert find_clashes("import jax.numpy as np\nimport functools\n", DRAFT) == {"np"}
    assert find_clashes("def jnp():\n    pass\n", DRAFT) == {"jnp"}
    assert find_clashes("", DRAFT) == set()
