"""Modules of the user's own that a file of its own carries: no index has them."""

from __future__ import annotations

import ast
import io
import re
import zipfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conformance.corpus.generated_cases import (
    FUNCTION_NAME,
    find_script,
    is_rendered,
    relocate_script,
)
from conformance.corpus.python_source import parse
from conformance.errors import UsageError
from conformance.files import describe_os_error
from conformance.triage.repro.source import extract

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.model.case import Case
    from conformance.triage.repro.source import CaseSource, Read

LARGEST: Final = 200_000
"""Characters of modules that a file carries; a package with more is required where it is."""
IMPORTS: Final = ("import sys", "import tempfile", "from pathlib import Path")
"""Imports of the statements that let a file import what it carries."""
NAMES: Final = frozenset({"CARRIED", "FOLDER"})
"""Names that those statements bind for good."""
_STAND_IN: Final = {
    "conformance.py": (
        "def snapshot(function, /, *args, **kwargs):\n    return function(*args, **kwargs)\n"
    )
}
"""What a script imports `snapshot` from, where the package is not installed."""
_ENDING: Final = re.compile(r'"{3,}|"+\Z')
# Other ends of lines than "\n" would be read as such, or as other characters than they are.
_ESCAPED: Final = re.compile(
    "[^\n\t\x20-\x7e\xa0-\u2027\u202f-\ud7ff\ue000-\ufeff]|[\u200b-\u200f]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The modules that a file carries, and what it requires in addition to the lock of its cell.

    Attributes:
        files: Text of the modules, by path.
        packages: Canonical names of the packages that the modules are of: they are not required.
        wanted: Requirements of the cell in addition to its lock, without those packages.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()
    wanted: tuple[str, ...] = ()


def _local(wanted: Iterable[str]) -> Iterator[_Local]:
    """Yield the wheels on this machine among requirements."""
    for text in wanted:
        one = Requirement(text)
        if is_local(one):
            modules = _modules_of(Path(unquote(urlsplit(one.url or "").path)))
            yield _Local(canonicalize_name(one.name), modules)


def is_local(requirement: Requirement) -> bool:
    """Say whether a requirement is a wheel of this machine."""
    parts = urlsplit(requirement.url or "")
    return parts.scheme == "file" and parts.path.endswith(".whl")


def _modules_of(wheel: Path) -> Mapping[str, str]:
    try:
        with zipfile.ZipFile(wheel) as files:
            names = [name for name in files.namelist() if name.endswith(".py")]
            return {name: _decoded(files.read(name)) for name in names}
    except (OSError, zipfile.BadZipFile) as error:
        said = describe_os_error(error) if isinstance(error, OSError) else str(error)
        raise UsageError(f"{wheel}: cannot be read: {said}") from None


def _decoded(data: bytes) -> str:
    """Return the text of a module as Python reads it, unreadable bytes replaced."""
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="replace").read()


def load_source(
    case: Case, wanted: Sequence[str], read: Read, *, largest: int = LARGEST
) -> tuple[CaseSource, Carried]:
    """Return what a case is made of, and the modules that it imports and that no index has.

    Args:
        case: The case.
        wanted: Requirements of the cell in addition to its lock.
        read: Returns the text of a file.
        largest: Characters of a package beyond which it is required instead.

    Returns:
        Its source, and the modules: of a wheel those that are imported, from wherever; of a script
        that calls `snapshot` all of it, and the modules beside it that it imports. A package is
        required instead where that is much, or where nothing of it is imported by its name.

    Raises:
        UsageError: If something it uses cannot be found by reading its file.
    """
    text = read(case.file)
    script = find_script(text)
    alone = text if script is None else relocate_script(text, script)
    source = extract(case.file, case.name, lambda file: alone if file == case.file else read(file))
    named = tuple(_named(source.definitions)) if is_rendered(text) else ()
    tops = {name.partition(".")[0] for name in named}
    source = replace(source, modules=source.modules | tops)
    modules = _Modules(script, wanted)
    entries = [*(one for line in source.imports for one in _imports_in(line, "")), *named]
    if script is not None:
        modules.files[script.name] = _Module(_read(script), "")
        entries += _imports_in(modules.files[script.name].text, "")
    modules.reach(entries)
    return source, modules.carried(largest)


@dataclass(frozen=True, slots=True)
class _Local:
    name: str
    modules: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Module:
    text: str
    package: str
    """Canonical name of the package it is of, empty for what lies beside a script."""


class _Modules:
    """The modules that importing some comes to."""

    def __init__(self, script: Path | None, wanted: Sequence[str]) -> None:
        self._script, self._wanted = script, wanted
        self._local = [*_local(wanted)]
        self.files: dict[str, _Module] = {}

    def reach(self, entries: Iterable[str]) -> None:
        """Find modules, the packages they are in, and what those import."""
        pending = list(entries)
        while pending:
            parts = pending.pop().split(".")
            for end in range(1, len(parts) + 1):
                path = "/".join(parts[:end])
                for file in (f"{path}.py", f"{path}/__init__.py"):
                    if file in self.files or (found := self._find(file)) is None:
                        continue
                    self.files[file] = found
                    within = parts[:end] if file.endswith("/__init__.py") else parts[: end - 1]
                    pending += _imports_in(found.text, ".".join(within))

    def _find(self, file: str) -> _Module | None:
        beside = None if self._script is None else self._script.parent / file
        if beside is not None and beside.is_file():
            return _Module(_read(beside), "")
        for one in self._local:
            if file in one.modules:
                return _Module(one.modules[file], one.name)
        return None

    def carried(self, largest: int) -> Carried:
        """Return them, the packages that are too large left out."""
        size = Counter[str]()
        for module in self.files.values():
            size[module.package] += len(module.text)
        packages = {one.name for one in self._local if 0 < size[one.name] <= largest}
        kept = {
            file: module.text
            for file, module in self.files.items()
            if module.package in packages or not module.package
        }
        stand_in = _STAND_IN if self._script is not None else {}
        return Carried(
            files=dict(sorted({**stand_in, **kept}.items())),
            packages=frozenset(packages),
            wanted=tuple(
                text
                for text in self._wanted
                if canonicalize_name(Requirement(text).name) not in packages
            ),
        )


def _read(file: Path) -> str:
    try:
        return _decoded(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None


def _named(definitions: Iterable[str]) -> Iterator[str]:
    """Yield the modules of what is named as `module:name`."""
    for definition in definitions:
        for node in ast.walk(ast.parse(definition)):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and (found := FUNCTION_NAME.fullmatch(text)):
                yield found["module"]


def _imports_in(text: str, package: str) -> Iterator[str]:
    """Yield the modules that a module may import, wherever in it; names of theirs among them.

    Args:
        text: The module.
        package: The package it is in, dotted; empty for none.
    """
    try:
        tree = parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = parents[: len(parents) - node.level + 1] if node.level else []
            of = ".".join(filter(None, [*base, node.module or ""]))
            yield from (of, *(f"{of}.{alias.name}" for alias in node.names))


def literal(text: str) -> str:
    """Return text as a literal of several lines, which a reader can read.

    Args:
        text: The text.
    """
    escaped = text.replace("\\", "\\\\")
    escaped = _ENDING.sub(lambda found: '\\"' * len(found[0]), escaped)
    escaped = _ESCAPED.sub(lambda found: _escape(found[0]), escaped)
    return f'"""\\\n{escaped}"""'


def _escape(character: str) -> str:
    return f"\\U{ord(character):08x}"


def carrying(files: Mapping[str, str]) -> Iterator[str]:
    """Yield the statements that let a file import the modules that it carries.

    Args:
        files: Text by path.
    """
    yield "CARRIED = {"
    for name, text in files.items():
        yield f'    "{name}": {literal(text)},'
    yield "}"
    yield from (
        "FOLDER = tempfile.TemporaryDirectory()",
        "for path in CARRIED:",
        "    file = Path(FOLDER.name, path)",
        "    file.parent.mkdir(parents=True, exist_ok=True)",
        '    file.write_text(CARRIED[path], encoding="utf-8")',
        "sys.path.insert(0, FOLDER.name)",
    )
