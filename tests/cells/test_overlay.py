"""Packages beside those of a cell."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.cells.lock import MAGIC, Lock
from conformance.cells.overlay import installed_in, overlay, requirement, wanted_requirement
from conformance.errors import ConformanceError, UsageError
from tests.cells.fake_index import FakeIndex, serve

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIndex]:
    """A package index with a package that wants any jax, and with none itself."""
    folder = tmp_path / "index"
    folder.mkdir()
    made = FakeIndex(folder=folder)
    server = serve(made)
    made.add("wanting", "1.0", requires="jax>=0.4;helper")
    made.add("helper", "2.0")
    monkeypatch.setenv("CONFORMANCE_INDEX_URL", made.url)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    yield made
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("index")
def test_a_package_that_wants_jax_goes_with_a_nightly(tmp_path: Path) -> None:
    """Which the cell has, and which no package index has."""
    text = f"# {MAGIC}\n# nightly: jax\njax==0.8.3.dev20251120 \\\n    --hash=sha256:00\n"
    lock = Lock(text=text, path=tmp_path / "lock.txt")
    folder = overlay(Path(sys.executable), lock, ("wanting",), tmp_path)
    assert folder is not None
    assert (folder / "wanting").is_dir()
    assert (folder / "helper").is_dir()
    assert not (folder / "jax").exists()
    assert installed_in(folder) == {"wanting": "1.0", "helper": "2.0"}


def wheel(file: Path, text: str, when: int) -> Path:
    """Write a wheel with one module, as built in some year."""
    with zipfile.ZipFile(file, "w") as files:
        files.writestr(zipfile.ZipInfo("mine.py", (when, 1, 1, 0, 0, 0)), text)
    return file


def test_a_wheel_is_known_by_its_content(tmp_path: Path) -> None:
    """Not by when it was built."""
    name = "my_package-1.0-py3-none-any.whl"
    folders = [tmp_path / str(n) for n in range(3)]
    for folder in folders:
        folder.mkdir()
    said = [
        wanted_requirement(str(wheel(folder / name, text, when)), tmp_path / "cache")
        for folder, text, when in zip(folders, ("x", "x", "y"), (2020, 2021, 2022), strict=True)
    ]
    assert said[0] == said[1] != said[2]
    assert said[0].startswith("my-package @ file://")
    assert said[0].endswith(f"/{name}")
    assert wanted_requirement(said[0], tmp_path / "cache") == said[0]


def test_a_build_leaves_nothing_in_the_folder_of_a_package(tmp_path: Path) -> None:
    """Nor does it take away what was there."""
    folder = tmp_path / "package"
    (folder / "made.egg-info").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "made-up"\nversion = "1"\n'
    )
    (folder / "made_up.py").write_text("")
    assert wanted_requirement(str(folder), tmp_path / "cache").startswith("made-up @ file:")
    assert sorted(path.name for path in folder.iterdir()) == [
        "made.egg-info", "made_up.py", "pyproject.toml",
    ]  # fmt: skip


def test_a_requirement_is_wanted_as_it_is(tmp_path: Path) -> None:
    """Also where a folder has its name."""
    assert wanted_requirement("optax >=0.2", tmp_path) == "optax>=0.2"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not a name", "requirement 'not a name': .*, expected e.g. 'optax>=0.2'"),
        ("{folder}", "has no pyproject.toml, expected the folder of a package"),
        ("{folder}/x-1.0-py3-none-any.whl", "is no wheel: .*No such file"),
        ("{folder}/odd.whl", "is no wheel"),
    ],
)
def test_what_cannot_be_wanted(tmp_path: Path, text: str, said: str) -> None:
    """One error that says which."""
    with pytest.raises(ConformanceError, match=said):
        wanted_requirement(text.format(folder=tmp_path), tmp_path / "cache")


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("https://user:word@host/a.whl", True),
        ("git+https://token@host/a.git", True),
        ("https://host/a.whl", False),
        ("git+ssh://git@host/a.git", False),
        ("git+ssh://git:word@host/a.git", True),
    ],
)
def test_a_secret_in_what_is_wanted_is_refused(url: str, *, refused: bool) -> None:
    """It would stand in `run.json`; the message does not repeat it."""
    if refused:
        with pytest.raises(UsageError, match="netrc") as caught:
            requirement(f"a @ {url}")
        assert "://***@host/a" in str(caught.value)
    else:
        assert requirement(f"a @ {url}").url == url
