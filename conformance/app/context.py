"""The project context: cases, releases, cells and settings, each looked up on first use."""

from __future__ import annotations

import hashlib
import importlib
import os
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from conformance.cache_folder import cache_location, cache_root
from conformance.cells.cell import PATH_PREFIX, is_cell_id, parse_cell
from conformance.cells.matrix import load_matrix
from conformance.cells.releases import load_releases
from conformance.cells.selectors import matches_cell, resolve_selector, select_cells
from conformance.corpus.case_index import CaseIndex
from conformance.corpus.case_selection import (
    make_selects_absolute,
    matches_name,
    select_cases,
)
from conformance.corpus.discovery import discover
from conformance.corpus.generated_cases import (
    FUNCTION_NAME,
    find_snapshots,
    get_script_family,
    hash_case_files,
    render_cases,
    render_snapshot_cases,
    render_whole_script,
)
from conformance.corpus.project import (
    PACKAGE,
    Project,
    ProjectSettings,
    find_project,
    find_settings,
    find_settings_file,
)
from conformance.engine.runs.project_runs import ProjectRuns
from conformance.engine.workers.environment import select_passed_variables
from conformance.errors import NothingSelectedError, UsageError
from conformance.files import write_atomically
from conformance.report.text import join_names
from conformance.wording import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.cells.cell import Cell
    from conformance.cells.releases import Nightlies, Releases
    from conformance.model.case import Case
    from conformance.model.run import Exclusion

DEFAULT_MATRIX = "smoke"
TIMEOUT = 120.0
"""Seconds that a script, a test or a command may take by default."""
RELEASES = "releases.toml"
FUNCTIONS = "functions"
PASS_ENV = "CONFORMANCE_PASS_ENV"  # noqa: S105 - a name
"""Variable with more names for `pass-env`, separated by commas."""
GOLDENS = "goldens"
"""Folder of the goldens of generated cases, next to the list of functions or to the script."""
HISTORY_STORE = Path("reports") / "history.db"
"""Default of `--store`, relative to the project."""
CAMPAIGNS = Path("reports") / "campaigns"
NIGHTLY_INDEX = "conformance.cells.nightly_index"


@dataclass(frozen=True)
class ProjectContext:
    """The project of a command, each part looked up on first use."""

    start: Path
    night: str = ""
    """The day of the last nightly that counts, empty for all."""

    @cached_property
    def project(self) -> Project:
        """The checkout the command is run in, or the data installed with the package."""
        return find_project(self.start)

    @property
    def runs(self) -> ProjectRuns:
        """The runs of the project."""
        return ProjectRuns(self.project.root)

    @property
    def campaigns(self) -> Path:
        """Folder of the campaigns of fuzzing."""
        return self.project.root / CAMPAIGNS

    @cached_property
    def matrix_folders(self) -> tuple[Path, ...]:
        """Folders of matrix files: the user's own `matrix/`, then the project's."""
        # In order of precedence: the first folder that has a matrix of a name wins.
        own = self.start / "matrix"
        folders = (own, self.project.matrices, PACKAGE / "data" / "matrix")
        return tuple(dict.fromkeys(folder for folder in folders if folder.is_dir()))

    @cached_property
    def releases(self) -> Releases:
        """Every known jax release, and the index of nightlies, which is read on first use."""
        known = load_releases(self.project.matrices / RELEASES)
        # A function, not the index: a command that names no nightly must work offline.
        return replace(known, find_nightlies=lambda: self._load_nightlies(known))

    def _load_nightlies(self, known: Releases) -> Nightlies:
        # Imported late: few commands need the network client of the index.
        module = importlib.import_module(NIGHTLY_INDEX)
        found: Nightlies = module.NightlyIndex(
            lambda: self.settings.nightly_index, known.rows, self._last_night
        )
        return found

    @property
    def _last_night(self) -> date | None:
        try:
            return date.fromisoformat(self.night) if self.night else None
        except ValueError:
            raise UsageError(f"--night {self.night}: expected a day, e.g. 2025-11-20") from None

    @cached_property
    def cache(self) -> Path:
        """The cache folder, created and writable."""
        return cache_root()

    @cached_property
    def case_index(self) -> CaseIndex:
        """The index of cases in files that were parsed before."""
        # The location, not `cache`: listing cases works without a writable cache folder.
        return CaseIndex(cache_location())

    @cached_property
    def settings(self) -> ProjectSettings:
        """The settings of the project in `pyproject.toml`."""
        return find_settings(self.start)

    @property
    def passed_variables(self) -> dict[str, str]:
        """The variables that cells get in addition to the usual ones."""
        more = (name.strip() for name in os.environ.get(PASS_ENV, "").split(","))
        return select_passed_variables((*self.settings.pass_env, *filter(None, more)), os.environ)

    @cached_property
    def functions(self) -> Mapping[str, Case]:
        """The cases of functions that the project lists, by `module:name`."""
        listed = self.settings.functions
        file = find_settings_file(self.start)
        # Goldens lie next to the settings file, so that they do not depend on the working
        # directory.
        home = self.start if file is None else file.parent
        cases = {
            case.id: case for case in self._discover_rendered(render_cases(listed), home / GOLDENS)
        }
        return {one.function: cases[f"{one.family}/{one.case}"] for one in listed}

    def select_cases(self, selects: Sequence[str]) -> tuple[Case, ...]:
        """Return the cases that SELECT means; without a SELECT, those of the project.

        The cases of a project that only lists functions are these functions.
        """
        listed = self.functions
        # Scripts before functions and families: only a path that exists is a script.
        scripts = {select: self.find_snapshots(select) for select in selects}
        rest = [select for select in selects if not scripts[select]]
        chosen, others = _split_functions(rest, listed)
        chosen += tuple(case for found in scripts.values() for case in found)
        # Otherwise the cases installed with the package would be the default of such a project.
        if not selects and listed and self._has_foreign_settings:
            return tuple(listed.values())
        # Case files are not parsed for functions and scripts alone.
        if others or not selects:
            chosen += select_cases(others, self.project.cases, self.case_index)
        # Two SELECTs may overlap; each case runs once.
        return tuple({case.id: case for case in chosen}.values())

    @property
    def _has_foreign_settings(self) -> bool:
        """Whether the settings belong to another project than the cases."""
        file = find_settings_file(self.start)
        return file is not None and file.parent != self.project.cases.parent

    def find_snapshots(self, select: str) -> tuple[Case, ...]:
        """Return the cases of a script that calls `conformance.snapshot`, empty for other files.

        Args:
            select: The script, or `SCRIPT::NAME` for one call of it.
        """
        path, _, name = select.partition("::")
        file = _find_python_file(path)
        if file is None:
            return ()
        text = file.read_bytes()
        calls = find_snapshots(text.decode("utf-8", "replace"))
        # A case file may mention snapshots, too: files that declare cases are never scripts.
        if not calls or discover([file]):
            return ()
        # Modules next to the script are imported by it: their changes must change the case hash.
        beside = b"".join(path.read_bytes() for path in sorted(file.parent.glob("*.py")))
        digest = hashlib.sha256(beside).hexdigest()
        path = f"{get_script_family(file)}/{FUNCTIONS}.py"
        made = self._discover_rendered(
            {path: render_snapshot_cases(file, calls, digest)}, file.parent / GOLDENS
        )
        # A script uses all devices of its cell, as when it is run without the harness.
        shown = self._make_relative(file)
        chosen = tuple(
            replace(case, devices=0, arguments=quote(f"{shown}::{case.name}"))
            for case in made
            if name in {"", case.name}
        )
        if not chosen:
            near = did_you_mean(name, [case.name for case in made])
            raise NothingSelectedError(f"{path}: no snapshot is named {name}{near}")
        return chosen

    def find_whole_script(self, select: str) -> Case | None:
        """Return a case that runs a script as a whole, None for what is no script.

        Args:
            select: The script. A file of cases is none.
        """
        file = _find_python_file(select)
        if file is None or discover([file]):
            return None
        text = render_whole_script(file, hashlib.sha256(file.read_bytes()).hexdigest())
        path = f"{get_script_family(file)}/{FUNCTIONS}.py"
        (case,) = self._discover_rendered({path: text}, file.parent / GOLDENS)
        return replace(case, devices=0, arguments=quote(self._make_relative(file)))

    def _discover_rendered(self, texts: Mapping[str, str], home: Path) -> tuple[Case, ...]:
        """Return the cases of generated files, which are written to the cache.

        Args:
            texts: Text of each file, by its path below the folder of generated files.
            home: Folder of their goldens.
        """
        folder = self.cache / FUNCTIONS / hash_case_files(texts)
        for path, text in texts.items():
            # The folder is named by the hash of the texts, so an existing file has the right
            # content.
            if not (folder / path).exists():
                write_atomically(folder / path, text.encode())
        found = discover([folder / path for path in texts])
        # Goldens must not lie in the cache, which may be pruned.
        return tuple(replace(case, home=home) for case in found)

    def _make_relative(self, file: Path) -> str:
        """Return a path as a command of this folder names it."""
        return str(file.relative_to(self.start) if file.is_relative_to(self.start) else file)

    def find_case(self, text: str) -> Case:
        """Return the case that a text names.

        Raises:
            UsageError: If it names several cases.
        """
        cases = self.select_cases([text])
        if len(cases) > 1:
            names = join_names([case.id for case in cases])
            raise UsageError(f"{text} is {len(cases)} cases, expected one, e.g. of {names}")
        return cases[0]

    def find_release(self, text: str, option: str = "") -> str:
        """Return the release that a selector means.

        Args:
            text: The selector.
            option: The option with the selector, for the message.

        Raises:
            UsageError: If it means several releases, or none.
        """
        releases = resolve_selector(text, self.releases)
        if len(releases) != 1:
            words = f"{option} {text}".lstrip()
            raise UsageError(f"{words}: names {len(releases)} releases, expected one")
        return releases[0]

    def find_cell(self, text: str) -> Cell:
        """Return the cell that a selector names.

        Raises:
            UsageError: If it names several cells.
        """
        cells, _ = self.select_cells(None, [text])
        if len(cells) > 1:
            names = join_names([cell.id for cell in cells])
            raise UsageError(f"{text} is {len(cells)} cells, expected one, e.g. of {names}")
        return cells[0]

    def make_absolute(self, selects: Sequence[str]) -> tuple[str, ...]:
        """Return SELECTs that mean the same from any working directory."""
        return make_selects_absolute(selects, self.project.cases)

    def select_cells(
        self, matrix: str | None, selectors: Sequence[str]
    ) -> tuple[tuple[Cell, ...], tuple[Exclusion, ...]]:
        """Return the cells of a matrix, or those that `--cell` names.

        Args:
            matrix: Name or file of a matrix; None is the default, unless there are selectors.
            selectors: Cell ids or release selectors; with a matrix they filter it, except that an
                environment (`path:`) without a cell in the matrix is added.

        Returns:
            The cells, and the exclusions of the matrix. A nightly that the index does not resolve
            keeps its selector as its release.
        """
        if selectors and matrix is None:
            # Without a matrix, selectors name cells of any release and platform, not only of the
            # default.
            chosen = [cell for text in selectors for cell in select_cells(text, self.releases)]
            return tuple(dict.fromkeys(chosen)), ()
        loaded = load_matrix(matrix or DEFAULT_MATRIX, self.matrix_folders, self.releases)
        added = [text for text in selectors if self._is_added(text, loaded.cells)]
        added_cells = [cell for text in added for cell in select_cells(text, self.releases)]
        narrowing = [text for text in selectors if text not in added]
        if not narrowing:
            return tuple(dict.fromkeys((*loaded.cells, *added_cells))), loaded.exclusions
        chosen = [cell for cell in loaded.cells if self._matches_any(cell, narrowing)]
        if not chosen:
            names = ", ".join(cell.id for cell in loaded.cells)
            raise NothingSelectedError(
                f"no cell of matrix {loaded.name} matches {', '.join(narrowing)}; it has {names}"
            )
        # Exclusions of cells that were not asked for would only hide those that were.
        excluded = tuple(e for e in loaded.exclusions if self._is_selected(e.cell, narrowing))
        return tuple(dict.fromkeys((*chosen, *added_cells))), excluded

    def _is_added(self, selector: str, cells: Sequence[Cell]) -> bool:
        """Return whether a selector names an environment that has no cell in a matrix."""
        if not selector.strip().startswith(PATH_PREFIX):
            return False
        return not any(matches_cell(selector, cell, self.releases) for cell in cells)

    def _is_selected(self, cell_id: str, selectors: Sequence[str]) -> bool:
        # The id of a `path:` cell has no release to match: its exclusion is always shown.
        if not is_cell_id(cell_id):
            return True
        return self._matches_any(parse_cell(cell_id, self.releases), selectors)

    def _matches_any(self, cell: Cell, selectors: Sequence[str]) -> bool:
        return any(matches_cell(text, cell, self.releases) for text in selectors)


def _split_functions(
    selects: Sequence[str], listed: Mapping[str, Case]
) -> tuple[tuple[Case, ...], list[str]]:
    """Return the functions that SELECT means, and the words that mean something else."""
    chosen: list[Case] = []
    others: list[str] = []
    for select in selects:
        matching = [
            case for name, case in listed.items() if name == select or matches_name(case, select)
        ]
        chosen += matching
        # `module:name` can be nothing else, so a typo is reported here and not as an unknown
        # family.
        if not matching and FUNCTION_NAME.fullmatch(select):
            near = did_you_mean(select, listed)
            raise NothingSelectedError(
                f"no function {select} is listed{near}; list it in pyproject.toml: "
                f'[[tool.conformance.functions]] function = "{select}"'
            )
        if not matching:
            others.append(select)
    return tuple(chosen), others


def _find_python_file(path: str) -> Path | None:
    file = Path(path).expanduser().absolute()
    return file if file.suffix == ".py" and file.is_file() else None


def count_usable_cores() -> int:
    """Return how many jobs run at the same time by default: one per usable core."""
    # A container or a batch job may use fewer cores than the host has; macOS has no such call.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_context(night: str = "") -> ProjectContext:
    """Return the context of the working directory.

    Args:
        night: The day of the last nightly that counts, empty for all.
    """
    return ProjectContext(Path.cwd(), night)
