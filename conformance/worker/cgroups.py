"""Memory limits that the kernel enforces: a cgroup for each job, on hosts that allow it.

`conformance.worker.processes` measures memory every tenth of a second, and a job can allocate
gigabytes between two measurements. The kernel stops it at once. Root can make cgroups if the
hierarchy of version 1 is mounted, and a user can if systemd manages the session on version 2. The
cgroup is the second of two limits: the measured sum decides in most cases, so that a case has the
same outcome on every host.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile

MOUNTS, OWN = "/proc/self/mounts", "/proc/self/cgroup"
PREFIX = "conformance-"
ROOM = 64 * 2**20
"""Bytes added to a job's limit, because a cgroup also counts kernel memory."""
LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}
KILLS = {1: "memory.oom_control", 2: "memory.events"}
REACHED = {1: "memory.failcnt", 2: "memory.events"}
"""Files of a cgroup by version: its limit, its count of kills, its count of reached limits."""
_KILLED = re.compile(r"^oom_kill [1-9]", re.MULTILINE)
_OOM = {1: re.compile(r"^[1-9]"), 2: re.compile(r"^oom [1-9]", re.MULTILINE)}


class MemoryGroup:
    """A cgroup with a memory limit, for one job and all processes that it starts.

    Args:
        folder: Parent folder in the hierarchy.
        version: Version of the hierarchy, 1 or 2.
        limit: Limit in bytes.

    Raises:
        OSError: If the kernel refuses the cgroup.
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
        """Move this process into the cgroup; processes that it forks later join it, too.

        Raises:
            OSError: If the kernel refuses.
        """
        # 0 is the calling process, whose number may differ in a container.
        _write(f"{self._path}/cgroup.procs", "0")

    def has_killed(self) -> bool:
        """Return whether the kernel has killed a process of the cgroup because of its limit.

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
        """Remove the cgroup; return whether that succeeded, which a process in it prevents."""
        with contextlib.suppress(OSError):
            os.rmdir(self._path)
        return not os.path.isdir(self._path)


class MemoryGroups:
    """Makes cgroups for jobs, and stops trying after the host has refused one.

    Args:
        mounts: File with the table of mounted file systems, in the format of `/proc/self/mounts`.
        own: File with the cgroups of this process, in the format of `/proc/self/cgroup`.
    """

    def __init__(self, mounts: str = MOUNTS, own: str = OWN) -> None:
        self._place = _find_place(_read(mounts), _read(own))
        self._used: list[MemoryGroup] = []
        if self._place is not None:
            _remove_abandoned(self._place[0])

    def make(self, limit: int) -> MemoryGroup | None:
        """Make a cgroup.

        Args:
            limit: Limit in bytes.

        Returns:
            The cgroup, None if the host allows none.
        """
        if self._place is None:
            return None
        try:
            return MemoryGroup(*self._place, limit)
        except OSError:
            self._place = None
            return None

    def give_back(self, group: MemoryGroup) -> None:
        """Remove a cgroup, or try again with the next cgroup if it still has a process."""
        # A killed process stays in its cgroup until the kernel has released its memory.
        self._used.append(group)
        self.close()

    def close(self) -> None:
        """Remove the cgroups that were given back."""
        self._used = [group for group in self._used if not group.remove()]


def _remove_abandoned(folder: str) -> None:
    """Remove the cgroups of workers that were killed before they removed them."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            owner = name.removeprefix(PREFIX).partition("-")[0]
            is_ours = name.startswith(PREFIX) and owner.isdecimal()
            if is_ours and not os.path.isdir(f"/proc/{owner}"):
                with contextlib.suppress(OSError):
                    os.rmdir(f"{folder}/{name}")


def _find_place(mounts: str, own: str) -> tuple[str, int] | None:
    """Return the folder for new cgroups and its version, None without a memory controller."""
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
