"""`conformance suite fetch` and `conformance suite list`: the named suites, and their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.notes import print_note
from conformance.app.suites import SuiteHome
from conformance.cells.secret_masking import mask_text
from conformance.cli.words import SUITES
from conformance.errors import UsageError
from conformance.files import readable_json
from conformance.suites.catalogue.checkouts import Checkouts
from conformance.suites.catalogue.definition import named_suite
from conformance.suites.catalogue.fetching import checked_revision
from conformance.suites.catalogue.named import suite_names

if TYPE_CHECKING:
    from conformance.suites.catalogue.definition import NamedSuite


@click.command("fetch", short_help="Fetch a named suite with git, for use offline.")
@click.argument("name", type=SUITES)
@click.option(
    "--revision", metavar="COMMIT", default="",
    help="All 40 digits of a commit.  [default: the pinned commit of the suite]",
)  # fmt: skip
@click.option("--url", default="", help="Repository or mirror.  [default: of the suite]")
def fetch(*, name: str, revision: str, url: str) -> int:
    """Fetch a named suite and its submodules with git, for offline use.

    The cache keeps the suite by revision for `suite run NAME`, which also fetches it if necessary.
    Your git configuration applies: url.*.insteadOf, proxies, credential helpers. Use another
    revision with --suite-path.

    \b
    conformance suite fetch array-api-tests
    conformance suite fetch array-api-tests --url https://git.example.com/mirror/array-api-tests

    Exit status: 0 fetched, 2 usage or unknown commit, 4 the suite cannot be fetched.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    suite = named_suite(name, SuiteHome(context=context).folder)
    if revision:
        revision = checked_revision(revision, "--revision")
    if url.startswith("-"):
        raise UsageError(f"--url {url}: expected a URL, or the path of a repository")
    checkout = Checkouts(context.cache, print_note).get(suite, revision=revision, url=url)
    click.echo(f"{name} {checkout.revision} is in {checkout.folder}")
    click.echo(
        f"licence: {suite.definition.licence}, from {mask_text(url or suite.definition.url)}"
    )
    return 0


@click.command("list", short_help="List the named suites.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_suites(*, as_json: bool) -> int:
    """List the named suites, and whether they are fetched.

    \b
    conformance suite list
    conformance suite list --json

    Exit status: 0.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    folder = SuiteHome(context=context).folder
    checkouts = Checkouts(context.cache, print_note)
    rows = [_row(name, checkouts, named_suite(name, folder)) for name in suite_names(folder)]
    if as_json:
        click.echo(readable_json(rows))
        return 0
    for row in rows:
        there = "fetched" if row["fetched"] else "not fetched"
        words = (row["name"], row["revision"][:12], row["licence"], there, row["url"])
        click.echo("  ".join(words))
    return 0


def _row(name: str, checkouts: Checkouts, suite: NamedSuite) -> dict[str, Any]:
    given = suite.definition
    return {
        "name": name,
        "title": given.title,
        "url": given.url,
        "revision": given.revision,
        "licence": given.licence,
        "fetched": checkouts.is_fetched(name, given.revision),
        "folder": str(checkouts.folder(name, given.revision)),
        "standards": list(given.standards),
    }
