"""What a script needs beside the packages of a cell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.cells.lock import MAGIC, Lock
from conformance.errors import UsageError
from conformance.triage.programs.overlay import overlay, requirements_of
from tests.cells.fake_index import FakeIndex, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = """\
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "jax==0.5.3",
#   "NumPy",
#   "einops>=0.7",
# ]
# ///
import einops
"""
CELL = ("jax", "jaxlib", "numpy")


def test_a_script_says_what_it_needs() -> None:
    """What the cell has is what is searched, whatever the script says of it."""
    assert requirements_of(SCRIPT, (), CELL) == ("einops>=0.7",)


def test_what_the_user_names_is_wanted_too() -> None:
    """Once each, in order."""
    wanted = requirements_of(SCRIPT, ("chex", "einops>=0.7"), CELL)
    assert wanted == ("chex", "einops>=0.7")


@pytest.mark.parametrize("script", ["import jax\n", "# /// script\n# ///\n", "# /// script\n"])
def test_most_scripts_need_nothing_more(script: str) -> None:
    """Or say nothing."""
    assert requirements_of(script, (), CELL) == ()


@pytest.mark.parametrize(
    ("script", "wanted", "said"),
    [
        ("", ("not a name",), "requirement 'not a name': .*, expected e.g. 'optax>=0.2'"),
        ("# /// script\n# dependencies = [\n# ///\n", (), "header of the script: expected TOML: "),
    ],
)
def test_what_is_no_requirement(script: str, wanted: tuple[str, ...], said: str) -> None:
    """It is told in a sentence."""
    with pytest.raises(UsageError, match=f"^{said}"):
        requirements_of(script, wanted, CELL)


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
