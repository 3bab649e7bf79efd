"""Records which code a process runs outside of JAX, and what of JAX it reaches from there.

`sitecustomize` loads this file by its path at the start of a process, before any other package is
imported: it needs Python 3.10 and the standard library alone. `reach_events` calls it. Each process
writes a file of its own in the folder of the records, whose lines are JSON:

- `["python", VERSION, CALLS]`: first; CALLS says whether calls are recorded, or lines alone.
- `["jax", VERSION]`: jax was imported.
- `["file", N, PATH]`: a file outside of JAX and of the standard library; other lines name it by N.
- `["line", N, LINE]`, `["lambda", N, LINE]`: the line ran, as part of a lambda or not.
- `["unknown", N, LINES]`: whether these lines ran later is not known.
- `["call", N, LINE, COLUMN]`: the call that begins there ran.
- `["name", N, LINE, NAMES]`: the line called an object that these public names of JAX stand for.
- `["access", N, LINE, NAME]`: the line used a name through the `__getattr__` of its module, as
  deprecated names are.
- `["primitive", NAME]`: a primitive was bound.
- `["option", NAME, N, LINE]`: the line set an option of `jax.config`.
- `["environment", NAME]`: an environment variable set an option when jax was imported.
- `["lost", REASON]`: the record is incomplete.
"""

from __future__ import annotations

import functools
import json
import mmap
import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType, FrameType, ModuleType
    from typing import Any

JAX = ("jax", "jaxlib")
CHUNK = 2**16
"""Bytes by which a file grows."""
MOST_WRAPPERS = 10
"""Decorators of one function; more are an object that has every attribute."""
_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_LIBRARY = os.path.join(os.path.dirname(os.__file__), "")
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_LAMBDA = "<lambda>"


class _RecordFile:
    """A file of lines that survives the death of its process.

    A mapped file needs no descriptor, which a program may close or use for another file, and
    nothing has to be flushed: the kernel has each line as soon as it is copied.
    """

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, f"{os.getpid()}-{time.monotonic_ns()}")
        self._lock = threading.Lock()
        self._end = 0
        self._map = self._grow(0)

    def write(self, *line: object) -> None:
        data = json.dumps(line).encode() + b"\n"
        with self._lock:
            if self._end + len(data) > len(self._map):
                self._map.close()
                self._map = self._grow(len(data))
            self._map[self._end : self._end + len(data)] = data
            self._end += len(data)

    def _grow(self, size: int) -> mmap.mmap:
        # Zeros are written: a hole on a full disk would be a fault of the process.
        out = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            left = bytes(CHUNK * (1 + size // CHUNK))
            while left:
                left = left[os.write(out, left) :]
            return mmap.mmap(out, 0)
        finally:
            os.close(out)


class ReachRecorder:
    """Records what this process reaches, as events report it.

    Args:
        folder: Folder of the records.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file = _RecordFile(folder)
        self._numbers: dict[str, int] = {}
        self._seen: set[tuple[object, ...]] = set()
        self._kinds: dict[str, str] = {}
        self._jax: tuple[str, ...] = ()
        self._calls = False
        self._release = ""
        self._names = _PublicNames()
        self._stop: Callable[[], None] = lambda: None
        self._is_stopped = False

    def start(self, *, calls: bool) -> None:
        """Start the record, and one of its own in each process that this one forks.

        Args:
            calls: Whether events report calls, too.
        """
        self._calls = calls
        self._write_head()
        os.register_at_fork(after_in_child=self.guard(self._start_again))

    def set_stop(self, stop: Callable[[], None]) -> None:
        """Set the function that ends the events.

        Args:
            stop: The function.
        """
        self._stop = stop

    def guard(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that ends the recording when it fails: the program goes on.

        Args:
            function: A function that is called with an event.
        """

        @functools.wraps(function)
        def guarded(*args: Any) -> Any:
            if self._is_stopped:
                return None
            try:
                return function(*args)
            except Exception as error:
                self._is_stopped = True
                try:
                    self._stop()
                    self._file.write("lost", f"{type(error).__name__}: {error}")
                except Exception:  # the disk is full
                    return None
                return None

        return guarded

    def _write_head(self) -> None:
        self._file.write("python", sys.version.partition(" ")[0], self._calls)

    def _start_again(self) -> None:
        # The parent has the lines so far; its lock may be held by a thread that is no more.
        self._file = _RecordFile(self._folder)
        self._numbers = {}
        self._write_head()
        if self._release:
            self._file.write("jax", self._release)

    def find_kind(self, code: CodeType) -> str:
        """Return where code is from: `jax`, `outside` of it, or empty for what does not count.

        Args:
            code: The code.
        """
        path = code.co_filename
        kind = self._kinds.get(path)
        if kind is None:
            kind = self._kinds[path] = self._classify(path)
        return kind

    def _classify(self, path: str) -> str:
        if path.startswith(("<", _HERE)):
            return ""
        for package in JAX:
            # It runs for the first time: `jax` of another folder is a package of the user.
            module = sys.modules.get(package)
            if path.endswith(os.path.join(package, "__init__.py")) and (
                getattr(module, "__file__", None) == path
            ):
                self._jax += (os.path.join(os.path.dirname(path), ""),)
        if path.startswith(self._jax):
            return "jax"
        is_own = path.startswith(_LIBRARY) and not any(part in path for part in _PACKAGES)
        return "" if is_own else "outside"

    def enter_jax(self, code: CodeType, frame: FrameType) -> bool:
        """Note what the start of a function of JAX shows, and say whether the next one may, too.

        Args:
            code: Code of the function.
            frame: Its frame.
        """
        if code.co_name == "<module>":
            self._names.is_stale = True
            self._note_import()
            return False
        parameters = code.co_varnames[: code.co_argcount]
        match code.co_name:
            case "bind" if parameters[:1] == ("self",):
                self._note_primitive(frame)
            case "update" if parameters[1:2] == ("name",):
                self._note_option(frame)
            # Of a module; `jax._src.deprecations.deprecation_getattr` returns one of these.
            case "getattr" | "__getattr__" if len(parameters) == 1:
                self._note_access(frame)
            case _:
                return False
        return True

    def _note_primitive(self, frame: FrameType) -> None:
        primitive = frame.f_locals["self"]
        if hasattr(primitive, "multiple_results"):
            self._write_once("primitive", str(primitive.name))

    def _note_option(self, frame: FrameType) -> None:
        self._write_place(frame, "option", str(frame.f_locals["name"]))

    def _note_access(self, frame: FrameType) -> None:
        module = frame.f_locals.get("module") or frame.f_globals["__name__"]
        name = frame.f_locals[frame.f_code.co_varnames[0]]
        if not name.startswith("__"):
            self._write_place(frame, "access", f"{module}.{name}")

    def _write_place(self, frame: FrameType, kind: str, name: str) -> None:
        """Write what the caller reached; JAX sets options and uses names of its own, too."""
        outer = frame.f_back
        if outer is None or self.find_kind(outer.f_code) != "outside":
            return
        number = self._number(outer.f_code.co_filename)
        place = (name, number, outer.f_lineno)
        self._write_once(kind, *(place if kind == "option" else (*place[1:], name)))

    def note_line(self, code: CodeType, line: int) -> None:
        """Note a line that begins to run.

        Args:
            code: Code outside of JAX.
            line: The line.
        """
        kind = "lambda" if code.co_name == _LAMBDA else "line"
        self._write_once(kind, self._number(code.co_filename), line)

    def note_unknown(self, code: CodeType, lines: Iterable[int]) -> None:
        """Note lines that are not watched any more.

        Args:
            code: Code outside of JAX.
            lines: The lines.
        """
        self._file.write("unknown", self._number(code.co_filename), sorted(lines))

    def note_call(self, code: CodeType, line: int, column: int) -> None:
        """Note the place of a call.

        Args:
            code: Code outside of JAX.
            line: Line where the call begins.
            column: Its column, from 0, in bytes.
        """
        self._write_once("call", self._number(code.co_filename), line, column)

    def note_callee(self, code: CodeType, line: int, callee: object) -> bool:
        """Note a call of a public name of JAX, and say whether it is one.

        Args:
            code: Code outside of JAX that calls.
            line: The line.
            callee: The object, or the code of a function, that is called.
        """
        if not self._release:
            return False
        names = self._names.find(callee)
        if names:
            self._write_once("name", self._number(code.co_filename), line, names)
        return bool(names)

    def note_loss(self, reason: str) -> None:
        """Note that the record is incomplete.

        Args:
            reason: The reason.
        """
        self._write_once("lost", reason)

    def _note_import(self) -> None:
        if self._release:
            return
        self._release = _get_release()
        if not self._release:
            return
        self._file.write("jax", self._release)
        for name in os.environ:
            if name.startswith("JAX_"):
                self._file.write("environment", name)

    def _number(self, path: str) -> int:
        number = self._numbers.get(path)
        if number is None:
            number = self._numbers[path] = len(self._numbers)
            self._file.write("file", number, os.path.abspath(path))
        return number

    def _write_once(self, *line: object) -> None:
        if line not in self._seen:
            self._seen.add(line)
            self._file.write(*line)


def _get_release() -> str:
    """Return the release of JAX, empty before its package has one."""
    module = sys.modules.get(JAX[0])
    return str(vars(module).get("__version__", "")) if module is not None else ""


class _PublicNames:
    """The public names of JAX, by the object that they stand for."""

    def __init__(self) -> None:
        self.is_stale = True
        # The objects are held, so that no other one gets their ids.
        self._found: dict[int, tuple[object, tuple[str, ...]]] = {}

    def find(self, callee: object) -> tuple[str, ...]:
        # Nothing of the callee is read: an object of the program may do anything then.
        if type(callee) is functools.partial:
            callee = callee.func
        if self.is_stale and not getattr(sys.modules[JAX[0]].__spec__, "_initializing", False):
            self._refresh()
        found = self._found.get(id(callee))
        return found[1] if found is not None else ()

    def _refresh(self) -> None:
        self.is_stale = False
        names: dict[int, list[str]] = {}
        objects: dict[int, object] = {}
        for name, module in sorted(sys.modules.items()):
            if name.partition(".")[0] == JAX[0] and "._" not in name and module is not None:
                for key, value in _list_own(name, module):
                    objects[id(value)] = value
                    names.setdefault(id(value), []).append(key)
        # A trace function sees the code that starts; that of several objects shows none of them.
        codes: dict[int, list[int]] = {}
        for number, value in list(objects.items()):
            code = _find_code(value)
            if code is not None:
                objects[id(code)] = code
                codes.setdefault(id(code), []).append(number)
        names |= {code: names[one[0]] for code, one in codes.items() if len(one) == 1}
        self._found = {key: (objects[key], tuple(found)) for key, found in names.items()}


def _find_code(value: object) -> CodeType | None:
    """Return the code that a function decorates, or its own."""
    for _ in range(MOST_WRAPPERS):
        value = getattr(value, "__wrapped__", value)
    return getattr(value, "__code__", None)


def _list_own(name: str, module: ModuleType) -> list[tuple[str, object]]:
    """Return the public objects of a module that are of JAX itself, such as no `numpy.dtype`."""
    return [
        (f"{name}.{key}", value)
        for key, value in list(vars(module).items())
        if not key.startswith("_")
        and callable(value)
        and str(getattr(value, "__module__", "")).partition(".")[0] in JAX
    ]
