"""Files told from their project."""

from __future__ import annotations

import pytest

from conformance.corpus.project import relative_to_project


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/ci/1/project/cases/loops/adam.py:54", "cases/loops/adam.py:54"),
        ("entry, f/loops/add, /a/cases/loops/x.py:1", "entry, f/loops/add, cases/loops/x.py:1"),
        ("/home/me/project/lib/model.py:3", "lib/model.py:3"),
        ("/usr/lib/jax/loops.py:1", "/usr/lib/jax/loops.py:1"),
        ("/a/loops/x.py and /b/loops/y.py", "a/loops/x.py and b/loops/y.py"),
        ("cases/loops/x.py:1", "cases/loops/x.py:1"),
        ("", ""),
    ],
)  # fmt: skip
def test_files_of_the_project_alone_are_told_from_it(text: str, told: str) -> None:
    """Wherever it stood when the job was run; what is elsewhere stays elsewhere."""
    assert relative_to_project(text, "loops/adam[1]", "/home/me/project") == told
