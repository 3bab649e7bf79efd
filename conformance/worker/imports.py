"""The modules of JAX that a case file imports, itself or through others, in a fork server.

The fork server imports the modules of all case files. Without more, `jax.ad_checkpoint` would be
an attribute of `jax` in a job whose file never imports it, because another file did. A fork shows
a job the modules that its own file's imports lead to, and imports another one when the job does.
"""

from __future__ import annotations

import builtins
import importlib
import re
import sys
from collections import defaultdict
from contextlib import contextmanager, suppress
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import resolve_name
from typing import TYPE_CHECKING

from conformance.worker.job import CASES

if TYPE_CHECKING:
    import types
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


ALWAYS = frozenset({"jax", "jaxlib", "conformance"})
"""Packages with modules that are in every job; of JAX only the public ones are hidden."""


class ImportGraph:
    """Which module imports which, from the moment that `import jax` has ended.

    The modules that `import jax` itself loads are in every job. Hidden are public modules of JAX,
    which users can see as attributes, and the helpers and libraries that import these: a job that
    imports one of them has its modules of JAX, too.
    """

    def __init__(self) -> None:
        import jax  # noqa: F401 - the modules that a user has after this line

        self._of_jax = frozenset(sys.modules)
        self._imports: defaultdict[str, set[str]] = defaultdict(set)
        self._public: frozenset[str] = frozenset()
        self._importers: dict[str, frozenset[str]] = {}
        self._of_file: dict[str, frozenset[str]] = {}

    @contextmanager
    def record(self, file_module: str = "") -> Iterator[None]:
        """Record the imports of all modules that are executed within the context.

        Args:
            file_module: Name of the case file's module that is imported, if one is.
        """
        originals = builtins.__import__, importlib.import_module

        def import_recorded(
            name: str,
            globals: Mapping[str, object] | None = None,  # noqa: A002 - the name of `__import__`
            locals: Mapping[str, object] | None = None,  # noqa: A002
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> types.ModuleType:
            module = originals[0](name, globals, locals, fromlist or (), level)
            package = str((globals or {}).get("__package__") or "")
            if globals and (package or not level):
                imported = resolve_name("." * level + name, package)
                self._imports[str(globals.get("__name__"))].update(
                    [imported, *(f"{imported}.{item}" for item in fromlist or ())]
                )
            return module

        def import_module_recorded(name: str, package: str | None = None) -> types.ModuleType:
            importer = str(sys._getframe(1).f_globals.get("__name__"))
            module = originals[1](name, package)
            self._imports[importer].add(module.__name__)
            return module

        builtins.__import__, importlib.import_module = import_recorded, import_module_recorded
        try:
            yield
        finally:
            builtins.__import__, importlib.import_module = originals
            self._public = frozenset(
                name
                for name in sys.modules
                if name.startswith("jax.")
                and not name.startswith("jax._")
                and name not in self._of_jax
            )
            # Now, and not in a child: it would copy the pages of all these names.
            self._importers = self._find_importers()
            hideable = self._public.union(*self._importers.values())
            self._of_file[file_module] = hideable & self.reach(file_module)

    def _find_importers(self) -> dict[str, frozenset[str]]:
        """Return the modules whose imports lead to public ones of JAX, by library or family."""
        importers: defaultdict[str, set[str]] = defaultdict(set)
        for importer, imported in self._imports.items():
            for name in imported:
                importers[name].add(importer)
        # A module leads to its package, and so does whatever names it.
        for name in [*importers, *self._imports]:
            inner, parent = name, name.rpartition(".")[0]
            while parent and inner not in importers[parent]:
                importers[parent].add(inner)
                inner, parent = parent, parent.rpartition(".")[0]
        found: set[str] = set()
        left = list(self._public)
        while left:
            new = importers[left.pop()] - found
            found |= new
            left += new
        grouped: defaultdict[str, set[str]] = defaultdict(set)
        for name in found & sys.modules.keys():
            library, *rest = name.split(".")
            if library == CASES and rest:
                grouped[rest[0]].add(name)
            elif library not in ALWAYS:
                grouped[library].add(name)
        return {library: frozenset(names) for library, names in grouped.items()}

    def reach(self, module: str) -> set[str]:
        """Return the names that imports of a module lead to, with the packages they are in."""
        reached: set[str] = set()
        left = [module]
        while left:
            name = left.pop()
            while name and name not in reached:
                reached.add(name)
                left += self._imports.get(name, ())
                name = name.rpartition(".")[0]
        return reached

    def hide_others(self, file_module: str, words: frozenset[str]) -> None:
        """Hide, in a child, the modules that a case file does not import; see the class.

        Args:
            file_module: Name of the case file's module, whether or not it was imported here.
            words: Words of the file and its helpers, see `read_words`. To hide a library that none
                of them names would cost each job milliseconds for nothing.
        """
        named = [self._importers[library] for library in self._importers.keys() & words]
        others = self._public.union(*named) - self._of_file.get(file_module, frozenset())
        sys.meta_path.insert(0, _HiddenModules(self, sorted(others)))


@cache
def read_words(file: Path) -> frozenset[str]:
    """Return the words of a case file and of the helpers beside it, and the name of its family.

    Args:
        file: The case file.
    """
    folder = file.parent
    words = {folder.name}
    for one in (file, *folder.glob("_*.py"), *folder.glob("_[!_]*/**/*.py")):
        with suppress(OSError):
            words.update(re.findall(r"\w+", one.read_text(encoding="utf-8", errors="replace")))
    return frozenset(words)


class _HiddenModules(MetaPathFinder, Loader):
    """Imports modules that were executed before, and hidden, without executing them again.

    Args:
        graph: The imports of the modules.
        names: Names of the modules to hide, sorted, so that a package precedes its modules.
    """

    def __init__(self, graph: ImportGraph, names: list[str]) -> None:
        self._graph = graph
        # With its spec, which an import replaces.
        self._hidden = {name: (sys.modules[name], sys.modules[name].__spec__) for name in names}
        for name in reversed(names):  # what is within a package before the package
            module = sys.modules.pop(name)
            package, child = _find_package(name)
            if package is not None and vars(package).get(child) is module:
                delattr(package, child)

    def find_spec(
        self,
        fullname: str,
        path: object = None,  # noqa: ARG002
        target: object = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return a spec for a hidden module."""
        return ModuleSpec(fullname, self) if fullname in self._hidden else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return the module as it was."""
        return self._hidden[spec.name][0]

    def exec_module(self, module: types.ModuleType) -> None:
        """Show what the imports of the module lead to."""
        assert module.__spec__ is not None  # noqa: S101 - the import has set it
        for name in sorted(self._graph.reach(module.__spec__.name) & self._hidden.keys()):
            shown, spec = self._hidden.pop(name)
            shown.__spec__ = spec
            sys.modules[name] = shown
            package, child = _find_package(name)
            if package is not None:
                setattr(package, child, shown)


def _find_package(name: str) -> tuple[types.ModuleType | None, str]:
    """Return the package that a module is in, None for no package, and its name there."""
    package, _, child = name.rpartition(".")
    return sys.modules.get(package), child
