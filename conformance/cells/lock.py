"""A lock: every package of an environment by version and hash, as text."""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from packaging.version import Version

from conformance.errors import InfrastructureError
from conformance.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAGIC = "jax-conformance lock 1"
NIGHTLIES = "nightly"
"""The comment line that says which packages are nightlies, from an index of their own."""
_HEADER = re.compile(r"^# ([a-z][a-z- ]*): (.*)$", re.MULTILINE)
_PIN = re.compile(r"^([a-z0-9][a-z0-9-]*)==([^\s;\\]+)", re.MULTILINE)
_LINE = re.compile(r"(?:#.*|[a-z0-9][a-z0-9-]*==[^\s;\\]+.*| +--hash=sha256:[0-9a-f]+.*)?")
_WHOLE_PIN = re.compile(r"^([a-z0-9][a-z0-9-]*)==(?:[^\n]*\\\n)*[^\n]*\n", re.MULTILINE)


class UnsupportedHostError(InfrastructureError):
    """A lock has no wheels for this host; the release was never built for it."""


@dataclass(frozen=True, kw_only=True)
class Lock:
    """The packages of an environment, by version and hash.

    Attributes:
        text: Requirements with hashes; comment lines on top say what they are for.
        path: File it is stored in.
        nightly_index: Where its nightlies are to be had; no part of the text, for it may hold
            credentials.
    """

    text: str
    path: Path
    nightly_index: str = field(default="", repr=False, compare=False)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """Its comment lines by name: `environment`, `python`, `requires`, `exclude-newer`."""
        return dict(_HEADER.findall(self.text))

    @property
    def nightlies(self) -> tuple[str, ...]:
        """Packages that are nightlies."""
        return tuple(self.headers.get(NIGHTLIES, "").split())

    @cached_property
    def pins(self) -> Mapping[str, str]:
        """Version by normalised package name."""
        return dict(_PIN.findall(self.text))

    @cached_property
    def entries(self) -> Mapping[str, str]:
        """The lines of each package, with its hashes, by normalised name."""
        return {match[1]: match[0] for match in _WHOLE_PIN.finditer(self.text)}

    def parts(self) -> tuple[str, str]:
        """Return the text without its nightlies, and the pins of those alone, maybe empty."""
        nightly = [self.entries[name] for name in self.nightlies if name in self.entries]
        text = self.text
        for pin in nightly:
            text = text.replace(pin, "")
        return text, "".join(nightly)


def current_host() -> str:
    """Return this host as locks name it: `linux-x86_64`, `linux-aarch64`, `macos-arm64`."""
    machine = {"AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    return f"{'macos' if sys.platform == 'darwin' else sys.platform}-{machine}"


def check_host(lock: Lock) -> None:
    """Check that a lock can be installed on this host.

    Args:
        lock: Lock to install.

    Raises:
        UnsupportedHostError: If its packages have no wheels for it.
    """
    hosts = lock.headers.get("hosts", "").split()
    if current_host() not in hosts:
        raise UnsupportedHostError(
            f"{lock.headers.get('environment')}: no wheels for {current_host()}, "
            f"only for {', '.join(hosts)}; leave the release out on this host"
        )


def read_lock(path: Path) -> Lock | None:
    """Read a lock.

    Args:
        path: File of the lock.

    Returns:
        The lock, or None when there is no such file.

    Raises:
        InfrastructureError: If the file cannot be read, or is no lock of this format.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InfrastructureError(f"{path}: cannot read the lock: {error}") from error
    first = text.partition("\n")[0]
    if first != f"# {MAGIC}":
        raise InfrastructureError(
            f"{path}: got {first[:60]!r}, expected '# {MAGIC}'; delete the file to lock again"
        )
    lock = Lock(text=text, path=path)
    if damage := _damage(lock):
        raise InfrastructureError(
            f"{path}: damaged: {damage}; restore it, or delete it to lock again"
        )
    return lock


def _damage(lock: Lock) -> str:
    """Return why a text is no whole lock, empty if it is one."""
    for number, line in enumerate(lock.text.split("\n"), 1):
        if not _LINE.fullmatch(line):
            return f"line {number} is {line[:60]!r}, expected a pin or its hash"
    if not lock.text.endswith("\n") or lock.text.endswith("\\\n"):
        return "it ends too early"
    if "environment" not in lock.headers:
        return "it does not name its environment"
    try:
        Version(lock.pins.get("jax", ""))
    except ValueError:  # also a number of thousands of digits
        return f"got {lock.pins.get('jax', 'no version')!r} as the version of jax"
    return ""


def store_lock(lock: Lock, folder: Path) -> Lock:
    """Store a lock as `<environment>.txt`.

    Args:
        lock: Lock to store.
        folder: Folder of the locks, made if need be.

    Returns:
        The lock as stored.

    Raises:
        InfrastructureError: If it cannot be written.
    """
    path = folder / f"{lock.headers['environment']}.txt"
    write_atomically(path, lock.text.encode())
    return Lock(text=lock.text, path=path)
