"""Run suites from their own folder, regardless of the working directory of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without a configuration pytest begins node ids where it and the suite have a folder in common.
    monkeypatch.chdir(tmp_path)
