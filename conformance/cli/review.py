"""`conformance review`: decide on the pending changes of a run, in a terminal or by flags."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.output_files import check_writable, print_note
from conformance.app.review.workflow import (
    ReviewOptions,
    apply_decisions,
    check_outcomes,
    find_exit_code,
    make_review_json,
    open_review,
    parse_range,
    render_review,
)
from conformance.cli.options import recorded_options
from conformance.cli.output import json_option
from conformance.cli.review_keys import in_terminal, review_by_keys
from conformance.cli.words import CASES
from conformance.report.text import join_names, sanitize
from conformance.review.decisions import Terms

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("review")
@click.argument("select", nargs=-1, type=CASES)
@recorded_options
@click.option("--accept", multiple=True, metavar="ID", help="Make a group golden; repeatable.")
@click.option("--reject", multiple=True, metavar="ID", help="Leave a group unchanged; repeatable.")
@click.option(
    "--deviation", multiple=True, metavar="ID",
    help="Declare the deviation of a group in its case files, or end one; repeatable.",
)  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Accept every group that can be.")
@click.option("--reason", default="", metavar="TEXT", help="Why; of --reject and --deviation.")
@click.option("--issue", default="", metavar="OWNER/REPO#N", help="Upstream thread.")
@click.option(
    "--range", "releases", metavar="SPECIFIER",
    help="Releases of --deviation.  [default: the tightest range that covers them]",
)  # fmt: skip
@click.option("--platform", metavar="NAME", help="Platform of --deviation, empty for all.")
@click.option("--match", metavar="REGEX", help="Pattern of --deviation, empty for any.")
@click.option("--by", metavar="NAME", help="Who decides.  [default: as git has it]")
@click.option("--dry-run", is_flag=True, help="Say what would change; write and keep nothing.")
@click.option(
    "--export", "patch", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE",
    help="Write the decisions as patches for `git am`, and nothing else.",
)  # fmt: skip
@click.option(
    "--body", "markdown", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE",
    help="Write the review as Markdown, for a pull request.",
)  # fmt: skip
@json_option("the groups, and the outcomes of decisions,")
def command(
    *,
    reason: str,
    issue: str,
    releases: str | None,
    platform: str | None,
    match: str | None,
    output: Output,
    **options: Any,
) -> int:
    """Decide on the changes of a run: accept them, reject them, or declare deviations.

    Equal changes are one group, in any number of cases and cells. In a terminal, single keys
    decide on a group; decisions are kept in the run directory until they are written. Flags decide
    and write at once, or with --export make patches and leave all files unchanged. Results of
    nightlies never become goldens.

    conformance review                                   in a terminal: decide by keys
    conformance review shard_map_while --json -          what is pending, for scripts
    conformance review --accept 3f2a91c04d5e
    conformance review --reject 3f2a --reason 'wrong since jax-ml/jax#1, see there'
    conformance review --deviation 3f2a --reason 'no rule for while' --issue jax-ml/jax#27664
    conformance review --all --export goldens.patch --body pull-request.md

    Exit status: 0 nothing is pending, 1 something is, 2 usage.
    """
    terms = Terms(
        reason=reason, issue=issue, releases=parse_range(releases), platform=platform, match=match
    )
    review_options = ReviewOptions(terms=terms, **options)
    for option, file in (("--export", review_options.patch), ("--body", review_options.markdown)):
        if file is not None:
            # Before the run is judged again, which may take minutes.
            check_writable(option, file)
    context = load_context()
    review = open_review(context, review_options)
    # --json is for scripts, which press no keys.
    asks = not (review_options.is_scripted or output.json_file is not None)
    if review.groups and asks and in_terminal():
        return review_by_keys(review, partial(check_outcomes, context))
    outcomes, written = apply_decisions(context, review, review_options)
    lines = map(sanitize, render_review(review, outcomes, written=written))
    output.show(make_review_json(review, outcomes, written=written), lines)
    if review.changed and not output.prints_json:
        names = join_names([case.id for case in review.changed])
        # With --json the changed cases are a key of the document.
        print_note(sanitize(f"not judged: {names} changed since the run; run them again"))
    return find_exit_code(review)
