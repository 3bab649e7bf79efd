"""Modules of the user that are embedded in a reproduction: no package index has them."""

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
from conformance.triage.repro.case_source import extract_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.model.case import Case
    from conformance.triage.repro.case_source import CaseSource, ReadFile

LARGEST: Final = 200_000
"""Characters of embedded modules; a package with more is a requirement instead."""
IMPORTS: Final = ("import sys", "import tempfile", "from pathlib import Path")
"""Imports of the statements that `render_embedding` returns."""
NAMES: Final = frozenset({"CARRIED", "FOLDER"})
"""Names that these statements bind."""
_STAND_IN: Final = {
    "conformance.py": (
        "def snapshot(function, /, *args, **kwargs):\n    return function(*args, **kwargs)\n"
    )
}
"""The module that a script imports `snapshot` from: the package itself is not installed."""
_ENDING: Final = re.compile(r'"{3,}|"+\Z')
# Python reads "\r" in a literal as "\n"; editors may show other such characters as line ends.
_ESCAPED: Final = re.compile(
    "[^\n\t\x20-\x7e\xa0-\u2027\u202f-\ud7ff\ue000-\ufeff]|[\u200b-\u200f]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedModules:
    """The modules embedded in a reproduction, and its requirements in addition to the lock.

    Attributes:
        files: Text of the modules, by path.
        packages: Canonical names of the packages of these modules: they are no requirements.
        requirements: Requirements of the cell in addition to its lock, without these packages.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()
    requirements: tuple[str, ...] = ()


def _load_wheels(requirements: Iterable[str]) -> Iterator[_Wheel]:
    """Yield the local wheels among requirements."""
    for requirement in map(Requirement, requirements):
        if is_local(requirement):
            modules = _read_wheel(Path(unquote(urlsplit(requirement.url or "").path)))
            yield _Wheel(canonicalize_name(requirement.name), modules)


def is_local(requirement: Requirement) -> bool:
    """Return whether a requirement is a wheel on this machine."""
    parts = urlsplit(requirement.url or "")
    return parts.scheme == "file" and parts.path.endswith(".whl")


def _read_wheel(wheel: Path) -> Mapping[str, str]:
    try:
        with zipfile.ZipFile(wheel) as files:
            # Data files are left out: only modules can be embedded as text.
            names = [name for name in files.namelist() if name.endswith(".py")]
            return {name: _decode(files.read(name)) for name in names}
    except (OSError, zipfile.BadZipFile) as error:
        reason = describe_os_error(error) if isinstance(error, OSError) else str(error)
        raise UsageError(f"{wheel}: cannot be read: {reason}") from None


def _decode(data: bytes) -> str:
    """Return the text of a module as Python reads it, unreadable bytes replaced."""
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="replace").read()


def load_source(
    case: Case, requirements: Sequence[str], read: ReadFile, *, largest: int = LARGEST
) -> tuple[CaseSource, EmbeddedModules]:
    """Return the source code of a case, and the modules that it imports and that no index has.

    Args:
        case: The case.
        requirements: Requirements of the cell in addition to its lock.
        read: Returns the text of a file.
        largest: Characters of a package beyond which it is required instead.

    Returns:
        Its source, and the modules: the imported modules of a local wheel; a script that calls
        `snapshot`, with the modules of its folder that it imports. A wheel is a requirement
        instead if its modules are too large, or none of them is imported.

    Raises:
        UsageError: If a name it uses cannot be found by reading its file.
    """
    text = read(case.file)
    script = find_script(text)
    # The path of the script on this machine is replaced by its name in the embedded folder.
    alone = text if script is None else relocate_script(text, script)
    source = extract_source(
        case.file, case.name, lambda file: alone if file == case.file else read(file)
    )
    named = tuple(_find_named_modules(source.definitions)) if is_rendered(text) else ()
    roots = {name.partition(".")[0] for name in named}
    # A generated case names its function in a string, which is no import.
    source = replace(source, modules=source.modules | roots)
    modules = _ModuleCollector(script, requirements)
    entries = [*(name for line in source.imports for name in _find_imports(line, "")), *named]
    if script is not None:
        # The case runs the script by its path: no import names it.
        modules.files[script.name] = _Module(_read(script), "")
        entries += _find_imports(modules.files[script.name].text, "")
    modules.add(entries)
    return source, modules.embed(largest)


@dataclass(frozen=True, slots=True)
class _Wheel:
    name: str
    modules: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Module:
    text: str
    package: str
    """Canonical name of its package, empty for a module in the folder of a script."""


class _ModuleCollector:
    """Collects modules with all that they import."""

    def __init__(self, script: Path | None, requirements: Sequence[str]) -> None:
        self._script, self._requirements = script, requirements
        self._wheels = [*_load_wheels(requirements)]
        self.files: dict[str, _Module] = {}

    def add(self, entries: Iterable[str]) -> None:
        """Add modules, their packages, and all modules that these import."""
        pending = list(entries)
        while pending:
            parts = pending.pop().split(".")
            # Importing `a.b.c` also runs `a` and `a.b`.
            for end in range(1, len(parts) + 1):
                path = "/".join(parts[:end])
                for file in (f"{path}.py", f"{path}/__init__.py"):
                    if file in self.files or (found := self._find(file)) is None:
                        continue
                    self.files[file] = found
                    within = parts[:end] if file.endswith("/__init__.py") else parts[: end - 1]
                    pending += _find_imports(found.text, ".".join(within))

    def _find(self, file: str) -> _Module | None:
        path = None if self._script is None else self._script.parent / file
        # As Python looks: the folder of a script precedes installed packages.
        if path is not None and path.is_file():
            return _Module(_read(path), "")
        for wheel in self._wheels:
            if file in wheel.modules:
                return _Module(wheel.modules[file], wheel.name)
        return None

    def embed(self, largest: int) -> EmbeddedModules:
        """Return the modules, without packages that are too large."""
        size = Counter[str]()
        for module in self.files.values():
            # Only modules that are imported count.
            size[module.package] += len(module.text)
        # A package of which no import is found may be imported dynamically: it stays a requirement.
        packages = {wheel.name for wheel in self._wheels if 0 < size[wheel.name] <= largest}
        kept = {
            file: module.text
            for file, module in self.files.items()
            if module.package in packages or not module.package
        }
        stand_in = _STAND_IN if self._script is not None else {}
        return EmbeddedModules(
            files=dict(sorted({**stand_in, **kept}.items())),
            packages=frozenset(packages),
            requirements=tuple(
                text
                for text in self._requirements
                if canonicalize_name(Requirement(text).name) not in packages
            ),
        )


def _read(file: Path) -> str:
    try:
        return _decode(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None


def _find_named_modules(definitions: Iterable[str]) -> Iterator[str]:
    """Yield the modules of functions that are named as `module:name`."""
    for definition in definitions:
        for node in ast.walk(ast.parse(definition)):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and (found := FUNCTION_NAME.fullmatch(text)):
                yield found["module"]


def _find_imports(text: str, package: str) -> Iterator[str]:
    """Yield the modules that a module may import anywhere; imported names may be modules, too.

    Args:
        text: The module.
        package: Dotted name of its package; empty for none.
    """
    try:
        tree = parse(text)
    # A module for another Python, or of templates: importing it would fail anyway.
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


def render_text(text: str) -> str:
    """Return a text as a readable literal of several lines.

    Args:
        text: Any text.
    """
    # Before the other replacements, which add backslashes.
    escaped = text.replace("\\", "\\\\")
    # Three quotes, and quotes at the end, would end the literal.
    escaped = _ENDING.sub(lambda found: '\\"' * len(found[0]), escaped)
    escaped = _ESCAPED.sub(lambda found: f"\\U{ord(found[0]):08x}", escaped)
    return f'"""\\\n{escaped}"""'


def render_embedding(files: Mapping[str, str]) -> Iterator[str]:
    """Yield the statements by which a file can import its embedded modules.

    Args:
        files: Text by path.
    """
    yield "CARRIED = {"
    for name, text in files.items():
        yield f'    "{name}": {render_text(text)},'
    yield "}"
    yield from (
        "FOLDER = tempfile.TemporaryDirectory()",
        "for path in CARRIED:",
        "    file = Path(FOLDER.name, path)",
        "    file.parent.mkdir(parents=True, exist_ok=True)",
        '    file.write_text(CARRIED[path], encoding="utf-8")',
        "sys.path.insert(0, FOLDER.name)",
    )
