"""The cases of a run, with folders of more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.app.case_choice import choose_cases, list_cases
from conformance.app.context import ProjectContext
from conformance.app.run_request import RunRequest
from conformance.errors import UsageError
from tests.projects import ROOT
from tests.workbench import source_of, write_case

if TYPE_CHECKING:
    from pathlib import Path


def test_folders_of_more_cases_may_be_missing_or_empty(tmp_path: Path) -> None:
    """Each case counts once."""
    context = ProjectContext(ROOT)
    (tmp_path / "empty").mkdir()
    write_case(tmp_path / "full", source_of("return 1"))
    folders = tuple(str(tmp_path / name) for name in ("none", "empty", "full", "full"))
    request = RunRequest(select=("prng",), also=folders)
    cases, count = choose_cases(context, request)
    own = context.select_cases(("prng",))
    assert [case.id for case in cases] == [*(case.id for case in own), "family/case"]
    assert count == len(cases)
    assert list_cases(context, request) == cases


def test_shards_and_a_continued_run_have_the_folders(tmp_path: Path) -> None:
    """As arguments, and as absolute paths."""
    request = RunRequest(also=("reports/fuzzed",))
    assert request.render_arguments("") == "--also reports/fuzzed"
    absolute = request.make_absolute(ProjectContext(tmp_path)).also
    assert all(folder.startswith("/") for folder in absolute)


def test_all_and_a_selection_exclude_each_other() -> None:
    """One clear error."""
    with pytest.raises(UsageError, match=r"--all with SELECT \(prng\): give one of them"):
        choose_cases(ProjectContext(ROOT), RunRequest(select=("prng",), everything=True))
