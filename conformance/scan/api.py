"""The public API of JAX, release by release: names, signatures and options."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT: Final = "jax"
"""The package whose names are known."""


class NameState(StrEnum):
    """The effect of an access to a name."""

    PRESENT = "present"
    WARNS = "warns"
    """It is there, with a DeprecationWarning or FutureWarning."""
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiName:
    """A public name.

    Attributes:
        module: Its module, e.g. `jax.numpy`.
        name: The name in it, empty for the module itself.
    """

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The public API of the releases of a range.

    Attributes:
        releases: The releases, ascending.
        names: Names of each module that some release has in public.
        missing: States of the names that are not just present: by release, module and name; the
            empty name stands for the module.
        signatures: Signatures by release, module and name.
        options: Values of the options of `jax.config` by release and option.
    """

    releases: tuple[str, ...]
    names: Mapping[str, frozenset[str]]
    missing: Mapping[str, Mapping[str, Mapping[str, NameState]]]
    signatures: Mapping[str, Mapping[str, Mapping[str, str]]]
    options: Mapping[str, Mapping[str, str]]

    def resolve(self, dotted: str) -> tuple[ApiName, tuple[str, ...]] | None:
        """Return the public name that a dotted name begins with, and the attributes after it.

        Args:
            dotted: A dotted name, e.g. `jax.numpy.linalg.norm`.

        Returns:
            None for a name that no release has in public.
        """
        parts = dotted.split(".")
        for length in range(len(parts), 0, -1):
            module = ".".join(parts[:length])
            if module not in self.names:
                continue
            if length == len(parts):
                return ApiName(module=module, name=""), ()
            name = parts[length]
            # Of a module and its attribute of the same name, the module was found first.
            if name in self.names[module]:
                return ApiName(module=module, name=name), tuple(parts[length + 1 :])
            # Nobody listed the names of a module as a whole, but they go with it.
            gone = any(self.get_state(ApiName(module=module, name=""), one) is NameState.ABSENT
                       for one in self.releases)  # fmt: skip
            return (ApiName(module=module, name=""), tuple(parts[length:])) if gone else None
        return None

    def get_state(self, name: ApiName, release: str) -> NameState:
        """Return the state of a name in a release.

        Args:
            name: A public name.
            release: One of the releases.
        """
        states = self.missing[release].get(name.module, {})
        if states.get("") is NameState.ABSENT:
            return NameState.ABSENT
        return states.get(name.name, NameState.PRESENT)

    def get_signature(self, name: ApiName, release: str) -> str:
        """Return the signature of a name in a release, empty if none is recorded.

        Args:
            name: A public name.
            release: One of the releases.
        """
        return self.signatures[release].get(name.module, {}).get(name.name, "")

    def list_after(self, old: str, new: str) -> Sequence[str]:
        """Return the releases after one, up to another one.

        Args:
            old: The release before the first.
            new: The last release.
        """
        return self.releases[self.releases.index(old) + 1 : self.releases.index(new) + 1]
