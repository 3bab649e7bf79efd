"""Runs of nightlies whose index answers, refuses, hangs, sends nonsense, or vanishes."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest

from conformance.cells import package_index
from tests.cells.fake_index import FakeIndex, serve, serving
from tests.projects import CELL, GOOD, RELEASE, case
from tests.workbench import planned_cell, python_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.server import ThreadingHTTPServer
    from pathlib import Path

    from tests.projects import Ending, Project


NIGHTS = ("0.6.3.dev20260110", "0.6.3.dev20260111")
MATRIX = f'[matrix]\naxes = {{ jax = ["{RELEASE}", "nightly"] }}\n'
UNKNOWN_NIGHTLY = "jaxnightly-py312-cpu8"
REFUSING = "http://user:secret@127.0.0.1:9/index/"


class Upstream:
    """A fake index of nightlies that can be shut down.

    Args:
        folder: Folder for its wheels.
        code: Folder that contains the package jax.
    """

    def __init__(self, folder: Path, code: Path) -> None:
        self._code = code
        self.index = FakeIndex(folder=folder, html=True, upload_times=False)
        self.server: ThreadingHTTPServer | None = serve(self.index)

    def add(self, version: str) -> None:
        """Add a nightly: the release under another version."""
        requires = f"jaxlib>=0.6.2,<={version};numpy>=2;scipy;opt_einsum;ml_dtypes"
        self.index.add("jax", version, requires=requires, files={"night.pth": f"{self._code}\n"})

    def close(self) -> None:
        """Stop the server: later connections are refused."""
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None


@pytest.fixture(scope="session")
def code() -> Path:
    """Return the folder with the code of the release."""
    (source,) = python_of(planned_cell(RELEASE)).parents[1].glob("lib/python3*/site-packages/jax")
    return source.parent


@pytest.fixture
def upstream(tmp_path: Path, code: Path) -> Iterator[Upstream]:
    """An index with two nightlies."""
    folder = tmp_path / "index"
    folder.mkdir()
    made = Upstream(folder, code)
    for night in NIGHTS:
        made.add(night)
    yield made
    made.close()


pytestmark = pytest.mark.project({"cases/fam/numbers.py": GOOD, "matrix/nightly.toml": MATRIX})


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project of two cases whose matrix has a release and a nightly; its index refuses."""
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", REFUSING)
    table = project.path / "matrix" / "releases.toml"
    table.write_text(re.sub(r"packages = \[.*\]", "packages = []", table.read_text()))
    return project


def outcomes_by_cell(ending: Ending) -> dict[str, set[str]]:
    """Return the outcomes of the jobs of each cell."""
    found: dict[str, set[str]] = {}
    for record in ending.json["results"]:
        found.setdefault(record["cell"], set()).add(record["outcome"])
    return found


def read_infra_reason(ending: Ending) -> str:
    """Return the only reason of the infra jobs."""
    infra = [one for one in ending.json["results"] if one["outcome"] == "infra"]
    (reason,) = {one["error"]["message"] for one in infra}
    return str(reason)


@pytest.mark.cell
def test_refusing_index_makes_only_nightly_cells_infra(project: Project) -> None:
    """The reason has the index, the error and a remedy; its password is stored nowhere."""
    ending = project.run("run", "--matrix", "nightly", "--json", "-")
    assert ending.code == 4
    assert outcomes_by_cell(ending) == {CELL: {"ok"}, UNKNOWN_NIGHTLY: {"infra"}}
    reason = read_infra_reason(ending)
    assert reason.startswith("nightly index http://***@127.0.0.1:9/index/: ")
    assert "Connection refused" in reason
    assert "set CONFORMANCE_NIGHTLY_INDEX, or nightly-index below [tool.conformance]" in reason
    for file in project.newest.path.rglob("*"):
        assert file.is_dir() or b"secret" not in file.read_bytes()
    markdown = project.run("report", "--markdown", "-").out
    assert "2 infra" in markdown


ANSWERS = {"an error": (500, b"oh"), "nonsense": (200, b"<p>log in"), "nothing": (200, b"")}


@pytest.mark.long(keep=1)
@pytest.mark.cell
@pytest.mark.parametrize("answer", ANSWERS)
def test_invalid_index_page_makes_only_nightly_cells_infra(
    project: Project,
    serve_page: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
) -> None:
    """An unexpected job of another cell takes precedence in the exit status."""
    status, body = ANSWERS[answer]
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", serve_page(status, "text/html", body))
    ending = project.run("run", "--matrix", "nightly", "--json", "-")
    assert (ending.code, outcomes_by_cell(ending)) == (
        4,
        {CELL: {"ok"}, UNKNOWN_NIGHTLY: {"infra"}},
    )
    assert "secret" not in ending.out
    wrong = GOOD.replace("reference=np.int32(3)", "reference=np.int32(4)")
    project.write({"cases/fam/numbers.py": wrong})
    assert project.run("run", "--matrix", "nightly").code == 1


@pytest.mark.cell
def test_hanging_index_is_waited_for_once(
    project: Project, serve_page: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many cells need it."""
    monkeypatch.setattr(package_index, "TIMEOUT", 0.3)
    url = serve_page(200, "text/html", b"", late=True)
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", url)
    axes = '{ jax = ["nightly", "nightly-1"], devices = [1, 2, 4] }'
    project.write({"matrix/many.toml": f"[matrix]\naxes = {axes}\n"})
    ending = project.run("run", "--matrix", "many", "--json", "-")
    assert len(outcomes_by_cell(ending)) == 6
    assert "timed out" in read_infra_reason(ending)


@pytest.fixture
def nightly_project(
    project: Project, upstream: Upstream, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """The project with an index that answers."""
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", upstream.index.url)
    monkeypatch.setenv("CONFORMANCE_CACHE", str(private_cache))
    return project


@pytest.mark.long
@pytest.mark.cell
def test_index_that_vanishes_before_the_download_is_infra(
    nightly_project: Project, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other cells run."""
    upstream.add("0.6.3.dev20260112")
    answer = upstream.index.answer

    def last(path: str) -> tuple[str, bytes] | None:
        found = answer(path)
        if path.endswith(".whl"):
            threading.Thread(target=upstream.close).start()
        return found

    monkeypatch.setattr(upstream.index, "answer", last)
    ending = nightly_project.run("run", "--matrix", "nightly", "--json", "-")
    assert ending.code == 4
    assert outcomes_by_cell(ending) == {CELL: {"ok"}, "jax0.6.3.dev20260112-py311-cpu8": {"infra"}}
    assert "refused" in read_infra_reason(ending).lower()


def read_changes_since(ending: Ending) -> dict[str, Any]:
    """Return the changes since the previous nightly run."""
    found: dict[str, Any] = ending.json["since"]
    return found


@pytest.mark.cell
def test_nightly_cells_are_compared_regardless_of_date(
    nightly_project: Project, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with a nightly whose date is unknown."""
    run = ("run", "--matrix", "nightly", "--json", "-")
    first = nightly_project.run(*run, "--night", "2026-01-10")
    assert outcomes_by_cell(first) == {CELL: {"ok"}, f"jax{NIGHTS[0]}-py311-cpu8": {"ok"}}
    assert read_changes_since(first) is None
    second = nightly_project.run(*run)
    assert outcomes_by_cell(second)[f"jax{NIGHTS[1]}-py311-cpu8"] == {"ok"}
    changes = read_changes_since(second)
    assert [changes[kind] for kind in ("new", "gone", "added", "removed", "moved")] == [[]] * 5
    assert changes["installed"] == [
        {"place": "nightly-cpu8", "package": "jax", "before": NIGHTS[0], "after": NIGHTS[1]}
    ]
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", REFUSING)
    third = nightly_project.run(*run)
    assert (third.code, outcomes_by_cell(third)[UNKNOWN_NIGHTLY]) == (4, {"infra"})
    changes = read_changes_since(third)
    assert {job["place"] for job in changes["silent"]} == {"nightly-cpu8"}
    assert [changes[kind] for kind in ("new", "gone", "added", "removed", "moved")] == [[]] * 5


@pytest.mark.cell
@pytest.mark.long
def test_resumed_run_keeps_its_nightly(
    nightly_project: Project, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer nightly is ignored; an unknown one is looked up again."""
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", REFUSING)
    run = ("--run", "night", "--json", "-")
    began = nightly_project.run("run", "--matrix", "nightly", *run)
    assert outcomes_by_cell(began)[UNKNOWN_NIGHTLY] == {"infra"}
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", upstream.index.url)
    expected = {CELL: {"ok"}, f"jax{NIGHTS[1]}-py311-cpu8": {"ok"}}
    assert outcomes_by_cell(nightly_project.run("run", "--resume", *run)) == expected
    upstream.add("0.6.3.dev20260113")
    assert outcomes_by_cell(nightly_project.run("run", "--resume", *run)) == expected
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", REFUSING)
    again = nightly_project.run("run", "--resume", *run)
    assert (again.code, outcomes_by_cell(again)) == (0, expected)
    written = (nightly_project.path / "night" / "results.jsonl").read_text()
    assert {json.loads(line)["cell"] for line in written.splitlines()} == expected.keys()


@pytest.mark.long
@pytest.mark.cell
def test_plan_fixes_the_nightly_for_all_shards(nightly_project: Project) -> None:
    """Shards of different nightlies cannot be merged."""
    plan = nightly_project.run("plan", "--matrix", "nightly", "--shards", "2", "--format", "github")
    arguments = [part["arguments"] for part in plan.json["include"]]
    assert arguments[0] == "--matrix nightly --night 2026-01-11 --shard 1/2"
    nightly_project.run("run", *arguments[0].split(), "--run", "one")
    other = arguments[1].replace("2026-01-11", "2026-01-10")
    nightly_project.run("run", *other.split(), "--run", "two")
    ending = nightly_project.run("merge", "one", "two")
    assert ending.code == 2
    assert "was not run with the same night" in ending.error
    assert nightly_project.run("run", "--night", "yesterday", "--cell", "nightly").code == 2


@pytest.mark.long
@pytest.mark.cell
def test_shard_without_the_index_is_infra_after_the_merge(
    nightly_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jobs belong to the nightly of the other shards."""
    body = "return Observed(1.0, reference=1.0)"
    files = {f"cases/fam/{name}.py": case(body, name=name) for name in "abcd"}
    nightly_project.write({**files, "matrix/n.toml": '[matrix]\naxes = { jax = ["nightly"] }\n'})
    run = ("run", "--matrix", "n", "--night", "2026-01-11")
    night = f"jax{NIGHTS[1]}-py311-cpu8"
    assert nightly_project.run(*run, "--shard", "1/2", "--run", "one").code == 0
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", REFUSING)
    assert nightly_project.run(*run, "--shard", "2/2", "--run", "two").code == 4
    merged = nightly_project.run("merge", "two", "one", "--json", "-")
    assert (merged.code, outcomes_by_cell(merged)) == (4, {night: {"ok", "infra"}})
    assert len({one["case"] for one in merged.json["results"]}) == 6
    (cell,) = merged.json["cells"]
    assert (cell["id"], cell["identity"]["versions"]["jax"]) == (night, NIGHTS[1])


@pytest.mark.cell
def test_unknown_nightly_can_be_sharded_and_merged(project: Project) -> None:
    """As any other cell."""
    whole = project.run("run", "--matrix", "nightly", "--json", "-")
    plan = project.run("plan", "--matrix", "nightly", "--shards", "2")
    assert f"{UNKNOWN_NIGHTLY}" in plan.out
    for number in (1, 2):
        part = ("--shard", f"{number}/2", "--run", f"part-{number}")
        assert project.run("run", "--matrix", "nightly", *part).code in {0, 4}
    merged = project.run("merge", "part-1", "part-2", "--json", "-")
    assert (merged.code, outcomes_by_cell(merged)) == (4, outcomes_by_cell(whole))
    assert read_changes_since(merged)["run"] != merged.json["run"]
    assert read_changes_since(merged)["new"] == read_changes_since(merged)["gone"] == []


@pytest.mark.long
@pytest.mark.cell
def test_path_cell_is_added_to_a_matrix(project: Project) -> None:
    """Unless the matrix has it: then it filters, as any other selector does."""
    python = python_of(planned_cell("0.6.1"))
    asked = ("--matrix", "smoke", "--cell", f"path:{python}")
    ending = project.run("run", *asked, "--json", "-")
    ids = [cell["id"] for cell in ending.json["cells"]]
    assert ids[0] == CELL
    assert ids[1].startswith("path-")
    assert {len(found) for found in outcomes_by_cell(ending).values()} == {1}
    narrowed = project.run("run", *asked, "--cell", RELEASE, "--json", "-")
    assert [cell["id"] for cell in narrowed.json["cells"]] == ids
    axes = f'{{ jax = ["{RELEASE}", "path:{python}"] }}'
    project.write({"matrix/own.toml": f"[matrix]\naxes = {axes}\n"})
    own = project.run("run", "--matrix", "own", "--cell", f"path:{python}", "--json", "-")
    assert [cell["id"] for cell in own.json["cells"]] == ids[1:]


@pytest.fixture
def serve_page() -> Iterator[Callable[..., str]]:
    """Return a function that serves one answer, maybe late, and returns the URL."""
    with contextlib.ExitStack() as stack:
        yield lambda *answer, **more: stack.enter_context(serving(*answer, **more))
