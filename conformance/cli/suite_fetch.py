"""`conformance suite fetch` and `conformance suite list`: the named suites, and their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.output_files import print_note
from conformance.cells.secret_masking import mask_text
from conformance.cli.output import json_option
from conformance.cli.words import SUITES
from conformance.errors import UsageError
from conformance.suites.catalogue.checkouts import Checkouts
from conformance.suites.catalogue.definition import find_suites, load_suite
from conformance.suites.catalogue.git import parse_revision

if TYPE_CHECKING:
    from conformance.cli.output import Output
    from conformance.suites.catalogue.definition import NamedSuite


@click.command("fetch", short_help="Fetch a named suite with git, for use offline.")
@click.argument("name", type=SUITES)
@click.option(
    "--revision", metavar="COMMIT", default="",
    help="All 40 digits of a commit.  [default: the pinned commit of the suite]",
)  # fmt: skip
@click.option("--url", default="", help="Repository or mirror.  [default: of the suite]")
@json_option("the revision and the folder")
def fetch(*, name: str, revision: str, url: str, output: Output) -> int:
    """Fetch a named suite and its submodules with git, for offline use.

    The cache keeps the suite by revision for `suite run NAME`, which also fetches it if necessary.
    Your git configuration applies: url.*.insteadOf, proxies, credential helpers. Use another
    revision with --suite-path.

    conformance suite fetch array-api-tests
    conformance suite fetch array-api-tests --url https://git.example.com/mirror/array-api-tests

    Exit status: 0 fetched, 2 usage or unknown commit, 4 the suite cannot be fetched.
    """
    context = load_context()
    suite = load_suite(name, context.project.suites)
    if revision:
        # A branch or a short hash may mean another commit tomorrow.
        revision = parse_revision(revision, "--revision")
    # git would take it for an option.
    if url.startswith("-"):
        raise UsageError(f"--url {url}: expected a URL, or the path of a repository")
    checkout = Checkouts(context.cache, print_note).get(suite, revision=revision, url=url)
    # A URL may contain a token.
    licence, source = suite.definition.licence, mask_text(url or suite.definition.url)
    data = {
        "name": name, "revision": checkout.revision, "folder": str(checkout.folder),
        "licence": licence, "url": source,
    }  # fmt: skip
    lines = (
        f"{name} {checkout.revision} is in {checkout.folder}",
        f"licence: {licence}, from {source}",
    )
    output.show(data, lines)
    return 0


@click.command("list", short_help="List the named suites.")
@json_option("the suites")
def list_suites(*, output: Output) -> int:
    """List the named suites, and whether they are fetched.

    conformance suite list
    conformance suite list --json suites.json

    Exit status: 0.
    """
    context = load_context()
    folder = context.project.suites
    checkouts = Checkouts(context.cache, print_note)
    # Looked up on the disk, without the network: the list also works offline.
    rows = [_make_row(name, checkouts, load_suite(name, folder)) for name in find_suites(folder)]
    output.show(rows, map(_render_row, rows))
    return 0


def _make_row(name: str, checkouts: Checkouts, suite: NamedSuite) -> dict[str, Any]:
    definition = suite.definition
    return {
        "name": name,
        "title": definition.title,
        "url": definition.url,
        "revision": definition.revision,
        "licence": definition.licence,
        "fetched": checkouts.is_fetched(name, definition.revision),
        "folder": str(checkouts.folder(name, definition.revision)),
        "standards": list(definition.standards),
    }


def _render_row(row: dict[str, Any]) -> str:
    state = "fetched" if row["fetched"] else "not fetched"
    return "  ".join((row["name"], row["revision"][:12], row["licence"], state, row["url"]))
