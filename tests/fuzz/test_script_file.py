"""Scripts of findings: run by the Python of a cell, without the harness."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from conformance.fuzz.batches import FILE
from conformance.fuzz.finding import Finding
from conformance.fuzz.script_file import MODES, TITLES, render_script
from tests.workbench import NEWEST, planned_cell, python_of

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

def body(x0):
    v1 = jnp.sin(x0)
    return v1

function = body
args = (
    np.array([0.0, 1.0, 2.0, 3.0], "float32"),
)
"""
TWIN = "import numpy as np\n\ndef reference(x0):\n    v1 = np.sin(x0)\n    return v1\n"
FINDING = Finding(
    id="abc", oracle="release", kind="value", detail="float32", example="",
    operations=("jnp.sin",), transforms=("vmap",), releases=("0.12.0",), script=SCRIPT, twin=TWIN,
    choices="00",
)  # fmt: skip
RESULT = r"\[0\. +0\.84147\d+ +0\.90929\d+ +0\.14112\d* *\]"


def make_finding(**changes: Any) -> Finding:
    """Return a finding with other fields."""
    fields = {name: getattr(FINDING, name) for name in FINDING.__struct_fields__}
    return Finding(**(fields | changes))


def run(folder: Path, finding: Finding) -> subprocess.CompletedProcess[str]:
    """Run the script of a finding with the newest release."""
    file = folder / "program.py"
    file.write_text(render_script(finding))
    python = python_of(planned_cell(NEWEST))
    return subprocess.run([python, file], capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.long(keep=1)
@pytest.mark.cell
@pytest.mark.parametrize("oracle", ["numpy", "eager", "vmap", "sharded", "remat", "export"])
def test_a_script_prints_both_ways(tmp_path: Path, oracle: str) -> None:
    """Each with its name, and the version of jax apart from them."""
    ended = run(tmp_path, make_finding(oracle=oracle))
    assert ended.returncode == 0, ended.stderr
    assert re.fullmatch(f"jit: {RESULT}\n{TITLES[oracle]}: {RESULT}\n", ended.stdout)
    assert re.search(r"^jax \d", ended.stderr, re.MULTILINE)


@pytest.mark.long(keep=1)
@pytest.mark.cell
@pytest.mark.parametrize(
    ("changes", "printed"),
    [
        ({"kind": "dtype"}, r"\['float32'\]"),
        ({"kind": "weak type"}, r"\[False\]"),
        ({"kind": "sharding"}, r"\[\['\(slice\(None, None, None\),\)'\]\]"),
        ({"x64": True, "script": SCRIPT.replace("float32", "float64")},
         r"\[0\. +0\.8414709848\d+ [^\]]*\]"),
        ({"script": SCRIPT + "def launch(function, args):\n    return 7\n"}, "7"),
        ({"script": SCRIPT + "print(len(jax.devices()))\n"}, f"4\n{RESULT}"),
    ],
)  # fmt: skip
def test_a_script_has_the_settings_of_the_campaign(
    tmp_path: Path, changes: dict[str, Any], printed: str
) -> None:
    """Devices, 64-bit types and the launch; the last line shows what differs."""
    ended = run(tmp_path, make_finding(**changes))
    assert ended.returncode == 0, ended.stderr
    assert re.search(f"{printed}\n\\Z", ended.stdout), ended.stdout


@pytest.mark.cell
def test_an_error_ends_a_script(tmp_path: Path) -> None:
    """With its traceback."""
    ended = run(tmp_path, make_finding(script=SCRIPT.replace("jnp.sin(x0)", "jnp.sin()")))
    assert ended.returncode == 1
    assert "TypeError" in ended.stderr


def test_a_script_imports_what_it_uses() -> None:
    """The program of a campaign has the same imports for all."""
    script = render_script(FINDING)
    assert "import jax.numpy as jnp\n" in script
    assert "from jax import lax" not in script


def test_a_script_knows_each_mode() -> None:
    """Those of the case file of batches."""
    table = FILE.read_text().partition("MODES: ")[2]
    assert set(re.findall(r'^    "(\w+)": ', table, re.MULTILINE)) == {*MODES}
