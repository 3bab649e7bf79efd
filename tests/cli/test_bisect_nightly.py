"""`conformance bisect` over nightlies: a fake index serves one real jax under several dates."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.cells.fake_index import FakeIndex, serve
from tests.projects import case
from tests.repositories import copy_sources, find_installed, make_repository
from tests.workbench import planned_cell, python_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.projects import Project


NIGHTS = ("20260110", "20260111", "20260113", "20260114")
SCRIPT = "import jax.numpy as jnp\nprint(jnp.signbit(jnp.float32(-1)))\n"
REQUIRES = "jaxlib>=0.8.2,<={};numpy>=2;scipy;opt_einsum;ml_dtypes"
LABELS = [f"0.8.3.dev{night}" for night in NIGHTS]


@pytest.fixture(scope="session")
def jaxes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return folders with the code of jax 0.8.3: unmodified, and without `jax.numpy.signbit`."""
    python = python_of(planned_cell("0.8.3"))
    (source,) = python.parents[1].glob("lib/python3*/site-packages/jax")
    folders = []
    for name in ("before", "after"):
        folder = tmp_path_factory.mktemp("nights") / name
        shutil.copytree(source, folder / "jax", copy_function=_link)
        folders.append(folder)
    changed = folders[1] / "jax" / "numpy" / "__init__.py"
    text = changed.read_text()
    changed.unlink()  # a link, and the other one is to stay
    changed.write_text(f"{text}\ndel signbit\n")
    return folders[0], folders[1]


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk
        shutil.copy(source, target)


def add_night(index: FakeIndex, version: str, code: Path) -> None:
    """Add a nightly whose wheel only points to the folder of its code.

    A wheel with the code inside would stay in the package cache, for each date and test run.
    """
    files = {"night.pth": f"{code}\n"}
    index.add("jax", version, requires=REQUIRES.format(version), files=files)


@pytest.fixture
def index(tmp_path: Path, jaxes: tuple[Path, Path]) -> Iterator[FakeIndex]:
    """Four nightlies: the first two with the unmodified jax, the others with the modified one."""
    folder = tmp_path / "index"
    folder.mkdir()
    made = FakeIndex(folder=folder, html=True, upload_times=False)
    server = serve(made)
    for number, version in enumerate(LABELS):
        add_night(made, version, jaxes[number >= 2])
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def project(
    project: Project,
    index: FakeIndex,
    private_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Project:
    """A project that names the index, with a script that one nightly broke."""
    monkeypatch.setenv("CONFORMANCE_CACHE", str(private_cache))
    monkeypatch.delenv("CONFORMANCE_NIGHTLY_INDEX", raising=False)
    settings = f'[tool.conformance]\nnightly-index = "{index.url}"\n'
    project.write({"report.py": SCRIPT, "pyproject.toml": settings})
    table = project.path / "matrix" / "releases.toml"
    table.write_text(re.sub(r"packages = \[.*\]", "packages = []", table.read_text()))
    return project


@pytest.fixture
def later(index: FakeIndex, jaxes: tuple[Path, Path]) -> list[str]:
    """Three further nightlies that no other test has installed: good, good, bad."""
    index.projects.clear()
    labels = [f"0.8.3.dev202602{day}" for day in ("01", "02", "03")]
    for number, version in enumerate(labels):
        add_night(index, version, jaxes[number >= 2])
    return labels


def test_bisect_finds_the_first_bad_nightly(project: Project) -> None:
    """Dates without a nightly are no points; the jaxlib of the first bad nightly is reported."""
    ends = ("--axis", "nightly", "--good", "2026-01-10", "--bad", "2026-01-14")
    ending = project.run("bisect", "report.py", *ends)
    assert ending.code == 0, ending.err
    lines = ending.out.splitlines()
    assert lines[0] == f"{LABELS[0]} good     ok"
    assert f"first bad: jax {LABELS[2]}, last good: {LABELS[1]}" in ending.out
    assert "confirmed: both sides gave the same result again" in lines
    assert f"{LABELS[2]} went with jaxlib 0.8.2: no run of that night exists" in lines
    assert lines[-1].startswith("4 trials for 4 points, ")


@pytest.mark.long
def test_release_and_nightly_can_be_the_ends_of_one_search(project: Project) -> None:
    """Probes of an earlier search are replayed."""
    project.run("bisect", "report.py", "--good", "nightly:2026-01-10", "--bad", "nightly")
    ending = project.run(
        "bisect", "report.py", "--good", "0.8.2", "--bad", "nightly-1", "--json", "-"
    )
    answer: dict[str, Any] = ending.json
    assert (answer["last_good"], answer["first_bad"]) == (LABELS[1], LABELS[2])
    assert answer["steps"][0]["version"] == "0.8.2"
    replayed = [step["version"] for step in answer["steps"] if step["replayed"]]
    assert {LABELS[1], LABELS[2]} <= {*replayed}


@pytest.mark.long
def test_adjacent_nightlies_need_only_the_ends_and_their_confirmation(project: Project) -> None:
    """Both ends are probed twice, and nothing else."""
    ends = ("--good", LABELS[1], "--bad", "nightly:2026-01-13", "--fresh", "--json", "-")
    answer: dict[str, Any] = project.run("bisect", "report.py", *ends).json
    assert answer["first_bad"] == LABELS[2]
    assert [step["again"] for step in answer["steps"]] == [False, False, True, True]


@pytest.mark.long
@pytest.mark.parametrize("known", [False, True], ids=["its page says little", "its page says all"])
def test_nightly_whose_wheel_vanished_is_left_out(
    project: Project, index: FakeIndex, later: list[str], known: bool
) -> None:
    """It is listed, whether the index page or the installation reveals that it is missing."""
    if known:
        index.add("jaxlib", later[1], tag="cp311-cp311-manylinux_2_27_x86_64")
    (index.folder / f"jax-{later[1]}-py3-none-any.whl").unlink()
    ends = ("--good", "nightly:2026-02-01", "--bad", "nightly")
    ending = project.run("bisect", "report.py", *ends)
    assert ending.code == 0, ending.err
    assert f"first bad: jax {later[2]}, last good: {later[0]}" in ending.out
    assert (f"  {later[1]}  unknown  " in ending.out) is known
    (line,) = (line for line in ending.out.splitlines() if line.startswith("left out "))
    assert later[1] in line
    gone = project.run("bisect", "report.py", "--good", later[0], "--bad", later[1])
    assert gone.code == (4 if known else 2)
    assert f"jax-{later[1]}-py3-none-any.whl" in gone.error


def test_case_runs_in_the_cell_of_a_nightly(project: Project) -> None:
    """The cell is named after the nightly and has its version of jax."""
    body = "import jax.numpy as jnp\nreturn {'there': np.bool_(hasattr(jnp, 'signbit'))}"
    project.write({"cases/numbers/there.py": case(body)})
    ran = project.run("run", "--cell", "nightly-3@cpu1", "--json", "-")
    (cell,) = ran.json["cells"]
    assert cell["id"] == f"jax{LABELS[0]}-py311-cpu1"
    assert cell["identity"]["versions"]["jax"] == LABELS[0]
    assert [record["outcome"] for record in ran.json["results"]] == ["ok"]


@pytest.mark.parametrize(
    ("variable", "options"),
    [
        ("CONFORMANCE_NIGHTLY_INDEX", ("--good", "0.8.2", "--bad", "nightly")),
        (
            "CONFORMANCE_INDEX_URL",
            ("--axis", "numpy", "--jax", "0.8.2", "--good", "2.0.0", "--bad", "2.1.0"),
        ),
    ],
)
def test_bisect_with_unreachable_index_exits_4(
    project: Project, monkeypatch: pytest.MonkeyPatch, variable: str, options: list[str]
) -> None:
    """The message names the variable to set, and masks the password in its URL."""
    monkeypatch.setenv(variable, "http://user:secret@127.0.0.1:9/index/")
    ending = project.run("bisect", "report.py", *options)
    assert ending.code == 4
    assert "refused" in ending.error
    assert f"set {variable}" in ending.error
    assert "secret" not in ending.err


def test_invalid_nightly_dates_are_refused(project: Project) -> None:
    """Dates without a nightly, dates that do not exist, equal ends, and ends in the wrong order."""
    ends = ("--axis", "nightly", "--good", "2026-01-10", "--bad")
    gone = project.run("bisect", "report.py", *ends, "2026-01-12")
    assert (gone.code, "no nightly of that date; expected e.g. nightly:" in gone.error) == (2, True)
    assert project.run("bisect", "report.py", *ends, "2026-13-12").code == 2
    turned = project.run("bisect", "report.py", *ends, "2026-01-10")
    assert "are both 0.8.3.dev20260110" in turned.error
    latest = project.run("bisect", "report.py", "--good", "nightly", "--bad", "0.8.2")
    assert "--good 0.8.3.dev20260114 is newer than --bad 0.8.2" in latest.error


@pytest.mark.long
def test_nightlies_narrow_what_no_commit_explains(project: Project, tmp_path: Path) -> None:
    """The sources of both releases behave alike; the nightlies went with the older jaxlib."""
    made = make_repository(tmp_path / "jax")
    for release in ("0.8.2", "0.8.3"):
        copy_sources(find_installed(release), made.folder / "jax", jaxlib="0.8.2")
        made.commit(f"release {release}", tag=f"jax-v{release}")
    project.write({"report.py": "import jax, jaxlib\nassert jaxlib.__version__ < '0.8.3'\n"})
    ending = project.run(
        "bisect", "report.py", "--good", "0.8.2", "--bad", "0.8.3", "--commits", "--jax-repo",
        str(made.folder), "--json", "-",
    )  # fmt: skip
    assert ending.code == 0, ending.err
    found = ending.json["commit"]
    assert found["verdict"] == "environment"
    assert found["nights"] == [LABELS[3], "0.8.3"]
    assert "jaxlib" in {move["package"] for move in found["packages"]}
