"""Locks: every package of an environment by version and hash, and the locks of other tools."""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from conformance.errors import InfrastructureError, UsageError
from conformance.files import MALFORMED, describe_os_error, write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAGIC = "jax-conformance lock 1"
NIGHTLIES = "nightly"
"""Name of the comment line that lists the packages from the index of nightlies."""
_HEADER = re.compile(r"^# ([a-z][a-z- ]*): (.*)$", re.MULTILINE)
_PIN = re.compile(r"^([a-z0-9][a-z0-9-]*)==([^\s;\\]+)", re.MULTILINE)
# Every line must match: a truncated or merged file may still contain valid pins.
_LINE = re.compile(r"(?:#.*|[a-z0-9][a-z0-9-]*==[^\s;\\]+.*| +--hash=sha256:[0-9a-f]+.*)?")
# With extras, as in `jax[cuda12]==0.6.2`, and with the `===` of local builds.
_FOREIGN_PIN: Final = re.compile(
    r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*===?\s*([^\s;#\\,]+)", re.MULTILINE
)
_ENTRY = re.compile(r"^([a-z0-9][a-z0-9-]*)==(?:[^\n]*\\\n)*[^\n]*\n", re.MULTILINE)


class UnsupportedHostError(InfrastructureError):
    """The packages of a lock have no wheels for this host."""


# No slots: `cached_property` stores its values in the instance.
@dataclass(frozen=True, kw_only=True)
class Lock:
    """The packages of an environment, by version and hash.

    Attributes:
        text: Requirements with hashes, below comment lines with the cell's properties.
        path: File of the lock.
        nightly_index: URL of the index of its nightlies; not a part of the text, because it may
            contain credentials.
    """

    text: str
    path: Path
    nightly_index: str = field(default="", repr=False, compare=False)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        # With the comment lines: a lock for another Python or other hosts is another environment.
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """Comment lines by name: `environment`, `python`, `requires`, `exclude-newer`."""
        return dict(_HEADER.findall(self.text))

    @property
    def nightlies(self) -> tuple[str, ...]:
        """Names of the packages that are nightlies."""
        return tuple(self.headers.get(NIGHTLIES, "").split())

    @cached_property
    def pins(self) -> Mapping[str, str]:
        """Version by normalised package name."""
        return dict(_PIN.findall(self.text))

    @cached_property
    def entries(self) -> Mapping[str, str]:
        """Lines of each package, with its hashes, by normalised name."""
        return {match[1]: match[0] for match in _ENTRY.finditer(self.text)}

    def split_nightlies(self) -> tuple[str, str]:
        """Return the text without its nightlies, and the entries of the nightlies alone."""
        nightlies = [self.entries[name] for name in self.nightlies if name in self.entries]
        text = self.text
        for entry in nightlies:
            text = text.replace(entry, "")
        return text, "".join(nightlies)


def get_host() -> str:
    """Return the name of this host in locks: `linux-x86_64`, `linux-aarch64`, `macos-arm64`."""
    # Windows reports AMD64.
    machine = {"AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    return f"{'macos' if sys.platform == 'darwin' else sys.platform}-{machine}"


def check_host(lock: Lock) -> None:
    """Check that a lock can be installed on this host.

    Args:
        lock: Lock to install.

    Raises:
        UnsupportedHostError: If the packages have no wheels for this host.
    """
    hosts = lock.headers.get("hosts", "").split()
    if get_host() not in hosts:
        raise UnsupportedHostError(
            f"{lock.headers.get('environment')}: no wheels for {get_host()}, "
            f"only for {', '.join(hosts)}; leave the release out on this host"
        )


def read_lock(path: Path) -> Lock | None:
    """Read a lock.

    Args:
        path: File of the lock.

    Returns:
        The lock; None if there is no such file.

    Raises:
        InfrastructureError: If the file cannot be read or is not a lock of this format.
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
    if damage := _find_damage(lock):
        raise InfrastructureError(
            f"{path}: damaged: {damage}; restore it, or delete it to lock again"
        )
    return lock


def _find_damage(lock: Lock) -> str:
    """Return why a lock is not complete and valid, empty if it is."""
    for number, line in enumerate(lock.text.split("\n"), 1):
        if not _LINE.fullmatch(line):
            return f"line {number} is {line[:60]!r}, expected a pin or its hash"
    # A file that was cut between two lines has valid lines only.
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
        folder: Folder of the locks, created if missing.

    Returns:
        The lock as stored.

    Raises:
        InfrastructureError: If it cannot be written.
    """
    path = folder / f"{lock.headers['environment']}.txt"
    write_atomically(path, lock.text.encode())
    return Lock(text=lock.text, path=path)


def read_foreign_pins(file: Path) -> Mapping[str, str]:
    """Return the version of each package in the lock of another tool, by normalised name.

    Args:
        file: Pinned requirements as written by `uv pip compile` or `pip freeze`, with or without
            hashes; a `pylock.toml`, a `uv.lock` or a `poetry.lock`.

    Raises:
        UsageError: If it cannot be read, or pins no package.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = describe_os_error(error) if isinstance(error, OSError) else "no text"
        raise UsageError(f"{file}: cannot be read: {problem}; expected a lock") from None
    is_toml = file.suffix == ".toml" or file.name in {"uv.lock", "poetry.lock"}
    pins = _read_toml_pins(file, text) if is_toml else dict(_FOREIGN_PIN.findall(text))
    if not pins:
        raise UsageError(f"{file}: pins no package, expected lines like jax==0.6.2")
    return {str(canonicalize_name(name)): version for name, version in pins.items()}


def _read_toml_pins(file: Path, text: str) -> dict[str, str]:
    try:
        data: dict[str, Any] = msgspec.toml.decode(text)
    except MALFORMED as error:
        raise UsageError(f"{file}: expected TOML: {str(error).lower()}") from None
    # `packages` is in a pylock.toml, `package` in a uv.lock and a poetry.lock.
    tables = (data.get(name) for name in ("packages", "package"))
    entries: list[Any] = next((table for table in tables if isinstance(table, list)), [])
    pairs = (
        (entry.get("name"), entry.get("version")) for entry in entries if isinstance(entry, dict)
    )
    return {
        name: version
        for name, version in pairs
        if isinstance(name, str) and isinstance(version, str)
    }
