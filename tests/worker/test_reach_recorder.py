"""What real programs reach of jax, as their processes record it on old and new Pythons."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Protocol

import pytest

from conformance.engine.input_files import INSTRUMENTATION
from conformance.scan.reached import ReachedCode
from conformance.worker.instrumentation.sitecustomize import REACHED
from tests.workbench import NEWEST, OLD, planned_cell, python_of

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.scan.reached import ReachedFile

pytestmark = pytest.mark.cell("3.11", "3.12")

SCRIPT = """\
import functools
import jax
import jax.numpy as jnp

def used(x):
    return jnp.clip(x, 0, 1)

def unused(x):
    return jnp.sin(x)

used(jnp.ones(3))
again = [jnp.clip(jnp.ones(3), 0, 1) for _ in "ab"]
defined = lambda x: jnp.cos(x)
called = lambda x: jnp.tan(x); called(1.0)
functools.partial(getattr(jnp, "exp"))(1.0)
jax.config.update("jax_enable_x64", True)
jax.vmap(jax.jit(used))(jnp.ones((2, 3)))
"""


class Recorded(Protocol):
    """Runs a script on a release, and returns what its processes reached."""

    def __call__(
        self, release: str, source: str, *options: str, path: str = ...
    ) -> tuple[ReachedCode, subprocess.CompletedProcess[str]]:
        """Run it."""


@pytest.fixture
def run(tmp_path: Path) -> Recorded:
    """Runs `script.py` in the temporary folder."""

    def run_script(
        release: str, source: str, *options: str, path: str = ""
    ) -> tuple[ReachedCode, subprocess.CompletedProcess[str]]:
        records = tmp_path / "records"
        records.mkdir()
        (tmp_path / "script.py").write_text(source)
        variables = {REACHED: str(records), "JAX_PLATFORMS": "cpu"}
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, (str(INSTRUMENTATION), path)))
        done = subprocess.run(
            [python_of(planned_cell(release)), *options, "script.py"], cwd=tmp_path,
            env={**os.environ, **variables}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        code = ReachedCode()
        for file in records.iterdir():
            code.add(file.read_bytes())
        return code, done

    return run_script


def script_of(code: ReachedCode) -> ReachedFile:
    """Return what ran of the script."""
    (name,) = (name for name in code.files if name.endswith("script.py"))
    return code.files[name]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("release", [OLD, NEWEST])
def test_a_program_shows_what_it_reaches(run: Recorded, release: str) -> None:
    """Lines of its own, the names that it calls, and what jax does because of them."""
    code, done = run(release, SCRIPT)
    assert done.returncode == 0, done.stderr
    assert (code.processes, code.releases, code.losses) == (1, {release}, set())
    script = script_of(code)
    assert {6, 11, 12, 13, 14} <= script.lines
    assert 9 not in script.lines
    assert script.lambdas == {14}
    assert {"clamp", "tan", "exp"} & code.primitives == {"tan", "exp"}
    assert {(option, line) for option, _, line in code.options} == {("jax_enable_x64", 16)}
    assert "JAX_PLATFORMS" in code.variables
    called = {name for names in script.names.values() for some in names for name in some}
    assert {"jax.jit", "jax.vmap", "jax.numpy.ones"} <= called
    assert not any("site-packages/jax/" in name for name in code.files)


def test_calls_are_recorded_from_python_3_12_on(run: Recorded) -> None:
    """Each by its position, also one that jax answers from a cache, or that has no name there."""
    code, _ = run(NEWEST, SCRIPT)
    script = script_of(code)
    assert code.calls_known
    assert {(6, 11), (12, 9), (14, 19), (15, 0)} <= script.calls
    assert not {(9, 11), (13, 20)} & script.calls
    names = {
        line: {name for some in names for name in some} for line, names in script.names.items()
    }
    assert "jax.numpy.clip" in names[6]
    assert "jax.numpy.clip" in names[12]
    assert "jax.numpy.exp" in names[15]


def test_lines_alone_are_recorded_before(run: Recorded) -> None:
    """And a function that replaces the trace function ends the record."""
    source = "import sys, jax\nsys.settrace(None)\njax.jit(abs)\n"
    code, _ = run(OLD, source)
    assert not code.calls_known
    assert code.losses == {"another trace function, of coverage or a debugger"}
    assert script_of(code).lines >= {1, 2}


LOOP = """\
import jax
count = 0
while count < 20_000:
    if count < 0:
        jax.jit(abs)
    count += 1
jax.jit(abs)
"""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("release", "unknown"), [(OLD, {5, 7}), (NEWEST, set())])
def test_a_long_loop_is_not_traced_to_its_end(
    run: Recorded, release: str, unknown: set[int]
) -> None:
    """On an old Python, where each line of each round would take time; the record says so."""
    code, _ = run(release, LOOP)
    script = script_of(code)
    assert script.unknown == unknown
    assert script.lines == {1, 2, 3, 4, 6, 7} - unknown


CHILDREN = """\
import multiprocessing, os, subprocess, sys, threading
import jax

def in_thread():
    jax.eval_shape(abs, 1.0)

def in_fork():
    jax.eval_shape(abs, 1)

if sys.argv[1:]:
    jax.eval_shape(abs, 2)
    os.kill(os.getpid(), 9)
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
if (child := os.fork()) == 0:
    in_fork()
    os.kill(os.getpid(), 9)
os.waitpid(child, 0)
subprocess.run([sys.executable, __file__, "child"])
"""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("release", [OLD, NEWEST])
def test_threads_and_child_processes_record_too(run: Recorded, release: str) -> None:
    """Each process in a file of its own, which it leaves when it is killed."""
    code, done = run(release, CHILDREN, "-W", "ignore")
    assert done.returncode == 0, done.stderr
    assert {5, 8, 11, 12} <= script_of(code).lines
    assert code.processes == 3


UNCHANGED = """\
import inspect, pickle, sys
import jax, jax.numpy as jnp
print(jnp.clip is jax.numpy.clip, type(jnp.clip), jnp.clip.__module__, jnp.clip.__wrapped__)
print(pickle.loads(pickle.dumps(jax.tree.map)) is jax.tree.map, isinstance(1, jnp.ndarray))
print(inspect.signature(jnp.clip), sys.modules["jax"].__spec__.loader.__class__, sys.argv)
print([type(finder).__name__ for finder in sys.meta_path if "jax" in repr(finder).lower()])
"""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("release", [OLD, NEWEST])
def test_a_program_sees_no_difference(run: Recorded, tmp_path: Path, release: str) -> None:
    """Functions of jax are the same objects; a `sitecustomize` of the environment runs, too."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('customized')")
    _, done = run(release, UNCHANGED, path=str(own))
    alone = subprocess.run(
        [python_of(planned_cell(release)), "script.py"], cwd=tmp_path, check=True,
        env={**os.environ, "PYTHONPATH": str(own)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.startswith("customized\nTrue ")
    address_free = [text.partition(" at 0x")[0] for text in (done.stdout, alone.stdout)]
    assert address_free[0] == address_free[1]
    assert done.stderr == alone.stderr


def test_a_program_without_jax_reaches_nothing(run: Recorded) -> None:
    """Its lines count as little as the process."""
    code, done = run(NEWEST, "import json\n")
    assert done.returncode == 0
    assert (code.processes, code.releases, code.files) == (0, set(), {})


def test_a_package_of_the_user_may_have_the_name(run: Recorded, tmp_path: Path) -> None:
    """A folder `jax` counts as jax only if it is what `import jax` finds."""
    package = tmp_path / "jax"
    package.mkdir()
    (package / "notes.py").write_text("value = 1\n")
    source = "import sys\nsys.path.append('jax')\nsys.path.pop(0)\nimport notes, jax\n"
    code, done = run(NEWEST, source)
    assert done.returncode == 0, done.stderr
    assert any(name.endswith("jax/notes.py") for name in code.files)
