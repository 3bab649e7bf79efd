"""Static discovery of cases: files are parsed with `ast`, and none is imported."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.corpus.metadata import (
    Metadata,
    MetadataError,
    normalize_specifier,
    read_metadata,
    read_shared_metadata,
    select_budgets,
    select_deviations,
)
from conformance.corpus.python_source import get_callee_name, get_statement_text, parse
from conformance.errors import UsageError
from conformance.files import describe_os_error
from conformance.garbage_collection import pause_garbage_collection
from conformance.model.case import FEWEST_SIZES, SIZE, Case
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.corpus.case_index import CaseIndex
    from conformance.model.case import Kind

    Params = Mapping[str, dict[str, Any]]

KINDS: tuple[Kind, Kind] = ("program", "probe")
_AS_DECLARED: Final = frozenset(Metadata.__struct_fields__) - {
    "params", "given", "releases", "deviations", "facts", "config", "budgets"
}  # fmt: skip
"""Keywords whose values become attributes of a case unchanged."""
INDENTED = re.compile(rb"^[ \t]+@(\w+\.)?(program|probe)\b", re.MULTILINE)
"""A case below the top level, or a string that looks like it: a cheap test before `ast.walk`."""


class FileError(NamedTuple):
    """An error in a case file, printed in one line."""

    file: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class BrokenCasesError(UsageError):
    """One or more errors in case files; the message has a line for each.

    Attributes:
        errors: Errors in order of discovery.
    """

    def __init__(self, errors: Iterable[FileError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))


def find_case_files(path: Path) -> list[Path]:
    """Return the case files of a folder, or the file itself.

    Args:
        path: A case file, the folder of a family, or a folder of families.

    Returns:
        Sorted files, without names that begin with `_` or `.`, `conftest.py` and folders of
        goldens.
    """
    if path.is_file():
        # Resolved, since a case is identified by its file, and one file may be reached by several
        # paths.
        return [path.resolve()]
    found: list[Path] = []
    for folder, subfolders, names in os.walk(path):
        # Goldens are 95 % of the folders: entering them took a fifth of the time of `list`.
        subfolders[:] = [name for name in subfolders if name != "golden" and not _is_hidden(name)]
        found.extend(
            Path(folder, name).resolve()
            for name in names
            if name.endswith(".py") and name != "conftest.py" and not _is_hidden(name)
        )
    return sorted(found)


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def discover(files: Iterable[Path], index: CaseIndex | None = None) -> tuple[Case, ...]:
    """Return every case of the files, in order of file and line.

    Args:
        files: Case files.
        index: Index of parsed files; without it all files are parsed.

    Returns:
        Cases, one for each parametrisation.

    Raises:
        BrokenCasesError: If a file or a decorator cannot be parsed, or two cases have the same id.
            It has all such errors.
    """
    cases: list[Case] = []
    errors: list[FileError] = []
    helpers: dict[Path, bytes] = {}
    # The collector would take a tenth of the time.
    with pause_garbage_collection():
        for file in files:
            if file.parent not in helpers:
                helpers[file.parent] = _hash_helpers(file.parent)
            cases.extend(_read_file(file, helpers[file.parent], errors, index))
    errors.extend(find_duplicates(cases))
    if errors:
        raise BrokenCasesError(errors)
    return tuple(cases)


def parse_cases(file: Path, source: bytes) -> tuple[Case, ...]:
    """Return the cases of a file that may not exist yet; they have no content hash.

    Args:
        file: Path of the case file.
        source: Content of the case file.

    Raises:
        BrokenCasesError: If the file or a decorator cannot be parsed.
    """
    errors: list[FileError] = []
    cases = tuple(_parse_file(file, source, "", errors))
    if errors:
        raise BrokenCasesError(errors)
    return cases


def list_helpers(folder: Path) -> list[Path]:
    """Return the files that the cases of a folder may use, helper modules and data, in order.

    Args:
        folder: Folder of case files.
    """
    # Sorted, so that a hash of them does not depend on the order of the file system.
    found = (*sorted(folder.glob("_*.py")), *sorted(folder.glob("_[!_]*/**/*")))
    return [file for file in found if file.is_file() and "__pycache__" not in file.parts]


def _hash_helpers(folder: Path) -> bytes:
    """Return a digest of the files that the cases of a folder may use."""
    digest = hashlib.sha256()
    for file in list_helpers(folder):
        name = file.relative_to(folder).as_posix()
        # With the name, since renaming a helper changes what a case imports.
        digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.digest()


def _read_file(
    file: Path, helpers: bytes, errors: list[FileError], index: CaseIndex | None
) -> Sequence[Case]:
    """Return the cases of a file, from the index or parsed; errors are appended."""
    try:
        source = file.read_bytes()
    except OSError as error:
        errors.append(FileError(file, 1, f"cannot be read: {describe_os_error(error)}"))
        return ()
    content_hash = hashlib.sha256(source + helpers).hexdigest()[:16]
    if index is not None and (known := index.get(file, content_hash)) is not None:
        return known
    before = len(errors)
    cases = tuple(_parse_file(file, source, content_hash, errors))
    # A broken file is not indexed: its errors must be reported again.
    if index is not None and len(errors) == before:
        index.put(file, content_hash, cases)
    return cases


def _parse_file(
    file: Path, source: bytes, content_hash: str, errors: list[FileError]
) -> Iterator[Case]:
    try:
        tree = parse(source, str(file))
    except SyntaxError as error:
        errors.append(FileError(file, error.lineno or 1, f"syntax error: {error.args[0]}"))
        return
    if INDENTED.search(source):
        errors.extend(_find_nested(tree, file))
    # The text of a case is only shown; the parser has decoded the file by its declared encoding.
    lines = source.decode(errors="replace").splitlines()
    try:
        shared = read_shared_metadata(tree)
    except MetadataError as error:
        errors.append(FileError(file, error.line, str(error)))
        return
    except RecursionError:
        message = "the keywords of defaults() are nested too deeply to be read"
        errors.append(FileError(file, 1, message))
        return
    for function, kind, call in _find_decorated(tree, file, errors):
        try:
            metadata = read_metadata(call, kind, shared)
            params = _expand_params(metadata, function, call.lineno)
        except MetadataError as error:
            errors.append(FileError(file, error.line, str(error)))
            continue
        except RecursionError:
            message = f"{function.name}: its keywords are nested too deeply to be read"
            errors.append(FileError(file, call.lineno, message))
            continue
        problem = _find_given_problem(function, kind, metadata, params)
        if problem := problem or _find_sizes_problem(function, metadata, params):
            errors.append(FileError(file, call.lineno, problem))
            continue
        code = get_statement_text(function, lines)
        shown = {"code": code, "content_hash": content_hash}
        yield from _make_cases(file, function, kind, metadata, params, **shown)


def _expand_params(metadata: Metadata, function: ast.FunctionDef, line: int) -> Params:
    """Return the keyword arguments of each parametrisation; `{"": {}}` for a case without.

    Args:
        metadata: Metadata of the decorator of the function.
        function: Function of the case. If `params` is a list of names, its one parameter besides
            `env` receives the name.
        line: Line of the decorator.

    Raises:
        MetadataError: If a name occurs twice, the function has another number of parameters, or a
            value is not JSON: it would not reach the process of the job.
    """
    names = metadata.params
    if isinstance(names, dict):
        for name, values in names.items():
            try:
                json.dumps(values)
            except (TypeError, ValueError) as error:
                expected = "expected numbers, texts, and lists and dictionaries of them"
                raise MetadataError(line, f"`params` of `{name}`: {error}, {expected}") from None
    if names is None or isinstance(names, dict):
        return names or {"": {}}
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise MetadataError(line, f"`params` has `{repeated}` twice; remove one")
    arguments = function.args
    drawn = metadata.given or ()
    taken = {*drawn, SIZE} if metadata.sizes else {*drawn}
    free = [one.arg for one in (*arguments.args[1:], *arguments.kwonlyargs) if one.arg not in taken]
    if len(free) != 1:
        raise MetadataError(
            line,
            f"`params` is a list of names, and {function.name} has "
            f"{plural(len(free), 'parameter')} besides `env`, expected 1 that receives the name",
        )
    return {name: {free[0]: name} for name in names}


def _find_given_problem(
    function: ast.FunctionDef, kind: Kind, metadata: Metadata, params: Params
) -> str:
    """Say how `given` contradicts the function or another keyword; empty if it does not."""
    if metadata.given is None:
        default = metadata.examples == Metadata().examples
        return "" if default else "`examples` without `given`; remove it, or add `given`"
    for name in metadata.given:
        if not _has_parameter(function, name):
            return f"`given` draws `{name}`, but {function.name} has no such parameter; add it"
        if any(name in values for values in params.values()):
            return f"`{name}` is both in `params` and in `given`; remove one"
    if metadata.budgets or metadata.records:
        return "`given` with `budgets` or `records`, which do not apply to a law; remove them"
    if kind == "probe" and (metadata.rtol is not None or metadata.atol is not None):
        return "`rtol` or `atol` of a probe with `given`; pass them to its checks instead"
    return ""


def _has_parameter(function: ast.FunctionDef, name: str) -> bool:
    arguments = function.args
    names = {one.arg for one in (*arguments.args, *arguments.kwonlyargs)}
    return name in names or arguments.kwarg is not None


def _find_sizes_problem(function: ast.FunctionDef, metadata: Metadata, params: Params) -> str:
    """Say how `sizes` contradicts the function or another keyword; empty if it does not."""
    sizes = list(metadata.sizes)
    if not sizes:
        return ""
    if len(sizes) < FEWEST_SIZES or sizes != sorted({*sizes}):
        return f"`sizes` is {sizes}, expected at least {FEWEST_SIZES}, ascending"
    if not _has_parameter(function, SIZE):
        return f"`sizes` without a parameter `{SIZE}` of {function.name}; add it"
    if SIZE in (metadata.given or ()) or any(SIZE in values for values in params.values()):
        return f"`{SIZE}` is given by `sizes`, and in `params` or `given`, too; remove one"
    return ""


def _find_kind(decorator: ast.expr) -> Kind | None:
    name = get_callee_name(decorator)
    return next((kind for kind in KINDS if kind == name), None)


def _find_nested(tree: ast.Module, file: Path) -> Iterator[FileError]:
    """Yield an error for each case below the top level, which discovery would not find."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = (node for node in ast.walk(tree) if isinstance(node, functions))
    for node in found:
        if node not in tree.body and any(map(_find_kind, node.decorator_list)):
            message = f"{node.name} is not at the top level of the file; move it there"
            yield FileError(file, node.lineno, message)


def _find_decorated(
    tree: ast.Module, file: Path, errors: list[FileError]
) -> Iterator[tuple[ast.FunctionDef, Kind, ast.Call]]:
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for decorator in node.decorator_list:
            kind = _find_kind(decorator)
            if kind is None:
                continue
            if isinstance(node, ast.AsyncFunctionDef):
                message = f"{node.name} is an async function, expected a plain one"
                errors.append(FileError(file, node.lineno, message))
            elif isinstance(decorator, ast.Call):
                yield node, kind, decorator
            else:
                message = f"write @{kind}() with parentheses"
                errors.append(FileError(file, decorator.lineno, message))


def _make_cases(
    file: Path,
    function: ast.FunctionDef,
    kind: Kind,
    metadata: Metadata,
    params: Params,
    *,
    code: str,
    content_hash: str,
) -> Iterator[Case]:
    family = file.parent.name
    for param, values in params.items():
        yield Case(
            id=f"{family}/{function.name}" + (f"[{param}]" if param else ""),
            family=family,
            topic=file.stem,
            name=function.name,
            kind=kind,
            file=file,
            line=function.lineno,
            doc=ast.get_docstring(function) or "",
            code=code,
            params={**values, SIZE: metadata.sizes[0]} if metadata.sizes else values,
            given=metadata.given or (),
            releases=normalize_specifier(metadata.releases),
            deviations=select_deviations(metadata, param),
            facts=metadata.facts or {},
            config=metadata.config or {},
            budgets=select_budgets(metadata, param),
            content_hash=content_hash,
            **{name: getattr(metadata, name) for name in _AS_DECLARED},
        )


def find_duplicates(cases: Iterable[Case]) -> Iterator[FileError]:
    """Yield an error for each case with the id of an earlier one; results are stored by id."""
    first: dict[str, Case] = {}
    for case in cases:
        known = first.setdefault(case.id, case)
        if known is not case:
            message = f"the id {case.id} is also that of {known.file}:{known.line}; rename one"
            yield FileError(case.file, case.line, message)
