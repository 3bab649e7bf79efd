"""`docs/python.md`: its program prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.cell
def test_the_program_prints_what_the_page_says(tmp_path: Path) -> None:
    """Where the cases are, so that its run is written there."""
    for name in ("cases", "matrix"):
        (tmp_path / name).symlink_to(ROOT / name)
    page = (ROOT / "docs" / "python.md").read_text()
    (program,) = re.findall(r"(?ms)^```python\n(.*?)^```$", page)
    (printed,) = re.findall(r"(?ms)^It prints:\n\n```\n(.*?)^```$", page)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == printed
    assert len(list((tmp_path / "reports" / "runs").iterdir())) == 1
