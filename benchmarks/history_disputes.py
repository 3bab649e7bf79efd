"""Tries each cited commit that a search did not confirm: does the behaviour change with it?

    python benchmarks/history_disputes.py CLONE COMMITS LOG [--release R] [--only COUNT]

COMMITS is the log of `history_commits.py`. Where the commit that it found, or jaxlib, is not the
cited commit, the case is run on the sources before and at both commits, with the packages of the
release of the line and of the release before. The answers are appended to LOG, one JSON object per
line; lines that LOG has are not tried again. The last line counts the verdicts.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from common import checkout_context
from history_commits import (
    RELEASES,
    agrees,
    append,
    get_cited_commit,
    identify,
    key_of,
    list_changes,
    list_unsearched,
    make_options,
    parse_options,
    read_log,
)

from conformance.app.search.commits import find_commit_between_revisions
from conformance.errors import ConformanceError
from conformance.search.endpoints import AlikeError, EndpointsError

if TYPE_CHECKING:
    from conformance.app.context import ProjectContext
    from conformance.corpus.behaviour_changes import BehaviourChange

CHANGES, ALIKE = "changes", "alike"


def main() -> None:
    """Try the commits in dispute, and count who is right."""
    options = parse_options(__doc__ or "", "clone", "commits")
    disputed = {
        key_of(row): row
        for row in read_log(options.commits)
        if row["confirmed"] and get_cited_commit(row) and not agrees(row, options.clone)
    }
    context = checkout_context()
    for change in list_unsearched(options, list_changes()):
        row = disputed.get(identify(change))
        if row is not None:
            tried = try_both(context, change, row, str(options.clone))
            append(options.log, tried)
            print(f"{tried['release']:8} {tried['case']}: {tried['verdict']}", flush=True)
    print(Counter(row["verdict"] for row in read_log(options.log)))


def try_both(
    context: ProjectContext, change: BehaviourChange, row: dict[str, Any], clone: str
) -> dict[str, Any]:
    """Return what the cited and the found commit do to the behaviour, and which one is right."""
    found = row["culprit"].removeprefix("jax@")
    tries = {}
    for name, commit in (("cited", get_cited_commit(row)), ("found", found)):
        if commit != "jaxlib":
            tries[name] = try_commit(context, change, commit, clone)
    cited, confirmed = (CHANGES in tries.get(name, {}).values() for name in ("cited", "found"))
    if cited:
        verdict = "both change it" if confirmed else "the cited commit"
    else:
        verdict = "the found commit" if confirmed else "jaxlib" if found == "jaxlib" else "neither"
    return {name: row[name] for name in ("case", "release", "summary", "culprit")} | {
        "cited": row["cited"], "tries": tries, "verdict": verdict,
    }  # fmt: skip


def try_commit(
    context: ProjectContext, change: BehaviourChange, commit: str, clone: str
) -> dict[str, str]:
    """Return what a commit does with the packages of the release before and of the release."""
    case = context.select_cases([change.cases[0]])[0]
    before = RELEASES[RELEASES.index(change.shown_at) - 1]
    answers = {}
    for release in (before, change.shown_at):
        options = make_options(case, change, f"{commit}^", commit, jax=release)
        try:
            find_commit_between_revisions(
                context, case, options, location=clone, say=lambda _: None
            )
            answers[release] = CHANGES
        except AlikeError:
            answers[release] = ALIKE
        except EndpointsError as error:
            # The good end shows what is looked for at the bad one, or cannot be imported.
            answers[release] = ALIKE if "was to be good" in str(error) else str(error)
        except ConformanceError as error:
            answers[release] = str(error)
    return answers


if __name__ == "__main__":
    main()
