"""`conformance new` on real releases, and its errors."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from conformance.app import new_case
from conformance.locking import lock_folders
from tests.projects import GOOD, HEAD

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.projects import Ending, Project

    from .conftest import MakeProject

CELLS = ("--cell", "0.6.0", "--cell", "0.6.2")
SINCE = """\
import jax

print(jax.__name__)
if jax.__version__ >= "0.6.1":
    {deed}
"""
MAPPED = """\
It fails, see https://github.com/jax-ml/jax/issues/1:
```python
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec as P

mesh = Mesh(jax.devices()[:2], ("x",))
f = jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
print(f(jnp.arange(4.0)))
```
"""


@pytest.fixture
def project(new_project: MakeProject) -> Project:
    """A project with two families."""
    loops = f"{HEAD}\n\n\n@probe()\ndef loop(env):\n    env.compat.shard_map(jax.lax.psum)\n"
    return new_project({
        "cases/numbers/reported.py": GOOD,
        "cases/maps/loops.py": loops.replace("import numpy", "import jax\nimport numpy"),
    })  # fmt: skip


def make_case(project: Project, text: str, *options: str, cells: tuple[str, ...] = CELLS) -> Ending:
    """Make a case of a script."""
    project.write({"report.py": text})
    return project.run("new", "report.py", "--family", "numbers", *cells, *options)


def read_case_file(project: Project) -> str:
    """Return the text of the file that cases are added to."""
    return (project.path / "cases" / "numbers" / "reported.py").read_text()


@pytest.mark.long
@pytest.mark.cell
def test_new_declares_a_failure_from_its_first_release_on(project: Project) -> None:
    """The other cases of the file are not changed."""
    ending = make_case(project, SINCE.format(deed='raise KeyError("no such axis here")'))
    assert ending.code == 0, ending.err
    text = read_case_file(project)
    assert text.count("\n\n\n@probe") == 3
    assert GOOD.partition("\n\n\n")[2].strip() in text
    for part in ('"jax>=0.6.1"', 'error="KeyError"', 'match="no such axis here"', "proposed"):
        assert part in text.replace("'no such axis here'", "no such axis here")
    lines = ending.out.splitlines()
    assert [line.split()[0] for line in lines if line[:2] == "0."] == ["0.6.0", "0.6.1", "0.6.2"]
    assert any(line.startswith("seen on jax>=0.6.1: KeyError") for line in lines)
    code, results = project.results("numbers", *CELLS)
    assert code == 0
    assert {str(record.verdict) for record in results.values()} <= {"new", "known"}


@pytest.mark.long
@pytest.mark.cell
def test_new_takes_the_reference_from_the_good_release(project: Project) -> None:
    """Releases with another value get a deviation."""
    text = "import jax\nimport numpy as np\nprint(np.int32([jax.__version__ > '0.6.1', 2]))\n"
    ending = make_case(project, text, "--good", "0.6.0", "--json", "-")
    assert ending.code == 0, ending.err
    made = ending.json
    assert made["reference"] == "0.6.0"
    assert "reference=np.array([0, 2], np.int32)" in made["code"]
    assert [(one["releases"], one["good"]) for one in made["stretches"]] == [
        ("<0.6.2", True), (">=0.6.2", False),
    ]  # fmt: skip
    assert 'outcome="ok"' in made["code"]
    assert made["undeclared"] == []


@pytest.mark.long
@pytest.mark.cell
def test_new_locks_the_folder_of_families(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`review` holds the same lock to declare deviations in case files."""
    held: list[Path] = []

    def recording(folders: Iterable[Path], *more: Any) -> AbstractContextManager[None]:
        held.extend(folders := list(folders))
        return lock_folders(folders, *more)

    monkeypatch.setattr(new_case, "lock_folders", recording)
    assert make_case(project, "print(1)\n").code == 0
    assert held == [project.path / "cases"]


@pytest.mark.cell
def test_new_from_an_issue_chooses_family_and_bridges_spelling(project: Project) -> None:
    """With `--dry-run` nothing is written."""
    project.write({"issue.md": MAPPED})
    ending = project.run("new", "issue.md", *CELLS, "--name", "sums", "--dry-run", "--json", "made")
    assert ending.code == 0, ending.err
    for part in (
        "maps/sums: family maps, its cases use ",
        'source="jax-ml/jax#1"',
        "devices=2",
        "env.compat.shard_map(",
        "env.mesh(2, ",
        "return Program(",
        "reference=np.array([2.0, 4.0], np.float32)",
        "uses env.compat.shard_map; the script itself fails on 0.6.0",
    ):
        assert part in ending.out
    assert not (project.path / "cases" / "maps" / "reported.py").exists()


@pytest.mark.long
@pytest.mark.cell
def test_new_takes_the_reference_from_assertions(project: Project) -> None:
    """Nothing is left to review."""
    ending = make_case(
        project, "import jax, numpy as np\nx = jax.jit(lambda: 2.0)()\nassert x == 2\n", cells=CELLS
    )
    assert ending.code == 0, ending.err
    assert "reference=2" in read_case_file(project)
    assert "review the reference" not in ending.out
    assert "the same on all 2 releases tried" in ending.out


@pytest.mark.cell
@pytest.mark.long
def test_new_does_not_observe_versions_devices_and_times(project: Project) -> None:
    """They differ without any change of behaviour."""
    text = "import jax, time\nstart = time.time()\nprint(jax.__version__, jax.devices())\n"
    text += "print(f'{jax.__version__}: {jax.numpy.ones(2).sum()} in {time.time() - start:.2f}')\n"
    ending = make_case(project, text, cells=CELLS)
    assert ending.code == 0, ending.err
    assert "the same on all 2 releases tried" in ending.out
    assert "jax.__version__" not in read_case_file(project)


@pytest.mark.cell
@pytest.mark.long
def test_new_writes_into_a_new_folder_of_cases(project: Project) -> None:
    """The printed command finds the case."""
    project.write({"report.py": "import jax.numpy as jnp\nprint(jnp.ones(2).sum())\n"})
    where = ("--cases", "own", "--family", "sums", "--cell", "0.6.0", "--cell", "0.6.2")
    ending = project.run("new", "report.py", *where)
    assert ending.code == 0, ending.err
    (command,) = re.findall(r"not tried: conformance (run .*)", ending.out)
    again = project.run(*shlex.split(command.replace(">=0.4", "0.6.2")))
    assert (again.code, "1 new" in again.out) == (0, True), again


@pytest.mark.long
@pytest.mark.cell
def test_new_reports_a_flaky_script(project: Project) -> None:
    """Exit 1: nothing is declared for the release."""
    ending = make_case(
        project, "import os\nprint(os.urandom(4).hex())\n", cells=("--cell", "0.6.2")
    )
    assert ending.code == 1
    assert "not declared: 0.6.2: the result changed between two runs: out " in ending.out


@pytest.mark.cell
@pytest.mark.long
def test_new_case_passes_ruff_of_its_folder(project: Project) -> None:
    """Findings are suppressed by the rules of that folder."""
    (project.path / "ruff.toml").write_text('lint.select = ["ALL"]\nlint.ignore = ["INP", "ANN"]\n')
    script = "import jax\ndef f(x):\n    assert x\n    return x\ny = f( 3 )\nprint(type(y))\n"
    ending = make_case(project, script, "--topic", "fresh")
    assert ending.code == 0, ending.err
    file = project.path / "cases" / "numbers" / "fresh.py"
    assert _passes_ruff(file), file.read_text()
    assert "    y = f(3)" in file.read_text()


def _passes_ruff(file: Path) -> bool:
    commands = (
        [sys.executable, "-m", "ruff", "check", str(file)],
        [sys.executable, "-m", "ruff", "format", "--check", str(file)],
    )
    return all(
        subprocess.run(command, capture_output=True, check=False).returncode == 0
        for command in commands
    )


@pytest.mark.long(keep=3)
@pytest.mark.cell
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import einops\n", "report.py: needs the package einops, which no cell has"),
        ("open('data.txt')\n", "report.py: reads a file: [Errno 2] No such file or directory"),
        ("import os\nos._exit(0)\n", "report.py: no case shows the same: on 0.6.2 the script"),
        (
            "import sys\nif True:\n    sys.exit()\nprint(1)\n",
            "remove the call that ends the interpreter",
        ),
        ("import time\ntime.sleep(60)\n", "report.py: no end within the timeout of 3 s on any"),
        ("print(x)\n", "report.py: is incomplete: NameError: name 'x' is not defined"),
    ],
)
def test_new_refuses_a_script_that_makes_no_case(
    project: Project, script: str, message: str
) -> None:
    """The message has the reason, and nothing is written."""
    before = read_case_file(project)
    ending = make_case(project, script, "--timeout", "3", cells=("--cell", "0.6.2"))
    assert ending.code == 2
    assert message in ending.error
    assert read_case_file(project) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("gone.py",), "gone.py: cannot be read: no such file or directory"),
        (("cases",), "cases: cannot be read: is a directory"),
        (("bytes",), "bytes: is no UTF-8 text"),
        (("prose",), "prose:1: no Python: "),
        (("ok.py",), "no family matches (maps, numbers); name one of these or a new one"),
        (
            ("ok.py", "--family", "no-name"),
            "--family no-name: expected a Python name, e.g. no_name",
        ),
        (("ok.py", "--family", "numbers", "--name", "one"), "numbers/one is taken, by "),
        (("ok.py", "--family", "numbers", "--topic", "_x"), "--topic _x: no case file may have"),
        (("ok.py", "--family", "numbers", "--cell", "9.9"), "9.9"),
        (("ok.py", "--family", "numbers", "--good", ">=0.5"), "releases, expected one"),
        (("ok.py", "--cases", "gone"), "gone: has no families yet; name one: --family NAME"),
        (("ok.py", "--json", "no/where"), "--json no/where: cannot be written"),
        (
            ("3.py", "--family", "numbers", "--name", "class"),
            "--name class: expected a Python name",
        ),
    ],
)
def test_invalid_arguments_of_new_are_refused_before_any_job(
    project: Project, options: tuple[str, ...], message: str
) -> None:
    """One line, exit 2."""
    project.write({"ok.py": "print(1)\n", "3.py": "print(1)\n", "prose": "It does not work.\n"})
    (project.path / "bytes").write_bytes(b"\xff\xfe\x00")
    ending = project.run("new", *options)
    assert ending.code == 2
    assert message in ending.error
    assert ending.out == ""
