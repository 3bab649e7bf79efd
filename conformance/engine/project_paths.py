"""Where files are, told from their project: it may have stood elsewhere when a job was observed."""

from __future__ import annotations

import re
from functools import lru_cache


def relative_to_project(text: str, case: str, *roots: str) -> str:
    """Return a text in which files of a case's project are named as seen from its folder.

    Results that are used again, and IRs, name files as they were where the job was run.

    Args:
        text: A text that names files by absolute paths.
        case: Case id; its file lies in a folder that is called like its family.
        roots: Folders of the project, where they are known.
    """
    for root in filter(None, roots):
        text = text.replace(f"{root}/", "")
    return _outside(case.partition("/")[0]).sub("", text)


@lru_cache(maxsize=256)
def _outside(family: str) -> re.Pattern[str]:
    """Return what comes before `cases/<family>/<topic>.py` in an absolute path."""
    return re.compile(rf"(?<!\S)/(?:\S*/)?(?=[^/\s]+/{re.escape(family)}/[^/\s]+\.py\b)")
