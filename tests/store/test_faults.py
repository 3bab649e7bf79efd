"""Faults of a store: locks, damage, kills, concurrent writers and full disks, all of them real."""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from conformance.errors import ConformanceError, InfrastructureError
from conformance.store.backup import find_backup
from conformance.store.database import CorruptStoreError, Database, parse_address
from conformance.store.store import Store
from tests.projects import ROOT
from tests.store.adds_runs import jobs
from tests.store.conftest import open_store
from tests.store.nights import BAD, FINE, night, one, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.store.servers import Server


HOLDS = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1])
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
time.sleep(60)
"""


def adding(where: str, first: int, count: int) -> subprocess.Popen[str]:
    """Start a process that adds runs."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.adds_runs", where, str(first), str(count)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """File of a store of two runs."""
    path = tmp_path / "history.db"
    open_store(str(path)).add(night(1, jobs(1)), night(2, jobs(2)))
    return path


@pytest.fixture
def said() -> list[str]:
    """What a store says."""
    return []


def reopen_store(file: Path, said: list[str]) -> Store:
    """Open a store that may have to be mended."""
    return Store(parse_address(str(file)), said.append)


def test_locked_file_is_infra_after_a_wait(file: Path) -> None:
    """The message names the file; the store works once the lock is released."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, file], stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        started = time.monotonic()
        with pytest.raises(InfrastructureError) as caught:
            open_store(str(file), wait=0.5)
        assert time.monotonic() - started >= 0.5
        holder.kill()
    assert str(caught.value) == (
        f"{file}: another process has been writing to it for 0.5 s; try again when that has ended"
    )
    assert open_store(str(file)).add(night(3, one(BAD))) == [3]


def test_second_writer_of_a_server_is_infra_after_a_wait(postgres: Server) -> None:
    """Readers do not wait."""
    where = postgres.new_database("held")
    store = open_store(where, wait=0.5)
    with Database(parse_address(where)).open_writer():
        with pytest.raises(InfrastructureError, match=r"held: another process .* for 0\.5 s"):
            store.add(night(1, one(BAD)))
        assert store.load_runs() == []
    assert store.add(night(1, one(BAD))) == [1]


def damaged(file: Path, how: str) -> None:
    """Damage a file."""
    data = bytearray(file.read_bytes())
    if how == "cut":
        del data[len(data) // 2 :]
    elif how == "cut within a page":
        del data[-100:]
    elif how == "emptied":
        data.clear()
    elif how == "overwritten":
        data[4096:20000] = b"\xff" * (20000 - 4096)
    else:
        data[:] = b"no database at all"
    file.write_bytes(data)


@pytest.mark.parametrize(
    "how", ["cut", "cut within a page", "emptied", "overwritten", "something else"]
)
def test_damaged_file_is_replaced_by_its_backup(file: Path, said: list[str], how: str) -> None:
    """With a message; the damaged file is kept."""
    damaged(file, how)
    broken = file.read_bytes()
    store = reopen_store(file, said)
    (line,) = said
    assert line.startswith(f"{file}: damaged: ")
    assert line.endswith(f"its last good backup is used, the file is kept as {file}.damaged")
    assert file.with_name("history.db.damaged").read_bytes() == broken
    assert store.load_states(2) == shown(night(2, jobs(2)))
    assert store.add(night(3, one(BAD))) == [3]
    assert len(open_store(str(file)).load_runs()) == 3


def test_damaged_file_without_good_backup_is_unchanged(file: Path, said: list[str]) -> None:
    """The message has a remedy."""
    damaged(file, "cut")
    damaged(find_backup(file), "overwritten")
    before = file.read_bytes()
    for _ in range(2):
        with pytest.raises(CorruptStoreError, match=r"expected a good backup at .* add the runs"):
            reopen_store(file, said)
    find_backup(file).unlink()
    with pytest.raises(CorruptStoreError, match="expected a good backup"):
        reopen_store(file, said)
    assert (file.read_bytes(), said) == (before, [])


def test_damaged_file_is_never_backed_up(file: Path) -> None:
    """The file is damaged after it was opened."""
    store = open_store(str(file))
    good = find_backup(file).read_bytes()
    damaged(file, "overwritten")
    with pytest.raises(CorruptStoreError, match=str(file)):
        store.add(night(3, one(BAD)))
    assert find_backup(file).read_bytes() == good


def test_journal_of_a_damaged_file_is_removed(file: Path, said: list[str]) -> None:
    """SQLite would apply it to the restored file."""
    killed = adding(str(file), 3, 50)
    journal = file.with_name("history.db-journal")
    while not journal.exists():
        time.sleep(0.001)
    kept = journal.read_bytes()
    killed.kill()
    killed.communicate()
    damaged(file, "something else")
    journal.write_bytes(kept)
    store = reopen_store(file, said)
    assert len(said) == 1
    for run in store.load_runs():
        number = int(run.name.removeprefix("night-"))
        assert store.load_states(run.number) == shown(night(number, jobs(number)))


def test_moved_file_is_a_new_store(file: Path) -> None:
    """Its backup stays until something is written."""
    shutil.move(file, file.with_name("elsewhere.db"))
    assert open_store(str(file)).load_runs() == []
    assert find_backup(file).exists()


@pytest.mark.long(keep=1)
def test_concurrent_processes_add_every_run_once(where: str) -> None:
    """The numbers of the runs have no gap."""
    processes = [adding(where, first, 5) for first in (1, 101)]
    for process in processes:
        assert process.communicate(timeout=120)[1] == ""
    store = open_store(where)
    runs = store.load_runs()
    assert [run.number for run in runs] == list(range(1, 11))
    numbers = {run.number: int(run.name.removeprefix("night-")) for run in runs}
    assert sorted(numbers.values()) == [*range(1, 6), *range(101, 106)]
    for run, number in numbers.items():
        assert store.load_states(run) == shown(night(number, jobs(number)))


@pytest.mark.long(keep=1)
def test_killed_writer_leaves_a_consistent_store(where: str) -> None:
    """At any moment; the remaining runs can be added."""
    chance = random.Random(0)  # noqa: S311 - the same moments each time
    first = 1
    for _ in range(4):
        process = adding(where, first, 50)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        runs = open_store(where).load_runs()
        assert [run.name for run in runs] == [f"night-{n}" for n in range(1, len(runs) + 1)]
        first = len(runs) + 1
    store = open_store(where)
    assert store.add(night(first, jobs(first))) == [first]
    for number in range(1, first + 1):
        assert store.load_states(number) == shown(night(number, jobs(number)))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 400 KB; skips where mounting is not permitted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(folder)]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_full_disk_leaves_the_store_unchanged(disk: Path) -> None:
    """One clear error; runs can be added once there is space."""
    store = open_store(str(disk / "history.db"))
    assert store.add(night(1, one(BAD))) == [1]
    ballast = disk / "ballast"
    with pytest.raises(OSError, match="No space"):
        ballast.write_bytes(b"x" * 400_000)
    with pytest.raises(InfrastructureError) as caught:
        store.add(night(2, jobs(2)))
    assert str(caught.value) == (
        f"{disk / 'history.db'}: cannot be written: no space left on device; "
        "free some space and try again"
    )
    assert [run.name for run in open_store(str(disk / "history.db")).load_runs()] == ["night-1"]
    ballast.unlink()
    assert store.add(night(3, one(FINE))) == [2]
    assert [path.name for path in disk.glob(".writing-*")] == []


def test_folder_that_cannot_be_created_is_infra(tmp_path: Path) -> None:
    """The message has the path and a remedy."""
    (tmp_path / "file").write_text("")
    for name in ("file/history.db", "file/more/history.db"):
        with pytest.raises(ConformanceError, match="cannot be"):
            open_store(str(tmp_path / name))


def test_foreign_database_is_unchanged(tmp_path: Path) -> None:
    """A table with a name of the schema is reported."""
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE runs (distance INTEGER)")
    before = file.read_bytes()
    with pytest.raises(CorruptStoreError, match=r"other\.db: expected a store of runs"):
        open_store(str(file))
    assert file.read_bytes() == before
