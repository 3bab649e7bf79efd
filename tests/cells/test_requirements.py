"""Requirements in every form that pip accepts."""

from __future__ import annotations

import subprocess
import zipfile
from typing import TYPE_CHECKING

import pytest

from conformance.cells.requirements import (
    build_requirement,
    make_absolute,
    parse_requirement,
    parse_source,
)
from conformance.errors import ConformanceError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

METADATA = "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\nProvides-Extra: fast\n"


def wheel(file: Path, text: str, when: int) -> Path:
    """Write a wheel with one module, as built in some year."""
    with zipfile.ZipFile(file, "w") as files:
        files.writestr(zipfile.ZipInfo("mine.py", (when, 1, 1, 0, 0, 0)), text)
    return file


def test_wheel_is_stored_by_its_content(tmp_path: Path) -> None:
    """Not by the time of its build."""
    name = "my_package-1.0-py3-none-any.whl"
    folders = [tmp_path / str(n) for n in range(3)]
    for folder in folders:
        folder.mkdir()
    said = [
        build_requirement(str(wheel(folder / name, text, when)), tmp_path / "cache")
        for folder, text, when in zip(folders, ("x", "x", "y"), (2020, 2021, 2022), strict=True)
    ]
    assert said[0] == said[1] != said[2]
    assert said[0].startswith("my-package @ file://")
    assert said[0].endswith(f"/{name}")
    assert build_requirement(said[0], tmp_path / "cache") == said[0]


def test_build_leaves_the_source_folder_unchanged(tmp_path: Path) -> None:
    """Nothing is added or removed."""
    folder = tmp_path / "package"
    (folder / "made.egg-info").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "made-up"\nversion = "1"\n'
    )
    (folder / "made_up.py").write_text("")
    assert build_requirement(str(folder), tmp_path / "cache").startswith("made-up @ file:")
    assert sorted(path.name for path in folder.iterdir()) == [
        "made.egg-info", "made_up.py", "pyproject.toml",
    ]  # fmt: skip


def test_pep_508_requirement_is_unchanged(tmp_path: Path) -> None:
    """Also if a folder has its name."""
    assert build_requirement("optax >=0.2", tmp_path) == "optax>=0.2"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not a name", "requirement 'not a name': .*, expected e.g. 'optax>=0.2'"),
        ("{folder}", "has no pyproject.toml, expected the folder of a package"),
        ("{folder}/x-1.0-py3-none-any.whl", "not a wheel: .*No such file"),
        ("{folder}/odd.whl", "not a wheel"),
    ],
)
def test_invalid_source_is_a_usage_error(tmp_path: Path, text: str, said: str) -> None:
    """The message names it."""
    with pytest.raises(ConformanceError, match=said):
        build_requirement(text.format(folder=tmp_path), tmp_path / "cache")


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
def test_requirement_with_a_secret_is_rejected(url: str, *, refused: bool) -> None:
    """It would be stored in `run.json`; the message does not repeat it."""
    if refused:
        with pytest.raises(UsageError, match="netrc") as caught:
            parse_requirement(f"a @ {url}")
        assert "://***@host/a" in str(caught.value)
    else:
        assert parse_requirement(f"a @ {url}").url == url


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A wheel with an extra, in the working directory; what it is kept as."""
    file = tmp_path / "dist" / "mine-1.0-py3-none-any.whl"
    file.parent.mkdir()
    with zipfile.ZipFile(file, "w") as files:
        files.writestr("mine.py", "")
        files.writestr("mine-1.0.dist-info/METADATA", METADATA)
    monkeypatch.chdir(tmp_path)
    return build_requirement(str(file), tmp_path / "cache").partition(" @ ")[2]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("./dist/mine-1.0-py3-none-any.whl", "mine"),
        ("dist/mine-1.0-py3-none-any.whl", "mine"),
        ("./dist/mine-1.0-py3-none-any.whl[fast]", "mine[fast]"),
        ("{folder}/dist/mine-1.0-py3-none-any.whl [fast]", "mine[fast]"),
        ("file://{folder}/dist/mine-1.0-py3-none-any.whl", "mine"),
        ("file:dist/mine-1.0-py3-none-any.whl", "mine"),
        ("mine @ file://{folder}/dist/mine-1.0-py3-none-any.whl", "mine"),
        ("mine[fast] @ file://{folder}/dist/mine-1.0-py3-none-any.whl", "mine[fast]"),
        ("mine[fast]@./dist/mine-1.0-py3-none-any.whl", "mine[fast]"),
    ],
)
def test_all_forms_of_a_path_build_the_same_wheel(
    tmp_path: Path, built: str, text: str, name: str
) -> None:
    """Also after they are made absolute."""
    text = text.format(folder=tmp_path)
    assert build_requirement(text, tmp_path / "cache") == f"{name} @ {built}"
    assert build_requirement(make_absolute(text), tmp_path / "cache") == f"{name} @ {built}"


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "./dist/mine-1.0-py3-none-any.whl[slow]",
            "mine has no extra 'slow', expected one of: fast",
        ),
        ("other @ ./dist/mine-1.0-py3-none-any.whl", "contains the package mine, not other"),
        ("./nothing[fast]", "no such file or folder"),
        ("-e ./dist", "expected one requirement, no option of pip; give a folder"),
        ("-r requirements.txt", "give each line of a requirements file in a --with of its own"),
        ("https://host/mine", "expected NAME @ URL, or the URL of a wheel"),
        ("git+file:///nowhere/of/that/name", "git: .*nowhere/of/that/name"),
    ],
)
def test_invalid_form_is_a_usage_error(tmp_path: Path, text: str, said: str) -> None:
    """One clear error."""
    with pytest.raises(UsageError, match=said):
        build_requirement(text, tmp_path / "cache")


@pytest.mark.parametrize("text", ["optax>=0.2", "optax[tests]", "a @ https://host/a.whl", "pkg"])
def test_names_and_urls_are_no_local_sources(text: str) -> None:
    """Also if a folder has the name."""
    assert parse_source(text) is None
    assert make_absolute(text) == text


def test_wheel_url_is_named_by_its_file(tmp_path: Path) -> None:
    """`NAME @ URL`, from the file name."""
    url = "https://host/mine-1.0-py3-none-any.whl"
    assert build_requirement(url, tmp_path) == f"mine @ {url}"


def test_package_in_a_repository_is_built(tmp_path: Path) -> None:
    """At a revision, in a subdirectory."""
    repository = tmp_path / "repository"
    package = repository / "packages" / "mine"
    package.mkdir(parents=True)
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "mine"\nversion = "1"\n'
    )
    (package / "mine.py").write_text("")
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for arguments in (
        ["init", "-q"],
        ["add", "."],
        [*author, "commit", "-qm", "one"],
        ["tag", "v1"],
    ):
        subprocess.run(["git", *arguments], cwd=repository, check=True)
    url = f"git+file://{repository}@v1#subdirectory=packages/mine"
    for text in (url, f"mine @ {url}"):
        assert build_requirement(text, tmp_path / "cache").startswith("mine @ file://")
    with pytest.raises(ConformanceError, match=r"git: .*v2"):
        build_requirement(url.replace("@v1", "@v2"), tmp_path / "cache")
