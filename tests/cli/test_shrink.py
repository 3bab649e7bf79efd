"""`conformance shrink` of cases that raise, are wrong or state a fact, and of scripts."""

from __future__ import annotations

import ast
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.runs.directory import RunDirectory
from tests.projects import HEAD, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Project

    from .conftest import MakeProject

CASES = f'''\
import time
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

{HEAD}

from ._helpers import mapped, start

SHARDS = 4


@program(devices=SHARDS_, params={{"zeros": {{"kind": "zeros"}}, "given": {{"kind": "given"}}}})
def loop(env, kind):
    """A loop whose carry begins as the same everywhere and does not stay so."""
    # the shape is that of a shard
    def run(u):
        return lax.fori_loop(0, 3, lambda _, carry: carry + u, start(u, kind))

    return Program(mapped(env, run, SHARDS), args=(env.rng(0).random(16),),
                   reference=lambda u: 3 * u)


@program(devices=SHARDS_)
def step(env):
    """A gradient of a replicated parameter, summed twice on some releases."""
    def local(w, x):
        return lax.pmean(jax.grad(lambda w: (x * w).sum() / 3)(w), "x")

    f = env.compat.shard_map(
        local, mesh=env.mesh(SHARDS, "x"), in_specs=(P(), P("x")), out_specs=P())
    x = env.rng(1).normal(size=8)
    return Program(f, args=(np.float32(2), x), reference=lambda w, x: x.sum() / 12)


@program(devices=SHARDS_)
def totals(env):
    """Sums over shards, of which one is asked about."""
    def run(x):
        y = jnp.linalg.norm(x)
        return lax.psum(x, "x") + lax.pmax(jnp.where(y > 1, x, y), "x")

    f = env.compat.shard_map(run, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P())
    return Program(f, args=(np.linspace(0, 1, 32),))


@program()
def middle(env):
    """A median, which a library makes of many operations."""
    return Program(lambda x: jnp.median(x) + 1, args=(np.ones(5, np.float32),))


@program()
def right(env):
    return Program(lambda x: x + 1, args=(np.zeros(3, np.float32),), reference=np.ones(3))


@program()
def unknown(env):
    return Program(lambda x: x + 1, args=(np.zeros(3, np.float32),))


@program(same_as=["jit", "eager"])
def traced(env):
    return Program(
        lambda x: x + isinstance(x, jax.core.Tracer), args=(np.zeros(3, np.float32),),
        reference=np.ones(3))


@program()
def always_wrong(env):
    return Program(lambda x: x + 1, args=(np.zeros(3, np.float32),), reference=np.zeros(3))


@probe(params={{"second": {{"at": 2}}, "fourth": {{"at": 4}}}})
def flaky(env, at):
    with Path("TURNS_").open("a") as turns:
        turns.write(".")
        turn = turns.tell()
    if turn < at:
        raise ValueError("at first")
    raise TypeError("later")


@probe()
def at_home(env):
    if __name__.endswith("topic"):
        raise ValueError("at home")


@probe()
def slow(env):
    time.sleep(1.4)
    values = [len(str(n)) for n in range(4)]
    if sum(values) > 3:
        raise ValueError("late")
'''.replace("SHARDS_", "4")
HELPERS = """\
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def mapped(env, f, shards):
    mesh = env.mesh(shards, "x")
    return env.compat.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))


def start(u, kind):
    return {"zeros": lambda: jnp.zeros(u.shape, u.dtype), "given": lambda: 0 * u}[kind]()
"""
OTHER = "jax0.5.3-py311"


SLOWER = f"""\
{HEAD}

import jax.numpy as jnp
from jax import lax


@program(devices=1, sizes=(10, 20, 40))
def slower(env, size):
    steps = 1_000 if env.cell.release == "0.6.2" else 1
    y = jnp.tanh(np.float32(3))
    return Program(lambda x: lax.fori_loop(0, size * steps, lambda i, x: x[::-1], x) + y,
                   args=(np.ones(8, np.float32),))
"""
"""A case that takes longer on one release."""


@pytest.fixture
def project(new_project: MakeProject, tmp_path: Path) -> Project:
    """A project with cases of every kind, and the lock of a second release."""
    lock = f"matrix/locks/{OTHER}.txt"
    return new_project({
        "cases/family/topic.py": CASES.replace("TURNS_", str(tmp_path / "turns")),
        "cases/family/_helpers.py": HELPERS,
        lock: (ROOT / lock).read_text(),
    })  # fmt: skip


def shrink(project: Project, *arguments: str) -> dict[str, Any]:
    """Shrink a case completely, and return the JSON."""
    ending = project.run("shrink", *arguments, "--json", "-", "--probes", "1000")
    assert ending.code == 0, ending.err
    answer: dict[str, Any] = ending.json
    assert answer["confirmed"], answer
    assert answer["complete"], answer
    return answer


def run_shrunk(project: Project, text: str, *cells: str) -> list[Any]:
    """Run the shrunk text as a case of the project in some cells, and return the records."""
    project.write({"left/family/left.py": text})
    given = [option for cell in cells for option in ("--cell", cell)]
    project.run("run", "left", *given, "--run", "run")
    return sorted(project_records(project), key=lambda record: record.cell, reverse=True)


def project_records(project: Project) -> list[Any]:
    """Return the records of the last run."""
    return [*RunDirectory(project.path / "run").read_records()]


@pytest.mark.cell
def test_shrunk_case_raises_the_same_error(project: Project) -> None:
    """A parametrised case with helpers and constants becomes one file for one device."""
    answer = shrink(project, "family/loop[zeros]", "--bad", "0.6.2", "--good", "0.5.3")
    assert answer["kept"].startswith("TypeError: scan body function carry input and carry output")
    assert (answer["before"]["devices"], answer["after"]["devices"]) == (4, 1)
    text = answer["text"]
    assert answer["after"]["lines"] < answer["before"]["lines"], text
    for gone in ("_helpers", "SHARDS", "reference", "random", "16", '"""'):
        assert gone not in text, text
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--check", "--isolated", "--line-length=100", "-"],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, text
    bad, good = run_shrunk(project, text, "0.6.2", "0.5.3")
    assert (bad.error.type, good.outcome) == ("TypeError", "ok")


@pytest.mark.long
@pytest.mark.cell
def test_shrunk_case_asserts_the_value_of_the_good_cell(project: Project) -> None:
    """The case and the file for upstream."""
    answer = shrink(
        project, "family/step", "--bad", "0.6.2", "--good", "0.5.3", "--repro", "bug.py"
    )
    assert answer["alone"]
    assert answer["after"]["devices"] == 2
    assert answer["after"]["equations"] < answer["before"]["equations"]
    assert answer["after"]["elements"] <= answer["before"]["elements"] / 3
    bad, good = run_shrunk(project, answer["text"], "0.6.2", "0.5.3")
    assert (bad.conformance, good.conformance) == ("deviates", "conforms")
    file = (project.path / "bug.py").read_text()
    assert "# /// script" in file
    assert "conformance" not in "\n".join(one for one in file.splitlines() if one[:1] != "#")
    ast.parse(file)


@pytest.mark.long
@pytest.mark.cell
def test_shrunk_case_keeps_the_fact(project: Project) -> None:
    """Unrelated operations are removed, also those made by a library."""
    fact = ("--fact", "collectives.all-reduce")
    before = project.run("shrink", "family/totals", "--bad", "0.6.2", *fact, "--out", "left.py")
    assert before.code == 0, before.err
    assert "kept: fact collectives.all-reduce is 2" in before.err
    text = (project.path / "left.py").read_text()
    assert "psum" in text
    assert "linalg" not in text
    (record,) = run_shrunk(project, text, "0.6.2")
    assert record.facts["collectives"] == {"all-reduce": 2}


@pytest.mark.cell
@pytest.mark.long
def test_shrink_replaces_a_library_call_by_its_equations(project: Project) -> None:
    """If fewer equations remain that way."""
    answer = shrink(project, "family/middle", "--bad", "0.6.2", "--fact", "dtypes")
    assert answer["generator"] == "jaxpr"
    assert answer["after"]["equations"] < answer["before"]["equations"] / 4
    assert "median" not in answer["text"]
    assert "lax.sort" in answer["text"]
    (record,) = run_shrunk(project, answer["text"], "0.6.2")
    assert record.facts["dtypes"] == ["f32", "pred", "s32"]


@pytest.mark.cell
@pytest.mark.long
def test_shrink_keeps_how_much_longer_a_case_takes(new_project: MakeProject) -> None:
    """At its largest size; what costs nothing is removed."""
    project = new_project({"cases/loops/topic.py": SLOWER})
    ends = ("--bad", "0.6.2", "--good", "0.6.0", "--phase", "run")
    ending = project.run("shrink", "loops/slower", *ends, "--probes", "30")
    assert ending.code == 0, ending.err
    assert re.search(r"kept: takes [\d.]+ times the time of phase run of the other", ending.err)
    assert "jnp.tanh" not in ending.out
    assert 'env.cell.release == "0.6.2"' in ending.out


@pytest.mark.long(keep=5)
@pytest.mark.cell
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("family/nothing", "--bad", "0.6.2"), 3, "no case matches family/nothing"),
        (("family/loop", "--bad", "0.6.2"), 2, "family/loop is 2 cases, expected one"),
        (("family/right", "--bad", ">=0.6"), 2, "cells, expected one"),
        (("family/right", "--bad", "0.6.2"), 2, "conforms on jax0.6.2-py311-cpu8: nothing"),
        (("family/unknown", "--bad", "0.6.2"), 2, "and has no reference or claim"),
        (("family/traced", "--bad", "0.6.2"), 2, "deviates only in eager, of its same_as: a"),
        (
            ("family/always_wrong", "--bad", "0.6.2", "--good", "0.5.3"),
            2,
            "needs a cell in which it conforms",
        ),
        (("family/always_wrong", "--bad", "0.6.2", "--good", "none"), 2, "none is known"),
        (("family/right", "--bad", "0.6.2", "--good", "0.6.2"), 2, "the same cell twice"),
        (("family/right", "--bad", "0.6.2", "--fact", "colour"), 2, "no such fact, expected one"),
        (
            ("family/right", "--bad", "0.6.2", "--phase", "run", "--memory"),
            2,
            "--phase run and --memory: expected one of them",
        ),
        (("family/right", "--bad", "0.6.2@cpu-mp2"), 2, "several processes; name one"),
        (("family/at_home", "--bad", "0.6.2", "--good", "none"), 2, "outside its file"),
        (
            ("family/flaky[second]", "--bad", "0.6.2", "--good", "none"),
            2,
            "is flaky: 1 of 3: ValueError: at first; 2 of 3: TypeError: later",
        ),
        (
            ("family/flaky[fourth]", "--bad", "0.6.2", "--good", "none"),
            2,
            "is flaky: 3 of 4: ValueError: at first; 1 of 4: TypeError: later",
        ),
    ],
)  # fmt: skip
def test_shrink_refuses_what_it_cannot_shrink(
    project: Project, arguments: tuple[str, ...], code: int, message: str
) -> None:
    """Nothing to keep, no way to judge, several cases or cells, flaky cases."""
    ending = project.run("shrink", *arguments)
    assert (ending.code, message in ending.err) == (code, True), ending.err


@pytest.mark.long
@pytest.mark.cell
def test_shrink_stops_at_its_number_of_probes(project: Project) -> None:
    """The smallest case so far is confirmed and written."""
    ending = project.run(
        "shrink", "family/loop[zeros]", "--bad", "0.6.2", "--good", "none", "--probes", "5",
        "--out", "left.py",
    )  # fmt: skip
    assert ending.code == 0, ending.err
    assert "5 probes in" in ending.err
    assert "more may be cut: --probes, --timeout" in ending.err
    assert "confirmed: a fresh worker shows the same" in ending.err
    ast.parse((project.path / "left.py").read_text())


@pytest.mark.cell
def test_interrupted_shrink_writes_the_smallest_case_so_far(project: Project) -> None:
    """Status 130."""
    options = ("--bad", "0.6.2", "--good", "none", "--out", "left.py", "--jobs", "1")
    process = project.start("shrink", "family/slow", *options)
    assert process.stderr is not None
    before = []
    for line in process.stderr:
        before.append(line)
        if "lines after" in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, before
    assert "interrupted: the smallest so far" in err
    assert "def slow(env)" in (project.path / "left.py").read_text()


RANKS = """\
import os
import jax
import jax.numpy as jnp

with jax.numpy_rank_promotion("raise"):
    total = 2
    jnp.vectorize(jnp.add)(jnp.ones((1, 1)), jnp.ones(1))
"""


@pytest.mark.cell
@pytest.mark.long
def test_shrunk_script_fails_in_the_same_release_only(project: Project) -> None:
    """It is one file that runs without the harness."""
    project.write({"report.py": RANKS})
    options = ("--bad", "0.4.31", "--out", "small.py", "--repro", "bug.py", "--json", "-")
    ending = project.run("shrink", "report.py", *options)
    assert ending.code == 0, ending.err
    answer = ending.json
    assert answer["confirmed"]
    assert answer["good_cell"] == "jax0.4.30-py311-cpu1"
    assert answer["kept"].startswith("ValueError: operands with shapes")
    assert answer["after"]["lines"] <= 4 < answer["before"]["lines"]
    text = (project.path / "small.py").read_text()
    assert text == answer["text"]
    assert "total" not in text
    assert "import os" not in text
    assert "jnp.vectorize" in text
    ends = ("--good", "0.4.30", "--bad", "0.4.33")
    bisected = project.run("bisect", "small.py", *ends, "--json", "-")
    assert bisected.json["first_bad"] == "0.4.31"
    assert '"jax==0.4.31"' in (project.path / "bug.py").read_text()


@pytest.mark.long
@pytest.mark.cell
def test_shrink_compares_a_script_with_the_nearest_other_output(project: Project) -> None:
    """The good cell is the nearest in which the script prints something else."""
    project.write({
        "report.py": "import jax.numpy as jnp\nprint(1)\nprint(jnp.ceil(1).dtype)\n"
    })  # fmt: skip
    ending = project.run("shrink", "report.py", "--bad", "0.4.30", "--json", "-")
    assert ending.code == 0, ending.err
    assert ending.json["kept"] == "prints 'float32' instead of 'int32'"
    assert "print(1)" not in ending.json["text"]
    assert "ceil" in ending.json["text"]


@pytest.mark.long(keep=2)
@pytest.mark.cell
@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("print(1)", (), "ok; expected a cell with another result (jax0.6.1"),
        ("print(1)", ("--good", "0.6.2"), "the same cell twice, expected two"),
        ("print(1)", ("--fact", "ops"), "--fact ops: goes with a case, got a script"),
        ("def f(:", (), "report.py:1: no Python"),
        ("import other", (), "other.py, expected a script of one file"),
    ],
)
def test_shrink_refuses_invalid_scripts_and_options(
    project: Project, text: str, options: tuple[str, ...], message: str
) -> None:
    """Before anything is removed."""
    project.write({"report.py": text, "other.py": ""})
    ending = project.run("shrink", "report.py", "--bad", "0.6.2", *options)
    assert (ending.code, message in ending.err) == (2, True), ending.err
