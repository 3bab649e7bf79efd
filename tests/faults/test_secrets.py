"""Secrets of the environment and of URLs: in no record, log, page or message."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.faults.conftest import OTHER
from tests.projects import HEAD, RELEASE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import MakeProject
    from tests.projects import Project

pytestmark = pytest.mark.cell
CANARY = "c4nary"
NOWHERE = "127.0.0.1:9"
SECRETS = {
    "GITHUB_TOKEN": f"ghp_{CANARY}0",
    "AWS_SECRET_ACCESS_KEY": f"{CANARY}/1+x",
    "MY_API_KEY": f"{CANARY}-2",
    "PGPASSWORD": f"{CANARY}-3",
    "DATABASE_URL": f"postgresql://someone:{CANARY}-4@{NOWHERE}/runs",
    "CONFORMANCE_STORE": f"postgresql://someone:{CANARY}-5@{NOWHERE}/runs",
    "UV_DEFAULT_INDEX": f"http://user:{CANARY}-6@{NOWHERE}/index/",
    "UV_EXTRA_INDEX_URL": f"http://{CANARY}-7@{NOWHERE}/more/",
    "PIP_INDEX_URL": f"http://user:{CANARY}-8@{NOWHERE}/index/",
    "CONFORMANCE_NIGHTLY_INDEX": f"http://user:{CANARY}@9@{NOWHERE}/nightly/",
    "UV_INDEX_PRIVATE_PASSWORD": f"{CANARY}-10",
    "MY_PROXY": f"http://user:{CANARY}-11@{NOWHERE}/",
}
TELLS = f"""\
{HEAD}


@probe()
def prints(env):
    import os, sys
    print(dict(os.environ))
    print(dict(os.environ), file=sys.stderr)
    raise ValueError(str(dict(os.environ)))


@probe()
def deviates(env):
    import os
    return Observed(len(os.environ), reference=-1)
"""
SCRIPT = "import os, sys\nprint(os.environ, file=sys.stderr)\nsys.exit(1)\n"


@pytest.fixture
def project(new_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose cases tell what they know, in an environment full of secrets."""
    for name in ("CONFORMANCE_INDEX_URL", "UV_FIND_LINKS", "UV_INDEX_URL", "UV_INDEX"):
        monkeypatch.delenv(name, raising=False)
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("HARMLESS", "told")
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login user password {CANARY}-12\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    return new_project({"cases/fam/topic.py": TELLS, "script.py": SCRIPT})


def said_by(project: Project, *arguments: str | Path) -> str:
    """Run a command in a process of its own; return what it printed."""
    process = project.start(*arguments)
    out, error = process.communicate(timeout=120)
    return out + error


def found_in(*folders: Path) -> list[str]:
    """Return the files that hold a secret."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if CANARY.encode() in path.read_bytes()]


def test_no_secret_is_written_or_said(
    project: Project, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a run, of one that cannot have its environments, and of all that is made of them."""
    one = tmp_path / "one"
    said = [said_by(project, "run", "--cell", RELEASE, "--run-dir", one, "--verbose", "--report")]
    assert (one / "blobs").exists(), said
    printed = b"".join(path.read_bytes() for path in (one / "blobs").iterdir())
    assert b"HARMLESS" in printed  # what is no secret is passed on
    said += [said_by(project, "run", "--resume", "--run-dir", one, "--json", "-")]
    # Another place for environments: they would have to be made, and cannot.
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    (project.path / "matrix" / "locks" / f"jax{OTHER}-py311.txt").unlink()
    cells = ("--cell", RELEASE, "--cell", OTHER, "--cell", "nightly")
    two = tmp_path / "two"
    said += [said_by(project, "run", *cells, "--run-dir", two)]
    assert "infra" in said[-1]
    said += [said_by(project, "run", "--cell", RELEASE, "--with", "optax", "--verbose")]
    said += [said_by(project, "doctor"), said_by(project, "matrix", "releases", "--refresh")]
    monkeypatch.setenv("CONFORMANCE_CACHE", str(cache))
    said += [said_by(project, "history", "add", one)]
    assert "connection failed" in said[-1]
    monkeypatch.delenv("CONFORMANCE_STORE")
    out = tmp_path / "out"
    out.mkdir()
    formats = ("markdown", "junit", "csv", "jobs-csv", "json", "jsonl")
    files = [word for name in formats for word in (f"--{name}", str(out / name))]
    said += [said_by(project, "report", one, two, "--out", out / "site", *files)]
    assert (out / "site" / "index.html").exists(), said[-1]
    said += [said_by(project, "history", "add", one), said_by(project, "history", "fam/prints")]
    assert "ValueError" in said[-1]
    said += [
        said_by(
            project, "repro", "fam/prints", "--cell", RELEASE, "--issue", "--out", out / "r.py"
        ),
        said_by(project, "bisect", "script.py", "--good", RELEASE, "--bad", OTHER),
    ]
    assert [text for text in said if CANARY in text] == []
    folders = [project.path, one, two, out, cache / "results", cache / "blobs", tmp_path / "empty"]
    assert found_in(*folders) == []
    assert CANARY in "".join(os.environ.values())
