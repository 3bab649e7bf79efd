"""`conformance scan`: what an upgrade of jax changes for a code base."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.app.output_files import check_writable, write_file
from conformance.app.scan.changes import scan
from conformance.cli.options import timeout_option
from conformance.cli.output import json_option
from conformance.cli.words import CELLS
from conformance.errors import UsageError
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.report.scan.sarif import make_scan_sarif
from conformance.report.scan.text import make_scan_json, render_fixes, render_scan

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("scan")
@click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path)
)
@click.option(
    "--from", "old", required=True, metavar="RELEASE", type=CELLS, help="Present release."
)
@click.option(
    "--to", "new", default="latest", show_default=True, metavar="RELEASE", type=CELLS,
    help="Wanted release.",
)  # fmt: skip
@click.option(
    "--history", "every", is_flag=True,
    help="Name every change of behaviour of a name that is called, not only those of a parameter "
    "that is passed.",
)  # fmt: skip
@click.option("--verbose", "-v", is_flag=True, help="Name every place of a hit.")
@click.option(
    "--fix", is_flag=True,
    help="Show the mechanical changes for the wanted release as a diff, and the hits that remain.",
)  # fmt: skip
@click.option("--write", is_flag=True, help="Write the changes of --fix to the files.")
@click.option(
    "--sarif", metavar="FILE", type=click.Path(path_type=Path),
    help="Write the hits as SARIF, which code scanning shows on pull requests.",
)  # fmt: skip
@click.option(
    "--run", "run", default="", metavar="COMMAND",
    help="Run a command, e.g. 'pytest -x', once in its own environment, and say which hits it "
    "reaches, in libraries too.",
)  # fmt: skip
@timeout_option("Timeout of the command of --run.")
@json_option("the hits")
def command(
    *,
    paths: tuple[Path, ...],
    old: str,
    new: str,
    every: bool,
    verbose: bool,
    fix: bool,
    write: bool,
    sarif: Path | None,
    run: str,
    timeout: float | None,
    output: Output,
) -> int:
    """Find what an upgrade of jax changes for code, without running it.

    PATH is a Python file, a notebook or a folder. Names are resolved through imports, aliases and
    modules of the code base, and compared with the public names, signatures and options of each
    release, and with the names and patterns that the history of behaviour changes is about. No jax
    is imported, except by the command of --run.

    conformance scan src --from 0.5.3
    conformance scan train.py src --from 0.5.3 --to 0.9.0 --json hits.json
    conformance scan src notebooks --from 0.5.3 --sarif scan.sarif
    conformance scan src --from 0.5.3 --run 'pytest -x'
    conformance scan src --from 0.5.3 --fix --write

    Exit status: 0 no hits, 1 hits; with --write, hits that remain.
    """
    if write and not fix:
        raise UsageError("--write: needs --fix, whose changes it writes")
    if sarif is not None:
        check_writable("--sarif", sarif)
    result = scan(paths, old, new, every=every, command=run, timeout=timeout)
    if fix:
        # libcst, which most scans do not need, takes a quarter of a second to import.
        from conformance.app.scan.fixes import add_fixes, write_fixes  # noqa: PLC0415

        add_fixes(result)
        if write:
            write_fixes(result.fixes)
    if sarif is not None:
        write_file("--sarif", sarif, readable_json(make_scan_sarif(result, Path.cwd())))
    output.print(*(render_fixes(result) if fix else render_scan(result, every=verbose)))
    output.write_json(make_scan_json(result))
    remaining = [one for one in result.hits if not write or result.find_fix(one) is None]
    found = remaining or result.library_hits
    return ExitCode.UNEXPECTED if found else ExitCode.OK
