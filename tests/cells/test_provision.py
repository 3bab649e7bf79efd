"""Environments: created once, reused while intact, and never left half created."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.cache_folder import cache_root
from conformance.cells import provision as provision_module
from conformance.cells import stored_environments as facts_module
from conformance.cells.cell import Cell
from conformance.cells.interpreter_inspection import Interpreter, inspect_interpreter
from conformance.cells.lock_resolution import find_lock
from conformance.cells.provision import get_environment_folder, is_provisioned, provision
from conformance.cells.stored_environments import EnvironmentFacts, store_facts
from conformance.errors import InfrastructureError

from .builders import HERE, MATRICES, make_lock, make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.cells.lock import Lock
    from conformance.cells.releases import Releases

    from .fake_index import FakeIndex

CELL = Cell(release="0.6.0", python=HERE)


@pytest.fixture
def lock(wheels: Path) -> Lock:
    """A lock with one small package in place of jax."""
    return make_lock(CELL, {"jax": ("0.6.0", make_wheel(wheels, "jax", "0.6.0"))})


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache folder."""
    return tmp_path / "cache"


def run_code(python: Path, code: str) -> str:
    """Run code in an environment and return what it prints."""
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout


def test_environment_has_the_packages_of_its_lock(lock: Lock, cache: Path) -> None:
    """The packages are importable, and the facts are stored."""
    assert not is_provisioned(CELL, lock, cache)
    environment = provision(CELL, lock=lock, cache=cache)
    assert run_code(environment.python, "import jax; print(jax.__version__)") == "0.6.0\n"
    assert environment.versions == {"jax": "0.6.0"}
    assert is_provisioned(CELL, lock, cache)


def test_environment_is_created_once(
    lock: Lock, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second call runs no process."""
    first = provision(CELL, lock=lock, cache=cache)
    monkeypatch.setattr(subprocess, "run", None)
    assert provision(CELL, lock=lock, cache=cache) == first


def test_concurrent_threads_create_it_once(
    lock: Lock, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread creates it, the others wait."""
    made: list[Path] = []
    make = provision_module._create

    def counted(folder: Path, base: Path, lock: Lock, held: int) -> None:
        made.append(folder)
        make(folder, base, lock, held)

    monkeypatch.setattr(provision_module, "_create", counted)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: provision(CELL, lock=lock, cache=cache), range(4)))
    assert len(made) == 1
    assert len({environment.python for environment in found}) == 1


def test_concurrent_processes_share_it(lock: Lock, cache: Path, tmp_path: Path) -> None:
    """Two runs on one cache do not disturb each other."""
    script = tmp_path / "run.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\n"
        "from conformance.cells.cell import Cell\nfrom conformance.cells.lock import Lock\n"
        "from conformance.cells.provision import provision\n"
        f"lock = Lock(text={lock.text!r}, path=Path('x'))\n"
        f"cell = Cell(release='0.6.0', python={HERE!r})\n"
        f"print(provision(cell, lock=lock, cache=Path({str(cache)!r})).python)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    runs = [
        subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=environment)
        for _ in range(2)
    ]
    answers = [run.communicate(timeout=60)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert answers[0] == answers[1] != b""


@pytest.mark.parametrize("damage", ["dist-info", "python", "facts", "gone", "other interpreter"])
def test_damaged_environment_is_created_again(
    lock: Lock, cache: Path, damage: str, tmp_path: Path
) -> None:
    """For every kind of missing or corrupt file."""
    python = provision(CELL, lock=lock, cache=cache).python
    folder = get_environment_folder(CELL, lock, cache)
    site = folder / "lib" / f"python{HERE}" / "site-packages"
    if damage == "dist-info":
        (site / "jax-0.6.0.dist-info").rename(tmp_path / "away")
    elif damage == "python":
        python.unlink()
    elif damage == "facts":
        (folder / "conformance.json").write_text('{"format": 1, "lock"')
    elif damage == "gone":
        (folder / "conformance.json").unlink()
    else:
        python.unlink()
        python.symlink_to("/bin/sh")
    assert not is_provisioned(CELL, lock, cache)
    assert run_code(provision(CELL, lock=lock, cache=cache).python, "import jax; print(1)") == "1\n"


def test_replaced_interpreter_of_the_same_version_is_accepted(
    lock: Lock, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is run once, and the environment is not created again."""
    provision(CELL, lock=lock, cache=cache)
    folder = get_environment_folder(CELL, lock, cache)
    stored = (folder / "conformance.json").read_text()
    (folder / "conformance.json").write_text(
        stored.replace('"interpreter_size":', '"interpreter_size":1')
    )
    asked: list[Path] = []

    def inspect(python: Path) -> Interpreter:
        asked.append(python)
        return inspect_interpreter(python)

    monkeypatch.setattr(facts_module, "inspect_interpreter", inspect)
    assert is_provisioned(CELL, lock, cache)
    assert asked == [folder / "bin" / "python"]


def test_hash_mismatch_leaves_no_environment(lock: Lock, cache: Path, wheels: Path) -> None:
    """The message names package, file, and both hashes."""
    wrong = make_lock(CELL, {"jax": ("0.6.0", "0" * 64)})
    with pytest.raises(InfrastructureError, match="Hash mismatch") as caught:
        provision(CELL, lock=wrong, cache=cache)
    got = lock.text.rpartition("sha256:")[2].strip()
    for part in ("made-up-lock.txt", "jax==0.6.0", f"sha256:{'0' * 64}", f"sha256:{got}"):
        assert part in str(caught.value)
    assert not get_environment_folder(CELL, wrong, cache).exists()


def test_interrupt_removes_the_environment(
    lock: Lock, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C during creation is raised."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(provision_module, "gather_facts", interrupted)
    with pytest.raises(KeyboardInterrupt):
        provision(CELL, lock=lock, cache=cache)
    assert not get_environment_folder(CELL, lock, cache).exists()


def test_environment_of_a_killed_run_is_created_again(lock: Lock, cache: Path) -> None:
    """A folder without facts is not an environment."""
    folder = get_environment_folder(CELL, lock, cache)
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    python = provision(CELL, lock=lock, cache=cache).python
    assert run_code(python, "import jax; print(jax.__version__)") == "0.6.0\n"


def test_cache_that_is_a_file_is_infra(lock: Lock, tmp_path: Path) -> None:
    """The path, the reason, and the variable to set."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="not a directory; set CONFORMANCE_CACHE"):
        provision(CELL, lock=lock, cache=tmp_path / "file")


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[Path]:
    """Mount a file system in memory; skip where that is not permitted."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting is not permitted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_full_disk_leaves_no_environment(wheels: Path, tmp_path: Path) -> None:
    """Infrastructure, with a remedy."""
    (wheels / "big").mkdir()
    lock = make_lock(CELL, {"jax": ("0.6.0", make_wheel(wheels, "jax", "0.6.0"))})
    with small_disk(tmp_path / "disk", "size=24k") as disk:
        # One of the kind is known to be small, so that this one is tried.
        known = EnvironmentFacts(
            lock="", python="", interpreter="", interpreter_size=0, interpreter_mtime_ns=0,
            dist_infos=(), bytes=1,
        )  # fmt: skip
        store_facts(disk / "envs" / "jax0.5.3-py311-abc", known)
        with pytest.raises(InfrastructureError, match=r"No space left.*free space"):
            provision(CELL, lock=lock, cache=disk)
        assert not get_environment_folder(CELL, lock, disk).exists()


def test_missing_disk_space_is_reported_before_creation(lock: Lock, tmp_path: Path) -> None:
    """One line: the needed and the free space, and a remedy."""
    with small_disk(tmp_path / "disk", "size=5m") as disk:
        expected = (
            rf"^{CELL.id}: its environment takes up to 0\.6 GB, {disk} has 5\.\d MB free; .*prune"
        )
        with pytest.raises(InfrastructureError, match=expected):
            provision(CELL, lock=lock, cache=disk)
        assert not get_environment_folder(CELL, lock, disk).exists()


def test_read_only_cache_is_infra(lock: Lock, tmp_path: Path) -> None:
    """A cache that nobody can write, root included."""
    with (
        small_disk(tmp_path / "disk", "size=1m,ro") as disk,
        pytest.raises(InfrastructureError, match="read-only file system; set CONFORMANCE_CACHE"),
    ):
        provision(CELL, lock=lock, cache=disk)


def test_path_cell_is_used_unmodified(lock: Lock, cache: Path) -> None:
    """Nothing is created for an existing environment."""
    cell = Cell(release=f"path:{sys.executable}", python=HERE)
    environment = provision(cell, lock=lock, cache=cache)
    assert environment.python == Path(sys.executable)
    assert not cache.exists()


def test_secrets_of_the_index_are_not_shown(
    lock: Lock, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that does not answer is named without user and password."""
    monkeypatch.delenv("UV_NO_INDEX")
    monkeypatch.delenv("UV_FIND_LINKS")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("CONFORMANCE_INDEX_URL", "http://user:hidden-word@127.0.0.1:9/index/")
    with pytest.raises(InfrastructureError, match=r"127\.0\.0\.1") as caught:
        provision(CELL, lock=lock, cache=cache)
    assert "hidden-word" not in str(caught.value)


@pytest.mark.cell
def test_real_release_is_importable(real_releases: Releases) -> None:
    """Release 0.6.0 from its committed lock."""
    cell = Cell(release="0.6.0", python="3.11")
    cache = cache_root()
    lock = find_lock(cell, real_releases, folders=[MATRICES], cache=cache)
    environment = provision(cell, lock=lock, cache=cache)
    code = "import jax, numpy; print(jax.__version__, numpy.__version__)"
    assert run_code(environment.python, code) == "0.6.0 2.2.4\n"
    path_cell = replace(cell, release=f"path:{environment.python}")
    seen = find_lock(path_cell, real_releases, folders=[], cache=cache)
    assert seen.pins.items() >= lock.pins.items()


@pytest.fixture
def night(index: FakeIndex, nightly: FakeIndex) -> Lock:
    """A lock with a nightly in it, which the package index has in a changed form."""
    version = "0.8.3.dev20251120"
    pins = {
        "jax": (version, nightly.add("jax", version, requires="numpy")),
        "numpy": ("2.0.0", index.add("numpy", "2.0.0")),
    }
    index.add("jax", version)
    nightly.add("numpy", "2.0.0", requires="something-else")
    made = make_lock(Cell(release=version, python=HERE), pins)
    return replace(made, text=made.text.replace("# python", "# nightly: jax\n# python"))


def test_nightly_is_installed_from_its_index(
    night: Lock, nightly: FakeIndex, index: FakeIndex, cache: Path
) -> None:
    """All other packages come from the package index."""
    cell = Cell(release="0.8.3.dev20251120", python=HERE)
    environment = provision(cell, lock=replace(night, nightly_index=nightly.url), cache=cache)
    code = "import jax, numpy; print(jax.__version__, numpy.__version__)"
    assert run_code(environment.python, code) == "0.8.3.dev20251120 2.0.0\n"
    assert "/index/numpy/" not in nightly.requests
    assert "/index/jax/" not in index.requests
    assert not any(
        "://" in file.read_text() for file in environment.python.parents[1].glob("*.txt")
    )


def test_nightly_without_an_index_names_the_setting(night: Lock, cache: Path) -> None:
    """Unless it is installed already."""
    cell = Cell(release="0.8.3.dev20251120", python=HERE)
    with pytest.raises(InfrastructureError, match=r"^jax0.8.3.dev.*set CONFORMANCE_NIGHTLY_INDEX"):
        provision(cell, lock=night, cache=cache)
    assert list((cache / "envs").glob("jax*/*")) == []


def test_vanished_nightly_is_infra(night: Lock, nightly: FakeIndex, cache: Path) -> None:
    """Whether the index answers or not; the message has no credentials."""
    nightly.projects["jax"].clear()
    cell = Cell(release="0.8.3.dev20251120", python=HERE)
    with pytest.raises(InfrastructureError, match=r"cannot set up .* jax==0.8.3.dev20251120"):
        provision(cell, lock=replace(night, nightly_index=nightly.url), cache=cache)
    silent = replace(night, nightly_index="http://user:secret@127.0.0.1:9/index/")
    with pytest.raises(InfrastructureError, match="cannot set up") as caught:
        provision(cell, lock=silent, cache=cache)
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(silent)
