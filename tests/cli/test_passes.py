"""`conformance passes`: the pass, flag or option that changes the result of a real program."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.projects import CELL

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Ending, Project


CASES = """\
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Program, probe, program

X = np.linspace(0.1, 7.7, 64, dtype=np.float32)
COUNTER = pathlib.Path("TMP_PATH/counter")


@program(rtol=0.0, atol=0.0)
def division(env):
    return Program(
        lambda x: x / 3.0, args=(X,), reference=lambda x: x / np.float32(3),
        jit={"donate_argnums": 0},
    )


@program(rtol=0.0, atol=0.0)
def both(env):
    def reference(x, y):
        return x / np.float32(3), x * y + x

    return Program(lambda x, y: (x / 3.0, x * y + x), args=(X, np.sqrt(X)), reference=reference)


@program(rtol=0.0, atol=0.0)
def wrong(env):
    return Program(lambda x: x + 1, args=(X,), reference=lambda x: x)


@program()
def right(env):
    return Program(lambda x: x + 1, args=(X,), reference=lambda x: x + 1)


@program()
def wide(env):
    def fn(x):
        if x.dtype != jnp.float64:
            raise ValueError("too narrow")
        return x

    return Program(fn, args=(X.astype(np.float64),))


def count():
    seen = int(COUNTER.read_text()) if COUNTER.exists() else 0
    COUNTER.write_text(str(seen + 1))
    return np.int32(seen)


@program()
def changing(env):
    shape = jax.ShapeDtypeStruct((), np.int32)
    fn = lambda: jnp.minimum(jax.pure_callback(count, shape), 1)
    return Program(fn, reference=np.int32(1))


@program()
def slow(env):
    shape = jax.ShapeDtypeStruct((), np.int32)

    def wait():
        count()
        time.sleep(60)
        return np.int32(0)

    return Program(lambda: jax.pure_callback(wait, shape), reference=np.int32(1))


@probe()
def free(env):
    return np.int32(1)
"""


pytestmark = [pytest.mark.cell, pytest.mark.project({"cases/family/topic.py": CASES})]
"""A project with programs that passes change."""


def run_passes(project: Project, name: str, *more: str) -> Ending:
    """Run `conformance passes` for a case, with JSON on standard output."""
    cell = () if "--good" in more else ("--bad", CELL)
    return project.run("passes", f"family/{name}", *cell, "--json", "-", *more)


def test_passes_finds_the_pass_that_makes_a_program_deviate(project: Project) -> None:
    """A division by a constant becomes a multiplication, which rounds differently."""
    ending = run_passes(project, "division")
    assert ending.code == 0
    found = ending.json
    assert (found["target"], found["cell"]) == ("family/division", CELL)
    assert found["predicate"]["name"] == "conformance"
    assert found["culprits"] == ["algsimp"]
    assert "algsimp" in found["passes"]
    assert found["confirmed"]
    assert "semantic: multiply -> divide" in found["changes"]
    passes = [step for step in found["steps"] if step["what"] == "pass"]
    assert [step["verdict"] for step in passes if step["disabled"] == ["algsimp"]] == ["flips"] * 2
    assert {entry["name"] for entry in found["config"]} >= {"jax_enable_x64"}
    assert {entry["verdict"] for entry in found["flags"]} <= {"stays", "unknown"}
    wanted = 'paste: jax.jit(f, compiler_options={"xla_disable_hlo_passes": "algsimp"})'
    assert wanted in ending.err.splitlines()


@pytest.mark.long
def test_passes_finds_two_passes_that_act_together(project: Project) -> None:
    """One changes the first result, the other changes the second."""
    ending = run_passes(project, "both")
    assert ending.code == 0
    assert ending.json["culprits"] == ["algsimp", "fusion"]
    assert "does not with 2 passes disabled, all of them: algsimp, fusion" in ending.err


@pytest.mark.long
def test_passes_reports_that_nothing_makes_the_difference(project: Project) -> None:
    """With the number of attempts; exit 1."""
    ending = run_passes(project, "wrong")
    assert ending.code == 1
    assert ending.json["culprits"] == []
    assert not ending.json["confirmed"]
    assert "no pass does it, alone or together" in ending.err
    assert "none makes that difference" in ending.err


@pytest.mark.long
def test_passes_compares_the_bits_of_two_cells(project: Project) -> None:
    """One cell runs without the pass, and the other with it."""
    good = f"{CELL}-xla.xla_disable_hlo_passes=algsimp"
    ending = run_passes(project, "division", "--good", good, "--bad", CELL, "--when", "bits")
    assert ending.code == 0
    assert ending.json["good_cell"] == good
    assert ending.json["culprits"] == ["algsimp"]


def test_passes_finds_a_jax_option_for_a_program_that_fails_to_trace(project: Project) -> None:
    """Such a program reaches no pass of XLA."""
    ending = run_passes(project, "wide")
    assert ending.code == 0
    flips = [entry for entry in ending.json["config"] if entry["verdict"] == "flips"]
    assert flips == [{"name": "jax_enable_x64", "value": True, "verdict": "flips"}]
    assert "it ends at trace, before any pass is run" in ending.err
    assert 'paste: jax.config.update("jax_enable_x64", True)' in ending.err


@pytest.mark.long
def test_passes_does_not_confirm_a_flaky_program(project: Project) -> None:
    """The flaky attempts are counted."""
    ending = run_passes(project, "changing")
    assert ending.code == 1
    assert not ending.json["confirmed"]
    assert any(
        line.startswith("the program, unchanged, does not show the same twice: stays 1 of 5")
        for line in ending.json["flaky"]
    )


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("right", (), "conforms, expected a deviation to explain"),
        ("free", (), "is a probe, expected a program"),
        ("division", ("--fact", "colours"), "--fact colours: no such fact, expected one of"),
        ("division", ("--fact", "collectives=x"), "expected JSON after ="),
        ("division", ("--good", CELL, "--bad", CELL), "the same cell twice"),
        ("division", ("--bad", ">=0.6"), "expected one"),
        ("division", ("--bad", "0.6.2@cpu-mp2"), "passes are asked of one process"),
    ],
)
def test_invalid_arguments_of_passes_are_refused(
    project: Project, name: str, more: tuple[str, ...], message: str
) -> None:
    """One line each."""
    ending = run_passes(project, name, *more)
    assert ending.code == 2
    assert message in ending.error


def test_interrupted_passes_leaves_no_process(project: Project, tmp_path: Path) -> None:
    """Even while XLA runs a program that does not end."""
    process = project.start("passes", "family/slow", "--bad", CELL)
    children: list[psutil.Process] = []
    try:
        while not (tmp_path / "counter").exists():
            assert process.poll() is None, process.communicate()
            with pytest.raises(psutil.TimeoutExpired):
                psutil.Process(process.pid).wait(0.05)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.communicate()
    assert len(children) > 1
    gone, alive = psutil.wait_procs(children, 5)
    assert not alive
    assert len(gone) == len(children)


@pytest.mark.long
def test_passes_finds_a_tpu_compiler_pass_by_a_fact(project: Project) -> None:
    """Nothing is executed, so a fact is compared; passes that XLA needs are skipped."""
    ending = project.run(
        "passes", "family/division", "--bad", "0.6.2@tpu:v5e:2x2", "--fact", "ops.multiply",
        "--no-settings", "--json", "-",
    )  # fmt: skip
    assert ending.code == 0, ending.err
    found = ending.json
    assert found["culprits"] == ["algsimp"]
    assert any(line.startswith("semantic: multiply -> divide") for line in found["changes"])


SCRIPT = """\
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, numpy as np
x = np.linspace(0.1, 7.7, 64, dtype=np.float32)
{ends}
"""
RAISES = "np.testing.assert_array_equal(jax.jit(lambda x: x / 3.0)(x), x / np.float32(3))"
PRINTS = "print(jax.jit(lambda x: x / 3.0)(x).tobytes().hex())"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("ends", "more", "about"),
    [
        (RAISES, (), "ends with AssertionError"),
        (PRINTS, ("--when", "output"), "prints this very output"),
        (PRINTS, ("--fact", "ops.divide=1"), "states ops.divide = 0"),
    ],
)
def test_passes_finds_the_pass_that_changes_a_script(
    project: Project, ends: str, more: tuple[str, ...], about: str
) -> None:
    """The pass is disabled in all that the script compiles, even if the script sets XLA_FLAGS."""
    project.write({"report.py": SCRIPT.format(ends=ends)})
    ending = project.run(
        "passes", "report.py", "--bad", CELL, "--no-settings", *more, "--json", "-"
    )
    assert ending.code == 0, ending.err
    found = ending.json
    assert found["culprits"] == ["algsimp"]
    assert found["predicate"]["about"].startswith(about)
    assert found["confirmed"]


def test_passes_of_a_succeeding_script_needs_a_predicate(project: Project) -> None:
    """The message names the option."""
    project.write({"report.py": SCRIPT.format(ends="print(1)")})
    ending = project.run("passes", "report.py", "--bad", CELL)
    assert ending.code == 2
    assert "--when bits (of a script: output)" in ending.err
