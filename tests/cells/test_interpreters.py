"""Search for interpreters: order, dead shims, downloads, and the message if none is found."""

from __future__ import annotations

import json
import platform
import re
import sys
import sysconfig
import tarfile
import threading
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from conformance.cells import interpreters
from conformance.cells.interpreter_inspection import inspect_interpreter, inspect_path_environment
from conformance.cells.interpreters import (
    MissingInterpreterError,
    find_interpreter,
    forget_interpreters,
)
from conformance.errors import InfrastructureError, UsageError

from .builders import HERE, make_python

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("missing_interpreter_fails")

BUILDS = "https://github.com/astral-sh/python-build-standalone/releases/download"
"""URL of the builds of uv, which a mirror replaces."""
_LIST_UV_MANAGED = interpreters._list_uv_managed


def answer(version: str, base: Path, **more: object) -> str:
    """Return a shell script that answers as an interpreter would."""
    implementation = more.get("implementation", "cpython")
    threads = "true" if more.get("free_threaded") else "false"
    return (
        f'echo \'{{"version": "{version}", "implementation": "{implementation}", '
        f'"base": "{base}", "free_threaded": {threads}}}\''
    )


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with nothing but what the test puts into pyenv/ and bin/."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.delenv("CONFORMANCE_PYTHON_DOWNLOADS", raising=False)
    monkeypatch.setattr(interpreters, "_list_uv_managed", lambda python: iter(()))
    return tmp_path


def test_running_interpreter_comes_first() -> None:
    """The base of the running interpreter, not its virtual environment."""
    found = find_interpreter(HERE)
    assert found == Path(getattr(sys, "_base_executable", sys.executable))


def test_base_of_a_virtual_environment_is_returned(tmp_path: Path) -> None:
    """The interpreter of an environment reports its base."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    found = inspect_interpreter(tmp_path / "env" / "bin" / "python")
    assert not Path(found.base).is_relative_to(tmp_path)


def test_newest_patch_of_pyenv_is_returned(world: Path) -> None:
    """3.9.10 is newer than 3.9.2; 3.9-dev and pypy are ignored."""
    for name in ("3.9.2", "3.9.10", "pypy3.9-7.3", "3.9-dev"):
        python = world / "pyenv" / "versions" / name / "bin" / "python"
        make_python(python, answer(name, python))
    assert find_interpreter("3.9") == world / "pyenv/versions/3.9.10/bin/python"


def test_dead_shim_is_skipped(world: Path) -> None:
    """A candidate that does not run is rejected, and the next one is tried."""
    make_python(world / "pyenv/versions/3.9.1/bin/python", "echo not installed >&2; exit 127")
    alive = make_python(world / "bin" / "python3.9", answer("3.9.4", world / "base"))
    assert alive.exists()
    assert find_interpreter("3.9") == world / "base"


def test_message_lists_rejected_candidates(world: Path) -> None:
    """Each candidate with the reason, and what to do."""
    versions = world / "pyenv" / "versions"
    make_python(versions / "3.9.1/bin/python", "echo pyenv: python: not found >&2; exit 127")
    make_python(versions / "3.9.2/bin/python", answer("3.8.5", world))
    make_python(versions / "3.9.3/bin/python", answer("3.9.3", world, implementation="pypy"))
    make_python(versions / "3.9.4/bin/python", answer("3.9.4", world, free_threaded=True))
    make_python(versions / "3.9.5/bin/python", "echo hello")
    with pytest.raises(MissingInterpreterError) as caught:
        find_interpreter("3.9")
    message = str(caught.value)
    assert caught.value.python == "3.9"
    for part in (
        "python 3.9: no interpreter runs on this host",
        "exit status 127: pyenv: python: not found",
        "is 3.8.5",
        "is pypy, expected a plain CPython",
        "is free-threaded, expected a plain CPython",
        "not a Python interpreter",
        "uv python install 3.9",
        "package of python3.9",
        "on PATH",
    ):
        assert part in message


def test_message_without_any_candidate(world: Path) -> None:
    """It reports that there was no candidate."""
    with pytest.raises(MissingInterpreterError, match="no candidate found"):
        find_interpreter("3.9", download=False)


PACKED = (
    *("collections", "encodings", "importlib", "json", "lib-dynload", "pathlib", "re", "string"),
    *("sysconfig", "urllib"),
)
"""Folders of a standard library that an interpreter needs to say what it is."""


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A mirror of uv's on this host, whose one build is the running Python; requests to it.

    uv checks a build against its own list of digests, so the list is a stand-in, too.
    """
    release = f"{BUILDS}/20250101/cpython-{HERE}.99%2B20250101-install_only.tar.gz"
    (tmp_path / "builds" / "20250101").mkdir(parents=True)
    _pack_python(tmp_path / "builds" / "20250101" / unquote(release.rpartition("/")[2]))
    system, machine = platform.system().lower(), platform.machine()
    build = {
        "name": "cpython", "arch": {"family": machine, "variant": None}, "os": system,
        "libc": "gnu", "major": 3, "minor": sys.version_info[1], "patch": 99, "prerelease": "",
        "url": release, "sha256": None, "variant": None, "build": "20250101",
    }  # fmt: skip
    (tmp_path / "builds.json").write_text(
        json.dumps({f"cpython-{HERE}.99-{system}-{machine}-gnu": build})
    )
    requests: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            requests.append(self.path)

    handler = partial(Handler, directory=str(tmp_path / "builds"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", address)
        monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", str(tmp_path / "builds.json"))
        yield requests
        server.shutdown()


def _pack_python(archive: Path) -> None:
    """Pack what the running interpreter needs to start, as uv's builds are packed."""
    library = Path(sysconfig.get_path("stdlib"))
    base = getattr(sys, "_base_executable", sys.executable)
    # Debian links some modules to files outside, which uv refuses.
    with tarfile.open(archive, "w:gz", compresslevel=1, dereference=True) as packed:
        packed.add(Path(base).resolve(), f"python/bin/python{HERE}")
        for path in library.iterdir():
            if path.suffix == ".py" or path.name in PACKED:
                packed.add(path, f"python/lib/python{HERE}/{path.name}")


@pytest.fixture
def bare(world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host without any interpreter but those that uv manages, which are none at first."""
    monkeypatch.setattr(interpreters, "_list_running", lambda python: iter(()))
    monkeypatch.setattr(interpreters, "_list_uv_managed", _LIST_UV_MANAGED)
    monkeypatch.delenv("UV_OFFLINE")
    monkeypatch.delenv("UV_PYTHON_DOWNLOADS", raising=False)
    monkeypatch.setenv("HOME", str(world / "home"))
    monkeypatch.setenv("UV_CACHE_DIR", str(world / "uv-cache"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(world / "pythons"))
    return world


def test_uv_downloads_a_missing_python(bare: Path, mirror: list[str]) -> None:
    """From the configured mirror, once for all callers."""
    with ThreadPoolExecutor(4) as pool:
        (found,) = set(pool.map(find_interpreter, [HERE] * 4))
    assert found.resolve().is_relative_to(bare / "pythons")
    assert inspect_interpreter(found).version.startswith(HERE)
    assert len(mirror) == 1
    assert not (bare / "home" / ".local" / "bin").exists()  # nothing on the user's PATH
    forget_interpreters()
    assert find_interpreter(HERE, download=False) == found


@pytest.mark.parametrize("said", ["0", "false", "Never"])
def test_download_can_be_forbidden(
    bare: Path, mirror: list[str], monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """By the environment variable, and by an argument."""
    with pytest.raises(MissingInterpreterError):
        find_interpreter(HERE, download=False)
    monkeypatch.setenv("CONFORMANCE_PYTHON_DOWNLOADS", said)
    with pytest.raises(MissingInterpreterError, match="no candidate found"):
        find_interpreter(HERE)
    assert mirror == []
    assert not (bare / "pythons").exists()


def test_failed_download_is_reported_once_with_three_remedies(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line: why uv failed, and how to get the Python; it is not tried again."""
    monkeypatch.delenv("UV_PYTHON_DOWNLOADS_JSON_URL", raising=False)
    monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", "http://127.0.0.1:9")
    messages, seconds = set(), []
    for _ in range(20):
        begun = time.monotonic()
        with pytest.raises(MissingInterpreterError) as caught:
            find_interpreter("3.13")
        messages.add(str(caught.value))
        seconds.append(time.monotonic() - begun)
    assert sum(seconds[1:]) < seconds[0]
    (message,) = messages
    assert re.fullmatch(
        r"python 3\.13: no interpreter runs on this host "
        r"\(uv: Failed to install cpython-3\.13\.\S+: [^;]+"
        r"refused[^;]+\); install one with 'uv python install 3\.13', install the distribution's "
        r"package of python3\.13, or put a python3\.13 on PATH",
        message,
    ), message


def test_pyenv_is_found_without_pyenv_root(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the home folder, unless the variable is set."""
    monkeypatch.delenv("PYENV_ROOT")
    monkeypatch.setenv("HOME", str(world))
    python = world / ".pyenv" / "versions" / "3.9.2" / "bin" / "python"
    make_python(python, answer("3.9.2", python))
    assert find_interpreter("3.9") == python


def test_hanging_interpreter_is_rejected(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate must answer within a time limit."""
    monkeypatch.setattr("conformance.cells.interpreter_inspection.TIMEOUT", 0.05)
    hung = make_python(world / "bin" / "python3.9", "exec /bin/sleep 5")
    with pytest.raises(InfrastructureError, match="no answer within"):
        inspect_interpreter(hung)


def test_missing_path_interpreter_is_a_usage_error(tmp_path: Path) -> None:
    """The path is named, also one that is too long for a file name."""
    for name in ("nowhere", "n" * 5000, "null\0byte"):
        with pytest.raises(UsageError, match="no such file, expected the python of an environ"):
            inspect_path_environment(tmp_path / name)
