"""A real PostgreSQL server: of the system, or of the package that ships one."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator

USER, PASSWORD = "keeper", "p@ss:wörd/%"
ESCAPED = "p%40ss%3Aw%C3%B6rd%2F%25"
_SECONDS = 60


class NoServerError(Exception):
    """No server can be started; the message has the reason."""


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    port: int

    def url(self, database: str = "postgres", password: str = ESCAPED) -> str:
        """Return the URL of a database."""
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """Return a connection in which each statement counts at once."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, dbname=database, user=USER, password=PASSWORD,
            autocommit=True,
        )  # fmt: skip

    def new_database(self, name: str) -> str:
        """Make a database and return its URL."""
        with self.connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.url(name)


def programs() -> Path:
    """Return the folder of the server's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    spec = importlib.util.find_spec("pgserver")
    if spec is not None and spec.origin is not None:
        found = [*Path(spec.origin).parent.glob("pginstall/bin/initdb"), *found]
    on_path = shutil.which("initdb")
    found += [Path(on_path)] if on_path else []
    if not found:
        raise NoServerError("no PostgreSQL server here: neither the system's nor pgserver's")
    return found[-1].parent


@contextlib.contextmanager
def server() -> Iterator[Server]:
    """Start a server with one user, and stop it in the end."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        owner = _owner(folder)
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        made = subprocess.run(
            [programs() / "initdb", "-D", folder / "data", "-U", USER, "-A", "scram-sha-256",
             "-E", "UTF8", "--locale=C", "--no-sync", f"--pwfile={secret}"],
            capture_output=True, text=True, check=False, cwd=folder, **owner,
        )  # fmt: skip
        if made.returncode:
            raise NoServerError(f"initdb: {made.stderr.strip()}")
        yield from _running(folder, owner)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _owner(folder: Path) -> dict[str, Any]:
    """Give a folder to whom the server runs as: it refuses to be root."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    folder.chmod(0o755)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": ()}


def _running(folder: Path, owner: dict[str, Any]) -> Iterator[Server]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [programs() / "postgres", "-D", folder / "data", "-p", str(port), "-k", folder,
             "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"],
            stdout=out, stderr=out, cwd=folder, **owner,
        )  # fmt: skip
    try:
        _wait(Server(port), process, log)
        yield Server(port)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(_SECONDS)


def _wait(started: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _SECONDS
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(psycopg.OperationalError):
            started.connect().close()
            return
        time.sleep(0.1)
    raise NoServerError(f"the server does not start: {log.read_text().strip()}")
