"""`conformance repro` writes a file that ends as the case did, without the harness."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.judge.errors import make_signature
from tests.projects import ENVIRONMENT, RELEASE, ROOT
from tests.workbench import planned_cell, python_of

from .packages import package_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import MakeProject
    from tests.projects import Project

CASES = '''\
from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
from conformance.kit import Observed, Program, budget, deviation, probe, program, raises
from conformance.kit import strategies as st
from conformance.kit.laws import check_same
from flax import nnx

from ._helpers import P, loud


class Layer(nnx.Module):
    def __init__(self, rngs):
        self.linear = nnx.Linear(2, 2, rngs=rngs)


@program(
    devices=2,
    params={"fits": {"size": 2}, "does_not": {"size": 3}},
    deviations=[deviation(params=["does_not"], error="ValueError", issue="a/b#1")],
)
def sharded(env, size):
    """Rows are divided evenly ```or not``` at all."""
    # which the mapping itself finds out
    f = env.compat.shard_map(
        lambda x: 2 * x, mesh=env.mesh(2, "x"), in_specs=P("x"), out_specs=P("x")
    )
    return Program(f, args=(env.rng(0).random(size, np.float32),), reference=lambda x: 2 * x)


@program()
def wrong(env):
    return Program(lambda x: x + 1, args=(np.zeros(3, np.float32),), reference=np.ones(3) * 2)


@program(budgets=[budget("cpu", 1, leaves=["one"], reason="a"), budget("cpu", 9, reason="b")])
def off(env):
    x = np.float32([0.5])
    half = {"nine": np.ones(1) / 2, "one": np.ones(1) / 2}
    return Program(lambda x: {"nine": x + 4e-7, "one": x + 2e-7}, args=(x,), reference=half)


@program()
def refused(env):
    return Program(lambda x: x + np.ones(4), (np.ones(3),), reference=raises("TypeError", "shapes"))


@program()
def accepted(env):
    return Program(lambda x: x + 1, (np.ones(3),), reference=raises("TypeError"))


@probe(given={"x": st.arrays("float32", 12), "n": st.integers(0, 9)})
def law(env, x, n):
    """A long example."""
    check_same(jnp.float32(n > 3) + x[0] * 0, np.float64(0))


@program(given={"x": st.arrays("float32", 2)}, same_as=("eager", "jit"))
def program_law(env, x):
    return Program(lambda x: x if isinstance(x, jax.core.Tracer) else abs(x), (x,))


@probe()
def mapped(env):
    return Observed(jax.tree_map(lambda x: x + 1, np.float32(1)), reference=np.float32(2))


@probe(devices=2)
def seen(env):
    """How many there are."""
    return Observed(loud(str(len(env.devices))), reference="2!")


@probe(timeout=2)
def hung(env):
    time.sleep(60)


@program()
def layer(env):
    model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    return Program(lambda x: model(x) * 0, args=(np.ones((1, 2)),), reference=np.zeros((1, 2)))


@program(devices=4, same_as=["jit", "eager", "aot", "vmap_of_one", "unsharded"])
def every_way(env):
    mesh = env.mesh(4, "x")
    f = env.compat.shard_map(
        lambda x, n: jax.lax.psum(x.sum(), "x") + n * x,
        mesh=mesh,
        in_specs=(P("x"), P()),
        out_specs=P("x"),
    )
    x = env.put(np.arange(8, dtype=np.float32), jax.sharding.NamedSharding(mesh, P("x")))
    return Program(f, (x, 3.0), jit={"donate_argnums": 0}, reference=lambda x, n: x.sum() + n * x)


@program(same_as=["jit", "eager"])
def another_way(env):
    return Program(lambda x: x + isinstance(x, jax.core.Tracer), (np.zeros(3, np.float32),))


@program(devices=2, same_as=["jit", "unsharded"])
def one_device(env):
    mesh = env.mesh((2, 1), ("x", "y"))
    return Program(lambda x: x + mesh.size, args=(np.zeros(3, np.float32),))


@program(same_as=["vmap_of_one"])
def with_statics(env):
    def fn(n, x):
        return x + (x.ndim if isinstance(n, str) else n)

    return Program(fn, args=(1, np.zeros(3, np.float32)), jit={"static_argnums": 0})


@program(devices=4, platforms=["tpu"], facts={"collectives": {"all-gather": 1}})
def summed(env):
    f = env.compat.shard_map(
        lambda x: jax.lax.psum(x, "x"), mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=P()
    )
    return Program(f, args=(jnp.ones((8, 128)),))
'''
HELPERS = """\
from jax.sharding import PartitionSpec as P  # noqa: F401


def loud(text):
    return f"{text}!"
"""
TPU = f"jax{RELEASE}-tpu:v5e:2x2"


@pytest.fixture
def project(new_project: MakeProject) -> Project:
    """A project with cases of every ending, and the lock of a TPU cell."""
    lock = f"matrix/locks/{ENVIRONMENT}-tpu.txt"
    return new_project({
        "cases/family/topic.py": CASES,
        "cases/family/_helpers.py": HELPERS,
        lock: (ROOT / lock).read_text(),
    })  # fmt: skip


def run_alone(file: Path, selector: str = RELEASE) -> tuple[int, str]:
    """Run a file with the interpreter of a cell, as a user would; return its status and output."""
    python = python_of(planned_cell(selector))
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("PYTHON", "JAX", "XLA"))}
    done = subprocess.run(
        [python, file], env=kept, cwd=file.parent, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long(keep=2)
@pytest.mark.cell
@pytest.mark.parametrize(
    ("case", "code", "message"),
    [
        ("sharded[fits]", 0, "expected: "),
        ("refused", 0, "seen, as expected: TypeError"),
        ("seen", 0, "seen: 2!"),
        ("layer", 0, "expected: "),
        ("every_way", 0, "\nunsharded: "),
        ("another_way", 1, "AssertionError: \nNot equal to tolerance rtol=2e-05, atol=0"),
        ("one_device", 1, "\njit: [2. 2. 2.]\nunsharded: [1. 1. 1.]\n"),
        ("hung", 1, "Timeout (0:00:02)!"),
        ("law", 1, "LawError: out differs, first: 1.0 against 0.0"),
        ("program_law", 1, "\neager: [1. 1.]\n"),
        ("off", 1, "AssertionError: out['one'] is 3 ulp off, expected at most 1"),
        ("wrong", 1, "AssertionError: \nNot equal to tolerance rtol=2e-05, atol=4e-06"),
        ("accepted", 1, "AssertionError: ran, expected Raises(type='TypeError', match='')"),
    ],
)
def test_repro_file_ends_as_the_case_did(
    project: Project, case: str, code: int, message: str
) -> None:
    """It does not import the harness, and satisfies a formatter and a linter."""
    ending = project.run(
        "repro", f"family/{case}", "--cell", "0.6.2", "--out", "bug.py", "--no-check"
    )
    assert ending.code == 0, ending.err
    file = project.path / "bug.py"
    assert "conformance" not in re.sub(r"^#.*$", "", file.read_text(), flags=re.MULTILINE)
    got, text = run_alone(file)
    assert (got, message in text) == (code, True), text
    for command in (
        ("check", "--select", "F,E9"),
        ("format", "--check", "--line-length", "100"),
    ):
        arguments = [sys.executable, "-m", "ruff", *command, "--isolated", "--no-cache", file]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


@pytest.mark.cell
def test_repro_names_variants_that_it_cannot_assert(project: Project) -> None:
    """A plain call cannot express a variant with static arguments."""
    ending = project.run("repro", "family/with_statics", "--cell", "0.6.2", "--no-check")
    assert ending.code == 0, ending.err
    expected = "it does not assert same_as vmap_of_one, which only the harness can check\n"
    assert expected in ending.err
    (file,) = project.path.glob("repro_*.py")
    assert "# not asserted below: same_as vmap_of_one, which only" in file.read_text()


@pytest.mark.long
@pytest.mark.cell
def test_repro_raises_the_recorded_signature(project: Project) -> None:
    """The issue text quotes a docstring that contains a code fence."""
    run = project.path / "run"
    case = "family/sharded[does_not]"
    project.run("run", case, "--cell", "0.6.2", "--run", run)
    (record,) = _records(run)
    ending = project.run(
        "repro", case, "--cell", "0.6.2", "--run", run, "--issue", "--json", "told.json"
    )
    assert ending.code == 0, ending.err
    data = json.loads((project.path / "told.json").read_text())
    assert data["cell"] == "jax0.6.2-py311-cpu8"
    assert data["command"] == f"uv run {data['file']}"
    code, text = run_alone(project.path / data["file"])
    last = text.rstrip().rpartition("\nValueError: ")[2]
    assert code == 1
    assert make_signature("ValueError", last) == record["error"]["signature"]
    assert "\n````text\nRows are divided evenly ```or not``` at all.\n````\n" in ending.out
    assert "Known to be seen on every release (`a/b#1`)." in ending.out


@pytest.mark.long
@pytest.mark.cell
def test_repro_issue_has_the_first_bad_release(project: Project) -> None:
    """The steps of the search go to standard error."""
    ending = project.run(
        "repro", "family/mapped", "--cell", "0.6.1", "--good", "0.5.3", "--issue", "--no-check"
    )
    assert ending.code == 0, ending.err
    assert "\nfirst bad: jax 0.6.0, last good: 0.5.3 (bad: ends with AttributeError" in ending.out
    assert "0.6.0      bad      AttributeError" in ending.err


@pytest.mark.long
@pytest.mark.cell
def test_repro_fails_if_its_file_does_not_reproduce_the_case(project: Project) -> None:
    """The file is run without the harness first, unless `--no-check` is given."""
    noticed = """
import sys

from conformance.kit import Observed, probe


@probe()
def noticed(env):
    return Observed("conformance.kit" in sys.modules, reference=False)
"""
    project.write({"cases/family/noticed.py": noticed})
    arguments = ("repro", "family/noticed", "--cell", "0.6.2", "--out", "bug.py")
    ending = project.run(*arguments)
    assert ending.code == 1
    assert (
        "bug.py: does not show alone what family/noticed showed: it ends with exit status 0, "
        in (ending.error)
    )
    assert "expected AssertionError, for " in ending.error
    assert (project.path / "bug.py").exists()
    assert project.run(*arguments, "--no-check").code == 0


@pytest.mark.long
@pytest.mark.cell
def test_repro_of_a_function_embeds_unpublished_modules(new_project: MakeProject) -> None:
    """Only those of the package that are imported."""
    listed = """
[tool.conformance]
with = ["."]

[[tool.conformance.functions]]
function = "mine.losses:total"
arguments = [[3.0, 4.0]]

[[tool.conformance.functions]]
function = "mine.losses:refused"
arguments = [[3.0, 4.0]]
"""
    losses = """\
from .parts import square


def total(x):
    return square(x).sum()


def refused(x):
    return x + square("\\n")  # \"\"\"
"""
    modules = {
        "mine/__init__.py": "import mine.parts\n", "mine/losses.py": losses,
        "mine/parts.py": "def square(x):\n    return x * x\n", "mine/never.py": "",
    }  # fmt: skip
    project = new_project(package_files(modules, more=listed))
    (project.path / "cases").rmdir()
    ending = project.run("repro", "mine.losses:total", "--cell", "0.6.2", "--out", "bug.py")
    assert ending.code == 0, ending.err
    text = (project.path / "bug.py").read_text()
    assert "# It contains modules that no index has: mine/__init__.py, mine/losses.py," in text
    assert "mine/never.py" not in text
    assert "mine @" not in text
    assert run_alone(project.path / "bug.py")[0] == 0
    ending = project.run("repro", "mine.losses:refused", "--cell", "0.6.2", "--out", "bug.py")
    assert ending.code == 0, ending.err
    code, output = run_alone(project.path / "bug.py")
    assert (code, "TypeError: can't multiply sequence by non-int" in output) == (1, True), output


@pytest.mark.long
@pytest.mark.cell
def test_repro_requires_a_package_that_reads_its_own_files(new_project: MakeProject) -> None:
    """Embedded modules would behave differently without the package's metadata."""
    listed = '\n[tool.conformance]\nwith = ["."]\n\n[[tool.conformance.functions]]\n'
    listed += 'function = "mine:read"\njit = false\n'
    read = """\
from importlib.metadata import version


def read():
    return version("mine")
"""
    project = new_project(package_files({"mine.py": read}, more=listed))
    (project.path / "cases").rmdir()
    ending = project.run("repro", "mine:read", "--cell", "0.6.2", "--out", "bug.py")
    assert ending.code == 0, ending.err
    text = (project.path / "bug.py").read_text()
    assert "mine @ file:///" in text
    assert "# mine is a package on this machine, which others do not have." in text


@pytest.mark.long
@pytest.mark.cell
def test_repro_of_a_snapshot_call_embeds_the_script(new_project: MakeProject) -> None:
    """And the modules in its folder."""
    script = """\
import conformance
import jax.numpy as jnp
from beside import FACTOR

for by in (FACTOR, "a"):
    conformance.snapshot(jnp.multiply, jnp.ones(2), by)
    conformance.snapshot(lambda x: x + undefined, by)
"""
    project = new_project({"scripts/report.py": script, "scripts/beside.py": "FACTOR = 2\n"})
    select = "scripts/report.py::jnp_multiply"
    ending = project.run("repro", select, "--cell", "0.6.2", "--out", "bug.py")
    assert ending.code == 0, ending.err
    code, output = run_alone(project.path / "bug.py")
    assert (code, "seen: [2. 2.]" in output) == (0, True), output
    ending = project.run("repro", "scripts/report.py::jnp_mul", "--cell", "0.6.2")
    assert ending.code == 3
    assert "no snapshot is named jnp_mul (did you mean 'jnp_multiply'?)" in ending.error


def _records(run: Path) -> list[dict[str, dict[str, str]]]:
    return [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]


@pytest.mark.long
@pytest.mark.cell
def test_repro_file_compiles_for_a_tpu_without_the_hardware(project: Project) -> None:
    """The claim about its HLO fails as in the run."""
    ending = project.run(
        "repro", "family/summed", "--cell", "jax0.6.2-tpu:v5e:2x2", "--out", "bug.py", "--no-check"
    )
    assert ending.code == 0, ending.err
    assert '#     "libtpu==' in (project.path / "bug.py").read_text()
    code, text = run_alone(project.path / "bug.py", TPU)
    assert (code, "AssertionError: {'all-reduce': 1}" in text) == (1, True), text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("family/nothing", "--cell", "0.6.2"), 3, "no case matches family/nothing"),
        (
            ("tests/test_a.py::test_b", "--cell", "0.6.2"),
            2,
            "is a test of a suite, expected a case",
        ),
        (("family/sharded", "--cell", "0.6.2"), 2, "family/sharded is 2 cases, expected one"),
        (("family/wrong", "--cell", ">=0.6"), 2, "cells, expected one, e.g. of jax0.6.0"),
        (("family/summed", "--cell", "0.6.2"), 3, "runs on tpu, the cell is cpu"),
        (
            ("family/sharded[fits]", "--cell", "0.6.2@cpu-mp2"),
            2,
            "a file of its own is one process",
        ),
        (("family/wrong", "--cell", "0.6.2", "--out", "no/x.py"), 2, "--out no/x.py: cannot be"),
        (
            ("family/wrong", "--cell", "0.6.2", "--out", "-", "--issue"),
            2,
            "--out - and --issue both print",
        ),
        (("family/wrong", "--cell", "0.6.2", "--run", "none"), 2, "none: no such run, expected"),
        (
            ("family/wrong", "--cell", "0.6.2", "--good", "0.6.0"),
            2,
            "--good 0.6.0: goes with --issue",
        ),
    ],
)
def test_invalid_arguments_of_repro_are_refused_before_any_job(
    project: Project, arguments: tuple[str, ...], code: int, message: str
) -> None:
    """One line each."""
    ending = project.run("repro", *arguments)
    assert (ending.code, message in ending.error) == (code, True), ending.err
