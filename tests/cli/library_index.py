"""A package index with stand-ins of jax and of libraries that build on it."""

from __future__ import annotations

import io
import tarfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import requests
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from conformance.cells.release_index import find_index
from tests.cells.fake_index import JSON, FakeIndex, serve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

OLD, NEW = "0.6.2", "0.7.2"
"""Releases of the stand-in of jax; the second lacks `jax.abandoned`."""
DAYS = {OLD: "2025-06-17", NEW: "2025-09-16"}
BEFORE = "2025-01-31"
"""A day before both releases."""
MODULES = {
    "good": "import jax\n",
    "picky": "import jax\n",
    "stale": "from jax import abandoned\n",
    "wrong": "import jax\nANSWER = 42 if hasattr(jax, 'abandoned') else 41\n",
    "moody": "import jax\n",
}
PROGRAMS = {
    "good": "import good\n\n\ndef test_one():\n    assert good.jax.__version__\n",
    "picky": "def test_one():\n    assert True\n",
    "stale": "def test_one():\n    import stale\n    assert stale.abandoned() == 1\n",
    "wrong": "import wrong\n\n\ndef test_right():\n    assert wrong.jax\n\n\n"
    "def test_answer():\n    assert wrong.ANSWER == 42\n",
    # Fails in the first attempt alone.
    "moody": "from pathlib import Path\n\n\ndef test_mood():\n"
    "    seen = Path(__file__).with_name('seen')\n    before = seen.exists()\n"
    "    seen.touch()\n    assert before\n",
}
SDIST_TESTS = {
    "tests/test_good.py": "import good\n\n\ndef test_shipped():\n    assert good.jax\n\n\n"
    "def test_also():\n    assert good.__file__.startswith('/')\n",
    "pyproject.toml": "[tool.pytest.ini_options]\n",
    "good.py": "raise AssertionError('the installed library is tested, not this one')\n",
}


class LibraryIndex(FakeIndex):
    """The stand-ins, and every other project of the real index."""

    def add_sdist(self, name: str, version: str, files: Mapping[str, str]) -> None:
        """Add a source distribution with some files."""
        filename = f"{name}-{version}.tar.gz"
        with tarfile.open(self.folder / filename, "w:gz") as archive:
            for path, text in files.items():
                member = tarfile.TarInfo(f"{name}-{version}/{path}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
        url = f"{self.url.removesuffix('/index/')}/files/{filename}"
        self.projects[name].append(
            {
                "filename": filename, "url": url, "hashes": {}, "requires-python": ">=3.9",
                "yanked": False, "upload-time": f"{BEFORE}T12:00:00Z",
            }
        )  # fmt: skip

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Return content type and body of a request."""
        found = super().answer(path)
        kind, _, name = path.strip("/").partition("/")
        if found is not None or kind != "index":
            return found
        index = (self.fallback or PYPI_SIMPLE_ENDPOINT).rstrip("/")
        answer = requests.get(f"{index}/{name}/", headers={"Accept": JSON}, timeout=60)
        return (answer.headers["content-type"], answer.content) if answer.ok else None

    fallback: str = ""


@contextmanager
def serve_libraries(folder: Path) -> Iterator[LibraryIndex]:
    """Serve an index with the stand-ins.

    Args:
        folder: Folder of its files.
    """
    folder.mkdir()
    index = LibraryIndex(folder=folder)
    index.fallback = find_index()
    server = serve(index)
    try:
        for version, day in DAYS.items():
            more = "def abandoned():\n    return 1\n" if version == OLD else ""
            source = f"__version__ = '{version}'\n{more}"
            index.add("jax", version, day=day, files={"jax/__init__.py": source})
            index.add("jaxlib", version, day=day, files={"jaxlib/__init__.py": ""})
        for name, source in MODULES.items():
            # The newest `picky` refuses the newer release, an older one does not and breaks.
            requires = "jax<0.7" if name == "picky" else "jax"
            index.add(name, "1.0", day=BEFORE, requires=requires, files={f"{name}.py": source})
        broken = "from jax import abandoned\n"
        index.add("picky", "0.9", day="2025-01-01", requires="jax", files={"picky.py": broken})
        late = {"late.py": "import jax\n"}
        index.add("late", "1.0", day="2025-08-01", requires="jax", files=late)
        index.add_sdist("good", "1.0", SDIST_TESTS)
        yield index
    finally:
        server.shutdown()
        server.server_close()


def make_definitions() -> dict[str, str]:
    """Return the definitions of the libraries, by path in a project."""
    names: dict[str, Any] = {**PROGRAMS, "late": "def test_one():\n    assert True\n"}
    files = {
        f"ecosystem/{name}.toml": f"repository = 'someone/{name}'\nimports = ['{name}']\n"
        f"program = '''\n{program}'''\n"
        for name, program in names.items()
    }
    files["ecosystem/good.toml"] += "[tests]\npath = 'tests'\n"
    return files
