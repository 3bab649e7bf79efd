"""A memory limit that the kernel enforces: a cgroup of a job's own, where one can be made.

What `conformance.worker.processes` sums up is read every tenth of a second, and a job can take
gigabytes between two readings. The kernel stops it at once. A cgroup can be made by root where the
hierarchy of version 1 is mounted, and by a user whose session systemd manages on version 2. It is
the second of two limits: the sum decides in most cases, so that a case ends alike on every host.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile

MOUNTS, OWN = "/proc/self/mounts", "/proc/self/cgroup"
PREFIX = "conformance-"
ROOM = 64 * 2**20
"""Bytes above a job's limit: a cgroup also counts what the kernel holds for it."""
LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}
KILLS = {1: "memory.oom_control", 2: "memory.events"}
REACHED = {1: "memory.failcnt", 2: "memory.events"}
"""Files of a cgroup by version: its limit, how often the kernel killed, and for want of that."""
_KILLED = re.compile(r"^oom_kill [1-9]", re.MULTILINE)
_OOM = {1: re.compile(r"^[1-9]"), 2: re.compile(r"^oom [1-9]", re.MULTILINE)}


class MemoryGroup:
    """A cgroup with a memory limit, for one job and all processes that it starts.

    Args:
        folder: Folder to make it in.
        version: Version of the hierarchy, 1 or 2.
        limit: Bytes.

    Raises:
        OSError: If it cannot be made here.
    """

    def __init__(self, folder: str, version: int, limit: int) -> None:
        self._path = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=folder)
        self._version = version
        try:
            _write(f"{self._path}/{LIMIT[version]}", str(limit + ROOM))
        except OSError:
            self.remove()
            raise

    def enter(self) -> None:
        """Put this process into it; processes that it forks later are in it, too.

        Raises:
            OSError: If the kernel refuses.
        """
        _write(f"{self._path}/cgroup.procs", "0")

    def has_killed(self) -> bool:
        """Return whether the kernel has killed a process of it because of its limit.

        A host without memory kills processes of any cgroup: that alone does not count.
        """
        return all(
            pattern.search(_read(f"{self._path}/{name}"))
            for pattern, name in (
                (_KILLED, KILLS[self._version]),
                (_OOM[self._version], REACHED[self._version]),
            )
        )

    def remove(self) -> bool:
        """Remove it, and return whether it is gone; as long as a process is in it, it stays."""
        with contextlib.suppress(OSError):
            os.rmdir(self._path)
        return not os.path.isdir(self._path)


class MemoryGroups:
    """Makes cgroups for jobs; where none can be made, it finds that out once.

    Args:
        mounts: Table of mounted file systems, as `/proc/self/mounts` has it.
        own: The cgroups that this process is in, as `/proc/self/cgroup` has it.
    """

    def __init__(self, mounts: str = MOUNTS, own: str = OWN) -> None:
        self._place = _place(_read(mounts), _read(own))
        self._used: list[MemoryGroup] = []
        if self._place is not None:
            _remove_abandoned(self._place[0])

    def make(self, limit: int) -> MemoryGroup | None:
        """Make a cgroup.

        Args:
            limit: Bytes.

        Returns:
            None where none can be made.
        """
        if self._place is None:
            return None
        try:
            return MemoryGroup(*self._place, limit)
        except OSError:
            self._place = None
            return None

    def give_back(self, group: MemoryGroup) -> None:
        """Remove a cgroup; one with a process in it later, with the next one or by `close`."""
        self._used.append(group)
        self.close()

    def close(self) -> None:
        """Remove what was given back."""
        self._used = [group for group in self._used if not group.remove()]


def _remove_abandoned(folder: str) -> None:
    """Remove the cgroups of processes that were killed before they could."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            owner = name.removeprefix(PREFIX).partition("-")[0]
            is_ours = name.startswith(PREFIX) and owner.isdecimal()
            if is_ours and not os.path.isdir(f"/proc/{owner}"):
                with contextlib.suppress(OSError):
                    os.rmdir(f"{folder}/{name}")


def _place(mounts: str, own: str) -> tuple[str, int] | None:
    """Return the folder to make cgroups in and its version, None without a memory controller."""
    # A line is `ID:CONTROLLERS:PATH`; version 2 has no controllers there.
    paths = {names: path for _, names, path in (line.split(":", 2) for line in own.splitlines())}
    table = [fields[1:4] for fields in map(str.split, mounts.splitlines()) if fields[3:]]
    for folder, kind, options in table:
        if kind == "cgroup" and "memory" in options.split(","):
            own_paths = [path for names, path in paths.items() if "memory" in names.split(",")]
            return (folder + own_paths[0].rstrip("/"), 1) if own_paths else None
    for mount, kind, _ in table:
        if kind == "cgroup2" and paths.get("", "/").strip("/"):
            # Processes of version 2 are in leaves, so a job's cgroup is a sibling of ours.
            folder = os.path.dirname(mount + paths[""])
            if "memory" in _read(f"{folder}/cgroup.subtree_control").split():
                return folder, 2
    return None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
