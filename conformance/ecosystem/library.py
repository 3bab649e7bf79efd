"""The definition of a library, `ecosystem/NAME.toml`: its modules, and how it is tested."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import msgspec
import tomllib

from conformance.cells.requirements import parse_requirement
from conformance.ecosystem.outcome import VersionPolicy
from conformance.errors import UsageError
from conformance.files import MALFORMED, describe_os_error
from conformance.wording import did_you_mean, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

SUFFIX: Final = ".toml"
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_REPOSITORY: Final = re.compile(r"[\w.-]+/[\w.-]+")


class SdistTests(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tests in the source distribution of a library.

    Attributes:
        path: Folder of the tests in the source distribution.
        requires: Further packages that they need.
        arguments: Arguments of pytest.
        sample: Most tests that run, chosen by a hash of their names.
        seconds: Time after which no further test starts.
    """

    path: str
    requires: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    sample: int = 40
    seconds: float = 20.0


class Library(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A library that builds on JAX.

    Attributes:
        name: Normalised name of its distribution: that of the file.
        repository: Its repository, `owner/name`.
        imports: Modules that must import.
        program: Tests of ours, a module of pytest; empty for none.
        requires: Further packages that the program needs.
        tests: Its own tests, None for none.
        policies: Policies by which its version is chosen.
    """

    name: str = ""
    repository: str
    imports: tuple[str, ...]
    program: str = ""
    requires: tuple[str, ...] = ()
    tests: SdistTests | None = None
    policies: tuple[VersionPolicy, ...] = tuple(VersionPolicy)

    @property
    def hash(self) -> str:
        """Hash of the definition; outcomes of another definition are not used."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:12]


def load_libraries(folder: Path) -> Mapping[str, Library]:
    """Return the libraries that a folder defines, by name.

    Args:
        folder: Folder with a TOML file for each library.

    Raises:
        UsageError: If a file cannot be read, or a definition is wrong.
    """
    files = sorted(folder.glob(f"*{SUFFIX}"))
    return {file.stem: parse_library(_read(file), file) for file in files}


def select_libraries(
    libraries: Mapping[str, Library], names: Iterable[str], folder: Path
) -> tuple[Library, ...]:
    """Return the libraries with names, all of them without a name.

    Args:
        libraries: The libraries by name.
        names: The names, in any spelling of a distribution's name.
        folder: Folder of the definitions, for the message.

    Raises:
        UsageError: If no library has a name.
    """
    chosen = []
    for name in names:
        plain = re.sub(r"[-_.]+", "-", name).lower()
        if plain not in libraries:
            raise UsageError(
                f"no library {name!r}{did_you_mean(plain, libraries)}; {folder} defines "
                f"{plural(len(libraries), 'library', 'libraries')}"
            )
        chosen.append(libraries[plain])
    return tuple(dict.fromkeys(chosen)) or tuple(libraries.values())


def parse_library(text: str, file: Path) -> Library:
    """Return the library that a file defines.

    Args:
        text: Content of the file.
        file: The file; its stem is the name of the distribution.

    Raises:
        UsageError: If the text is not TOML, or the definition is wrong.
    """
    try:
        # tomllib names the line of an error; msgspec would not.
        library = msgspec.convert(tomllib.loads(text), Library)
    except (*MALFORMED, msgspec.ValidationError) as error:
        problem = str(error)
        raise UsageError(f"{file}: {problem[:1].lower()}{problem[1:]}") from None
    library = msgspec.structs.replace(library, name=file.stem)
    if problem := next(_find_problems(library, file), ""):
        raise UsageError(f"{file}: {problem}")
    return library


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not TOML: {error}") from None


def _find_problems(library: Library, file: Path) -> Iterator[str]:
    """Yield the faults of a definition whose fields are of the right types."""
    if not _NAME.fullmatch(library.name):
        yield f"name of the file: expected a normalised distribution name, got {library.name!r}"
    if not _REPOSITORY.fullmatch(library.repository):
        yield f"repository: expected OWNER/NAME, got {library.repository!r}"
    if not library.imports:
        yield "imports: expected one module or more, got none"
    for module in library.imports:
        if not _MODULE.fullmatch(module):
            yield f"imports: expected the name of a module, got {module!r}"
    if not library.program and library.tests is None:
        yield "expected program or [tests], got neither"
    if library.program:
        try:
            compile(library.program, f"{file}: program", "exec")
        except (SyntaxError, ValueError) as error:
            yield f"program: {error}"
    yield from _find_test_problems(library)


def _find_test_problems(library: Library) -> Iterator[str]:
    tests = library.tests
    for text in (*library.requires, *(tests.requires if tests else ())):
        try:
            parse_requirement(text)
        except UsageError as error:
            yield f"requires: {error}"
    if tests is None:
        return
    path = PurePosixPath(tests.path)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        yield f"tests.path: expected a folder of the source distribution, got {tests.path!r}"
    if tests.sample < 1:
        yield f"tests.sample: expected 1 or more, got {tests.sample}"
    if tests.seconds <= 0:
        yield f"tests.seconds: expected more than 0, got {tests.seconds:g}"
