"""Export of a review: Markdown for a pull request, and patches for `git am`."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.errors import UsageError
from conformance.files import describe_os_error
from conformance.golden.cleanup import find_unreferenced
from conformance.report.markup import fence, to_code
from conformance.report.text import flatten, join_names
from conformance.review.decisions import Choice
from conformance.review.evidence import collect_evidence
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.review.decisions import OpenDecision
    from conformance.review.outcomes import Outcomes
    from conformance.review.run_data import RunData

_SUBJECT: Final = 72
_LINE: Final = 200
_BODY: Final = 60_000
"""Characters of a pull request's body, of which hosts take 65,536."""
_EVIDENCE: Final = 4_000
WORDS: Final = {
    Choice.ACCEPT: "accepted",
    Choice.DEVIATION: "declared",
    Choice.REJECT: "rejected",
}
_PLAIN: Final = (
    "-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "-c", "core.quotePath=true",
    "-c", "commit.gpgSign=false", "-c", "format.signOff=false", "-c", "format.useAutoBase=false",
    "-c", "format.subjectPrefix=PATCH", "-c", "diff.renames=false",
)  # fmt: skip
"""Settings that override settings of the user which change the format of a patch."""
_DEFAULT_AUTHOR: Final = "conformance review <conformance@localhost>"


def render_patches(root: Path, outcomes: Outcomes, when: str) -> bytes:
    """Return outcomes as patches on top of the last commit.

    Args:
        root: Root of the repository.
        outcomes: The outcomes.
        when: Date of the commits, ISO 8601.

    Raises:
        UsageError: If a file of the patches has uncommitted changes, or is in another repository.
    """
    goldens = _collect_golden_files(outcomes, root)
    folders = sorted({file.parent for file in goldens})
    for path in (*outcomes.sources, *folders):
        if not path.resolve().is_relative_to(root.resolve()):
            raise UsageError(f"{path} is not below {root}; review the cases of one repository")
    if dirty := list_uncommitted(root, [*outcomes.sources, *(f for f in folders if f.exists())]):
        raise UsageError(
            f"{root / dirty[0]} is not as in the last commit, which patches are made on; "
            "commit it first"
        )
    declared = [one for one in outcomes.decisions if one.decision.choice is Choice.DEVIATION]
    spans = [f"Spans of goldens: {outcomes.tally}."]
    # Case files first: after the second commit alone, goldens would contradict the declarations.
    commits = (
        Commit(message=_make_message("fix: deviations of", declared), files=outcomes.sources),
        Commit(message=_make_message("golden:", outcomes.decisions, spans), files=goldens),
    )
    found = [commit for commit in commits if commit.files]
    return make_patches(root, found, when) if found else b""


def _collect_golden_files(outcomes: Outcomes, root: Path) -> dict[Path, bytes | None]:
    """Return the content of the golden files to write, by path; None for files to remove."""
    files: dict[Path, bytes | None] = {}
    for plan in outcomes.plans:
        files |= plan.contents
        files |= {file: text.encode() for file, text in plan.documents.items()}
        # Only tracked files can be removed by a patch; others are not in the reader's repository.
        gone = set(find_unreferenced(plan.documents)) - set(plan.contents)
        topics = sorted({file.parent.parent for file in plan.documents})
        files |= dict.fromkeys(gone & list_tracked(root, topics))
    return files


def _make_message(start: str, decisions: Sequence[OpenDecision], more: Iterable[str] = ()) -> str:
    """Return the message of a commit for some decisions."""
    cases = (job.record.case.partition("[")[0] for one in decisions for job in one.members)
    subject = flatten(f"{start} {join_names(list(dict.fromkeys(cases)))}")
    if len(subject) > _SUBJECT:
        subject = f"{subject[: _SUBJECT - 3]}..."
    # Each line is indented or begins with a mark: `git am` reads none of them as a patch.
    lines = [line for one in decisions for line in _format_decision(one)]
    return "\n".join([subject, "", *lines, *more]) + "\n"


def _format_decision(open_decision: OpenDecision) -> Iterator[str]:
    decision = open_decision.decision
    yield f"* {WORDS[decision.choice]} {decision.group}, {open_decision.group.size}"
    yield f"  what: {flatten(open_decision.group.title, _LINE)}"
    if decision.reason:
        yield f"  why: {flatten(decision.reason, _LINE)}"
    if decision.issue:
        yield f"  issue: {flatten(decision.issue, _LINE)}"
    yield f"  by: {flatten(decision.by, _LINE)}, {decision.at}"


def render_markdown(
    run: str, decisions: Sequence[OpenDecision], outcomes: Outcomes, data: RunData
) -> str:
    """Return Markdown for a pull request: changes, reasons, reviewers and evidence.

    Args:
        run: Name of the run.
        decisions: All decisions, rejections included.
        outcomes: The effect of the decisions.
        data: Data of the run.
    """
    found = Counter(open_decision.decision.choice for open_decision in decisions)
    counts = ", ".join(f"{found[choice]} {WORDS[choice]}" for choice in Choice if found[choice])
    parts = [f"Review of the run {to_code(run)}: {counts or 'nothing is decided'}."]
    parts.append(f"Goldens: {outcomes.tally}.")
    refused = dict.fromkeys(f"{job.record.cell}: {job.refusal}" for job in outcomes.refused)
    parts += ["\n".join(f"- not taken: {to_code(text)}" for text in refused)] if refused else []
    omitted = 0
    for open_decision in decisions:
        part = _render_decision(open_decision, outcomes, data)
        # Later, shorter decisions may still fit, so the loop continues.
        if sum(map(len, parts)) + len(part) > _BODY:
            omitted += 1
        else:
            parts.append(part)
    if omitted:
        parts.append(f"*{omitted} more decisions are left out here; they are in the commits.*")
    return "\n\n".join(parts) + "\n"


def _render_decision(open_decision: OpenDecision, outcomes: Outcomes, data: RunData) -> str:
    decision = open_decision.decision
    facts = [f"- {open_decision.group.size}, {to_code(decision.group)}"]
    if decision.reason:
        facts.append(f"- why: {to_code(decision.reason)}")
    if decision.issue:
        facts.append(f"- issue: {to_code(decision.issue)}")
    facts += [
        f"- {to_code(str(edit))}" for edit in outcomes.declarations.get(open_decision.group.id, ())
    ]
    facts.append(f"- decided by {to_code(decision.by)} at {decision.at}")
    evidence = "\n".join(line.plain for line in collect_evidence(open_decision.group, data))
    return (
        f"### {WORDS[decision.choice].capitalize()}: {to_code(open_decision.group.title)}\n\n"
        + "\n".join(facts)
        + f"\n\n<details><summary>evidence</summary>\n\n{fence(evidence, _EVIDENCE)}\n\n</details>"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit to create.

    Attributes:
        message: Commit message.
        files: Content by path; None for a removed file.
    """

    message: str
    files: Mapping[Path, bytes | None]


def find_repository(folder: Path) -> Path:
    """Return the root of the repository that holds a folder.

    Raises:
        UsageError: If the folder is in no repository.
    """
    output = _run(["rev-parse", "--show-toplevel"], folder)
    return Path(output.decode().rstrip("\n"))


def find_author(folder: Path) -> str:
    """Return the git author of a folder, `Name <address>`.

    Args:
        folder: A folder of a repository, or any other.
    """
    try:
        identity = _run(["var", "GIT_AUTHOR_IDENT"], folder).decode("utf-8", "replace")
    except UsageError:
        return _DEFAULT_AUTHOR
    return identity.rpartition(">")[0] + ">"


def list_tracked(root: Path, folders: Sequence[Path]) -> set[Path]:
    """Return the files of the last commit below some folders.

    Args:
        root: Root of the repository.
        folders: The folders.
    """
    # Without paths, git would list the whole tree.
    if not folders:
        return set()
    names = [str(_relativize(root, folder)) for folder in folders]
    listed = _run(["ls-tree", "-r", "-z", "--name-only", "HEAD", "--", *names], root)
    return {root / os.fsdecode(name) for name in listed.split(b"\0") if name}


def list_uncommitted(root: Path, files: Sequence[Path]) -> list[str]:
    """Return the files, also below folders, that differ from the last commit.

    Args:
        root: Root of the repository.
        files: Files and folders.
    """
    # Without paths, git would report the whole work tree.
    if not files:
        return []
    options = ["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"]
    # A case name may hold brackets, which git would read as a pattern.
    paths = [f":(literal){_relativize(root, file)}" for file in files]
    output = _run([*options, "--", *paths], root)
    return [os.fsdecode(entry[3:]) for entry in output.split(b"\0") if entry]


def _relativize(root: Path, path: Path) -> Path:
    return path.resolve().relative_to(root.resolve())


def make_patches(root: Path, commits: Sequence[Commit], when: str) -> bytes:
    """Return commits on top of the last commit as a mailbox for `git am`.

    Args:
        root: Root of the repository.
        commits: The commits, in order.
        when: Date of the commits, ISO 8601.

    Raises:
        UsageError: If git is missing or refuses.
    """
    with temporary_folder("review") as folder:
        objects = _run(["rev-parse", "--git-path", "objects"], root).decode().strip()
        env = {
            # Own index and object folder: the work tree, the index and the repository stay
            # unchanged.
            "GIT_INDEX_FILE": str(folder / "index"),
            "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _format_alternates(root / objects),
            **_make_identity(find_author(root), when),
        }
        (folder / "objects").mkdir()
        base = parent = _run(["rev-parse", "HEAD"], root).decode().strip()
        _run(["read-tree", base], root, env=env)
        for commit in commits:
            parent = _make_commit(root, commit, parent, env)
        return _run(
            [
                *_PLAIN, "format-patch", "--stdout", "--binary", "--full-index", "--no-color",
                "--no-ext-diff", "--no-textconv", "--no-stat", "--no-signature", "--no-thread",
                "--no-notes", "--no-cover-letter", "--no-attach", "--src-prefix=a/",
                "--dst-prefix=b/", f"{base}..{parent}",
            ],
            root, env=env,
        )  # fmt: skip


def _format_alternates(objects: Path) -> str:
    # git unquotes an entry that begins with a quote; a path may contain the separator.
    quoted = str(objects.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    inherited = os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")
    return os.pathsep.join([f'"{quoted}"', *([inherited] if inherited else [])])


def _make_identity(who: str, when: str) -> dict[str, str]:
    name, _, address = who.partition(" <")
    values = {"NAME": name, "EMAIL": address.removesuffix(">"), "DATE": when}
    return {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in values.items()}


def _make_commit(root: Path, commit: Commit, parent: str, env: Mapping[str, str]) -> str:
    """Return the name of a new commit on top of a parent."""
    entries = []
    for file, data in sorted(commit.files.items()):
        name = os.fsencode(str(_relativize(root, file)))
        if data is None:
            entries.append(b"0 " + b"0" * len(parent) + b"\t" + name + b"\0")
            continue
        # An edited case file keeps its mode; a new golden is never executable.
        mode = b"100755" if file.exists() and os.access(file, os.X_OK) else b"100644"
        # --path applies the filters of .gitattributes, e.g. line endings, as `git add` does.
        hashed = _run(
            ["hash-object", "-w", "--stdin", "--path", os.fsdecode(name)], root, data, env
        )
        entries.append(mode + b" " + hashed.strip() + b"\t" + name + b"\0")
    _run(["update-index", "-z", "--index-info"], root, b"".join(entries), env)
    tree = _run(["write-tree"], root, env=env).decode().strip()
    made = _run(["commit-tree", tree, "-p", parent], root, commit.message.encode(), env)
    return made.decode().strip()


def _run(
    arguments: Sequence[str], folder: Path, data: bytes = b"", env: Mapping[str, str] | None = None
) -> bytes:
    try:
        done = subprocess.run(
            ["git", *arguments], input=data, cwd=folder, capture_output=True, check=False,
            # Errors quote the message of git: in English on every host.
            env={**os.environ, "LC_ALL": "C", **(env or {})},
        )  # fmt: skip
    except OSError as error:
        raise UsageError(
            f"git: {describe_os_error(error)}; patches are made by it, install it"
        ) from None
    if done.returncode:
        errors = done.stderr.decode(errors="replace").strip().splitlines()
        reason = errors[0].lower() if errors else f"exit status {done.returncode}"
        raise UsageError(f"git {arguments[0]} in {folder}: {reason}")
    return done.stdout
