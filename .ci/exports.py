"""Export the programs of `export_compat` with releases: `python .ci/exports.py [RELEASE]...`.

By default all releases that have no file yet. The files are data of the cases, which every release
reads: commit them with the goldens that they change.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conformance.app.context import ProjectContext
from conformance.app.session import Session
from conformance.cells.provision import provision

ROOT = Path(__file__).resolve().parents[1]
FAMILY = ROOT / "cases" / "export_compat"
EXPORTS = FAMILY / "_exports"
START = """\
import sys
file = sys.argv[1] + "/_write.py"
exec(compile(open(file).read(), "export_compat/_write.py", "exec"))
"""


def main() -> None:
    """Export with each release in turn."""
    context = ProjectContext(ROOT)
    session = Session(context=context)
    releases = sys.argv[1:] or [
        one for one in context.releases.versions if not (EXPORTS / f"jax{one}.zip").exists()
    ]
    EXPORTS.mkdir(exist_ok=True)
    for release in releases:
        cells, _ = context.select_cells(None, (release,))
        preparation = session.prepare(cells)
        (planned,) = preparation.cells
        lock = preparation.locks[planned.cell.id]
        python = provision(planned.cell, lock=lock, cache=context.cache).python
        (row,) = (one for one in context.releases.rows if one.version == release)
        target = EXPORTS / f"jax{release}.zip"
        arguments = [str(FAMILY), str(target), f"{row.date:%Y-%m-%d}"]
        subprocess.run([python, "-c", START, *arguments], check=True)
        sys.stdout.write(f"{target.relative_to(ROOT)}: {target.stat().st_size} bytes\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
