"""Lists the fixes of `conformance scan --fix`, with the releases that they are for.

    python benchmarks/fixes_page.py [--write]

The releases are those of the goldens of `code_fixes/working_forms`. `--write` replaces the table of
docs/fixes.md, which a test compares.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from common import ROOT, checkout_context

from conformance.app.scan.api import load_fixes
from conformance.golden.store import GoldenStore
from conformance.scan.fixes import FormState

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = ROOT / "docs" / "fixes.md"
HEAD = "| before | after | works | warns | raises |\n|---|---|---|---|---|\n"


def list_rows() -> Iterator[str]:
    """Yield a row for each fix: both forms, and since when they work, warn and raise."""
    context = checkout_context()
    releases = [*context.releases.versions]
    for fix in load_fixes(context, GoldenStore(context.project.cases), releases):
        before, after = zip(*(fix.states[release] for release in releases), strict=True)
        works = next(
            release for release, one in zip(releases, after, strict=True)
            if one is not FormState.RAISES
        )  # fmt: skip
        warns = [release for release, one in zip(releases, before, strict=True)
                 if one is FormState.WARNS]  # fmt: skip
        last = max((n for n, one in enumerate(before) if one is not FormState.RAISES), default=-1)
        gone = releases[last + 1] if last + 1 < len(releases) else ""
        cells = [
            works if works != releases[0] else "always",
            (warns[0] if warns else "").replace(releases[0], "always"),
            gone if gone != releases[0] else "always",
        ]
        old = (
            f"{fix.old}({', '.join(one.name for one in fix.parameters)})"
            if fix.parameters
            else fix.old
        )
        yield f"| `{old}` | `{fix.text}` | {' | '.join(cells)} |"


def main() -> None:
    """Print the table, or write it to the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    table = HEAD + "".join(f"{row}\n" for row in list_rows())
    if parser.parse_args().write:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(text.partition(HEAD)[0] + table, encoding="utf-8")
    else:
        print(table)


if __name__ == "__main__":
    main()
