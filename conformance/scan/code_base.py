"""The modules of a code base, and the names that they pass on to one another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from conformance.scan.scopes import UNKNOWN, Names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from conformance.scan.uses import ModuleUses, NameUse

INIT: Final = "__init__"
DEEPEST: Final = 20
"""Modules through which a name is followed: more are a cycle."""


def name_module(file: Path) -> tuple[str, bool]:
    """Return the dotted name of the module in a file, and whether it is a package.

    Args:
        file: A Python file.
    """
    parts = [] if file.stem == INIT else [file.stem]
    folder = file.absolute().parent
    while folder.joinpath(f"{INIT}.py").is_file() and folder.name:
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), file.stem == INIT


class CodeBase:
    """The modules of a code base.

    Args:
        modules: The modules.
    """

    def __init__(self, modules: Iterable[ModuleUses]) -> None:
        self._modules: Mapping[str, ModuleUses] = {module.name: module for module in modules}

    def follow_names(self, use: NameUse) -> NameUse:
        """Return a use whose names are those of the modules that define them.

        Args:
            use: A use in one of the modules.
        """
        if use.given or use.within:
            use = replace(
                use, given=self._follow_all(use.given), within=self._follow_all(use.within)
            )
        names = self._follow_all(use.names)
        if names == use.names:
            return use
        # The module that imports the name is the place where its absence shows. Where the name may
        # be something of the code base's own, nothing is certain.
        return replace(
            use, names=names - {UNKNOWN}, guarded=use.guarded or UNKNOWN in names,
            imported=False, direct=False,
        )  # fmt: skip

    def _follow_all(self, names: Names) -> Names:
        return frozenset(found for name in names for found in self._follow(name, DEEPEST))

    def _follow(self, name: str, depth: int) -> Names:
        """Return the names that a dotted name stands for, itself if it is of another package."""
        parts = name.split(".")
        for length in range(len(parts) - 1, 0, -1):
            module = self._modules.get(".".join(parts[:length]))
            if module is None:
                continue
            found = self._look_up(module, parts[length], depth)
            rest = "".join(f".{part}" for part in parts[length + 1 :])
            return frozenset(f"{one}{rest}" if one else UNKNOWN for one in found)
        return frozenset({name})

    def _look_up(self, module: ModuleUses, key: str, depth: int) -> Names:
        if depth == 0:
            return frozenset({UNKNOWN})
        found = set(module.exports.get(key, ()))
        for star in () if found else module.stars:
            if star in self._modules:
                found |= self._look_up(self._modules[star], key, depth - 1) - {UNKNOWN}
        followed = {end for one in found if one for end in self._follow(one, depth - 1)}
        unknown = {UNKNOWN} if UNKNOWN in found or not found else set()
        return frozenset(followed | unknown)
