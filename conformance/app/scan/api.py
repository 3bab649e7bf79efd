"""The public API of JAX release by release, read from the goldens of the corpus."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, Final

from conformance.golden.layout import make_variant_name
from conformance.scan.api import Api, NameState
from conformance.scan.fixes import CodeFix, FormState, parse_fix
from conformance.scan.signatures import DEPRECATED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.golden.store import GoldenStore
    from conformance.model.case import Case
    from conformance.model.value import Leaf

NAMES: Final = "api_removals/names_that_are_not_there*"
"""Cases whose goldens list the public names that a release lacks, or warns of."""
SIGNATURES: Final = "api_signatures"
"""The family whose goldens have signatures and options."""
OPTIONS: Final = "config_options"
METHODS: Final = "methods"
LISTED: Final = ("api_removals", "_names")
"""The folder with the listed names, in the folder of cases."""
LISTS: Final = ("public.txt", "private.txt")
"""Its files: every public name, and the private ones that libraries use."""
FIXES: Final = ("code_fixes", "fixes.py")
"""The file with the table of fixes, in the folder of cases."""
FORMS: Final = "code_fixes/working_forms"
"""The case whose goldens have the states of the forms before and after each fix."""
VARIANT: Final = make_variant_name("cpu")
_KEY: Final = re.compile(r"\[('[^']*')\]")


def load_api(context: ProjectContext, store: GoldenStore, releases: Sequence[str]) -> Api:
    """Return the public API of releases.

    Args:
        context: The project.
        store: Its goldens.
        releases: The releases, ascending.

    Raises:
        GoldenError: If a golden is corrupt or missing.
    """
    reader = _TableReader(store)
    missing: dict[str, dict[str, dict[str, NameState]]] = {}
    signatures: dict[str, dict[str, dict[str, str]]] = {}
    options: dict[str, dict[str, str]] = {}
    inventory = context.select_cases([NAMES])
    tables = [case for case in context.select_cases([SIGNATURES]) if case.name != METHODS]
    for release in releases:
        missing[release], signatures[release], options[release] = {}, {}, {}
        for case in inventory:
            for (module, *names), state in reader.read(case, release):
                missing[release].setdefault(module, {})[names[0] if names else ""] = NameState(
                    state
                )
        for case in tables:
            own = case.params.get("name", "")
            for keys, text in reader.read(case, release):
                if case.name == OPTIONS:
                    options[release][keys[0]] = text
                else:
                    module, name = keys if len(keys) > 1 else (own, keys[0])
                    signatures[release].setdefault(module, {})[name] = text
    folder = context.project.cases.joinpath(*LISTED)
    listed = {m: names for file in LISTS for m, names in _read_names(folder / file).items()}
    _add_signed_names(listed, missing, signatures)
    return Api(
        releases=tuple(releases),
        names={module: frozenset(names) for module, names in listed.items()},
        missing=missing, signatures=signatures, options=options,
    )  # fmt: skip


def load_fixes(
    context: ProjectContext, store: GoldenStore, releases: Sequence[str]
) -> list[CodeFix]:
    """Return the fixes of the corpus, with the states of both forms in some releases.

    Args:
        context: The project.
        store: Its goldens.
        releases: The releases.

    Raises:
        GoldenError: If a golden is corrupt or missing.
    """
    reader = _TableReader(store)
    (case,) = context.select_cases([FORMS])
    states: dict[str, dict[str, dict[str, FormState]]] = {}
    for release in releases:
        for (name, how), state in reader.read(case, release):
            states.setdefault(name, {}).setdefault(release, {})[how] = FormState(state)
    return [
        parse_fix(
            name, row,
            {release: (one["before"], one["after"]) for release, one in states[name].items()},
        )
        for name, row in read_literal(context.project.cases.joinpath(*FIXES), "FIXES").items()
        if name in states
    ]  # fmt: skip


def read_literal(file: Path, name: str) -> Any:
    """Return the value of a constant of a case file, which is not run.

    Args:
        file: The file.
        name: The constant, which is a literal.
    """
    return next(
        ast.literal_eval(one.value)
        for one in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == name
    )


Entry = tuple[tuple[str, ...], str]
"""The keys of an entry of a table, and its text."""


class _TableReader:
    """Reads the entries of tables, each content once: most stay the same for several releases.

    Args:
        store: The goldens.
    """

    def __init__(self, store: GoldenStore) -> None:
        self._store = store
        self._read: dict[tuple[str, str], list[Entry]] = {}

    def read(self, case: Case, release: str) -> list[Entry]:
        """Return the entries of the table that a case shows in a release."""
        golden = self._store.lookup(case, VARIANT, release)
        if golden is None or golden.value is None:
            return []
        key = (case.id, golden.span)
        if key not in self._read:
            self._read[key] = [_read_entry(leaf) for leaf in golden.value.leaves]
        return self._read[key]


def _read_entry(leaf: Leaf) -> Entry:
    return tuple(map(_unquote, _KEY.findall(leaf.path))), _unquote(leaf.data.decode())


def _unquote(text: str) -> str:
    """Return the string of a literal; nearly all have no escapes, and there are many."""
    plain = text[:1] == "'" and "\\" not in text
    return text[1:-1] if plain else str(ast.literal_eval(text))


def _read_names(file: Path) -> dict[str, set[str]]:
    """Return the listed names of each module; modules are names of their packages, too."""
    _, *blocks = file.read_text(encoding="utf-8").split("\n\n")
    names = {module: set(listed) for module, *listed in map(str.split, blocks)}
    for module in list(names):
        package, _, name = module.rpartition(".")
        if package in names:
            names[package].add(name)
    return names


def _add_signed_names(
    names: dict[str, set[str]],
    missing: Mapping[str, dict[str, dict[str, NameState]]],
    signatures: Mapping[str, Mapping[str, Mapping[str, str]]],
) -> None:
    """Add the names of modules that are not listed, but whose signatures are recorded."""
    modules = {module for signed in signatures.values() for module in signed} - names.keys()
    for module in modules:
        signed = {release: one.get(module, {}) for release, one in signatures.items()}
        names[module] = {name for one in signed.values() for name in one if name.isidentifier()}
        for release, found in signed.items():
            missing[release][module] = {
                name: NameState.WARNS if name in found else NameState.ABSENT
                for name in names[module]
                if name not in found or found[name].endswith(DEPRECATED)
            }
