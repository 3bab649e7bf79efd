"""Trying a script and drafts of a case of it: the first draft that shows what the script does."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from conformance.errors import UsageError
from conformance.model.outcome import Conformance, Outcome
from conformance.search.equivalence import SILENT, ending, quoted, same_failure
from conformance.triage.new.draft import DraftOptions, draft
from conformance.triage.new.file import Declared, create_file, render_case
from conformance.triage.new.reference import has_address
from conformance.triage.new.runner import write_cases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.triage.new.draft import Draft
    from conformance.triage.new.runner import CaseRunner
    from conformance.triage.new.script import Script

ROUNDS: Final = 3
"""How often values that are no arrays are looked for."""
_NO_VALUE: Final = re.compile(r"^(out\S*) is an? .+, expected an array or a Python scalar")
_NOTHING: Final = "the case captured nothing"
_MISSING: Final = re.compile(r"imports '(\w+)', and the cell has no package of that name")
_STATED: Final = frozenset({"AssertionError", "exit", "SystemExit"})
"""Errors by which a script says that a value is wrong."""
_ABSENT: Final = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError"})
_ORDER: Final = (
    (
        DraftOptions(kind="program", bridged=True),
        DraftOptions(kind="program"),
        DraftOptions(bridged=True),
        DraftOptions(),
        DraftOptions(bridged=True, truth=True),
        DraftOptions(truth=True),
    ),
    (DraftOptions(bridged=True, bare=True), DraftOptions(bare=True)),
)
"""The ways to make a case, the one that tells most first; the second lot if none of the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedDraft:
    """A draft that shows what its script does.

    Attributes:
        draft: The draft.
        case: The case it is written as, for as long as it is tried.
        records: Its records, by number of the cell.
        spelled: Numbers of the cells in which only the script's own spelling fails.
    """

    draft: Draft
    case: Case
    records: Mapping[int, Record]
    spelled: tuple[int, ...] = ()


def refuse_hopeless(plain: Mapping[int, Record], name: str) -> None:
    """Refuse a script of which no case can be made, by what came of it.

    Args:
        plain: What came of the script itself, by number of the cell.
        name: What it is called.

    Raises:
        UsageError: If it lacks a package or a file everywhere, or never ends.
    """
    known = [record for record in plain.values() if record.outcome not in SILENT]
    if not known:
        said = "; ".join({ending(record) for record in plain.values()})
        if missing := _MISSING.search(said):
            raise UsageError(
                f"{name}: needs the package {missing[1]}, which no cell has; a case may use jax, "
                "numpy, scipy and flax"
            )
        raise UsageError(f"{name}: could be run nowhere: {quoted(said)}")
    errors = [record.error for record in known if record.error is not None]
    if len(errors) < len(known):
        return
    last = errors[-1]
    if last.type == "FileNotFoundError":
        raise UsageError(f"{name}: reads a file: {last.message}; make its contents in the script")
    if all(record.outcome is Outcome.TIMED_OUT for record in known):
        raise UsageError(f"{name}: {last.message} on any release tried; raise it with --timeout")
    if all(error.type in {"NameError", "SyntaxError", "IndentationError"} for error in errors):
        raise UsageError(f"{name}: is not whole: {last.type}: {last.message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Tries drafts of one case.

    Attributes:
        script: The script.
        runner: Runs the drafts.
        file: Where they are written for that.
        declared: What their decorators say.
        name: What the script is called.
    """

    script: Script
    runner: CaseRunner
    file: Path
    declared: Declared
    name: str

    def choose(self, numbers: Sequence[int], plain: Mapping[int, Record]) -> TriedDraft:
        """Return the first draft that shows what the script does.

        Args:
            numbers: Numbers of the cells to try them in.
            plain: The records of the script itself in these.

        Raises:
            UsageError: If none does; the message says how the last one differs.
        """
        refused = ""
        for tried in (one for options in _ORDER for one in self._tried(options, numbers)):
            spelled = _spelled(plain) if tried.draft.compat else ()
            differs = [
                number
                for number, record in sorted(tried.records.items())
                if number not in spelled
                and number in plain
                and not agrees(record, plain[number], caught=self.script.caught)
            ]
            if not differs:
                used = tuple(n for n in spelled if tried.records[n].outcome is Outcome.OK)
                return replace(tried, spelled=used)
            number = differs[-1]
            both = (_how(plain[number]), _how(tried.records[number]))
            release = self.runner.releases[number]
            refused = f"on {release} the script ends with {both[0]}, a case of it with {both[1]}"
        raise UsageError(f"{self.name}: no case shows what it does: {refused}{_hint(refused)}")

    def _tried(self, order: Sequence[DraftOptions], numbers: Sequence[int]) -> list[TriedDraft]:
        """Try drafts at once, and again with values as text that turn out to be no arrays."""
        pending = dict(enumerate(order))
        found: dict[int, TriedDraft] = {}
        for _ in range(ROUNDS):
            made = self._made(pending)
            cases = {key: self._written(f"draft_{key}", one) for key, one in made.items()}
            records = self.runner.run([*cases.values()], numbers)
            for key, one in made.items():
                case = cases[key]
                found[key] = TriedDraft(draft=one, case=case, records=records[case.name])
            again = {key: self._observable(found[key]) for key in made}
            pending = {key: one for key, one in again.items() if one != made[key].options}
            if not pending:
                break
        return [found[key] for key in sorted(found)]

    def _made(self, order: Mapping[int, DraftOptions]) -> dict[int, Draft]:
        """Return the drafts that can be made, none of them twice."""
        made: dict[int, Draft] = {}
        for key, options in order.items():
            one = draft(self.script, options)
            if one is not None and one.body not in {other.body for other in made.values()}:
                made[key] = one
        return made

    def _written(self, name: str, one: Draft) -> Case:
        """Write a draft into a file of its own; return its case."""
        text = render_case(one, name, self.declared)
        whole = create_file(text, one, "A draft.", deviates=False)
        return write_cases(self.file.with_name(f"{name}.py"), whole)[name]

    def _observable(self, tried: TriedDraft) -> DraftOptions:
        """Return the options by which all values of a draft can be observed."""
        options, paths = tried.draft.options, tried.draft.paths
        as_text, as_type = set(options.as_text), set(options.as_type)
        for record in tried.records.values():
            message = record.error.message if record.error is not None else ""
            if match := _NO_VALUE.match(message):
                as_text |= _numbers(paths, match[1])
            elif _NOTHING in message:
                as_text |= {*range(len(paths))}
            elif record.outcome is Outcome.OK and has_address(self.runner.value(record)):
                as_type |= as_text
        return replace(options, as_text=frozenset(as_text), as_type=frozenset(as_type))


def _numbers(paths: Sequence[str], where: str) -> set[int]:
    """Return the number of the value at a path; all numbers if that is unknown."""
    found = {
        number
        for number, path in enumerate(paths)
        if where == path or where.startswith((f"{path}[", f"{path}."))
    }
    return found or {*range(len(paths))}


def _spelled(plain: Mapping[int, Record]) -> tuple[int, ...]:
    """Return the releases that do not have a spelling yet: older than all that have it."""
    ran = [number for number, record in plain.items() if record.outcome is Outcome.OK]
    return tuple(
        number
        for number, record in plain.items()
        if record.error is not None and record.error.type in _ABSENT
        and number < min(ran, default=0)
    )  # fmt: skip


def agrees(seen: Record, plain: Record, *, caught: bool = False) -> bool:
    """Say whether a case shows what its script does.

    Args:
        seen: What came of the case.
        plain: What came of the script.
        caught: Whether the script catches what the case raises.
    """
    if {seen.outcome, plain.outcome} & {Outcome.INFRA, Outcome.NOT_RUN}:
        return True
    if Outcome.UNSUPPORTED in {seen.outcome, plain.outcome}:
        return Outcome.OK not in {seen.outcome, plain.outcome}
    ran = seen.outcome is Outcome.OK
    if plain.error is None:
        conforms = seen.conformance is not Conformance.DEVIATES
        return conforms if ran else caught and seen.outcome is Outcome.RAISED
    if plain.error.type in _STATED:
        wrong = seen.error is not None and seen.error.type in _STATED
        return (seen.conformance is Conformance.DEVIATES) if ran else wrong
    if ran or seen.error is None:
        return False
    alike = seen.error.type == plain.error.type or same_failure(ending(seen), ending(plain))
    return alike or seen.outcome is plain.outcome is not Outcome.RAISED


def _how(record: Record) -> str:
    if record.conformance is Conformance.DEVIATES and record.outcome is Outcome.OK:
        return "a value that is not what it asserts"
    return quoted(ending(record))


def _hint(refused: str) -> str:
    if "FileNotFoundError" in refused:
        return "; a case reads no files: make their contents in the script"
    if "SystemExit" in refused or "exited with status" in refused:
        return "; take out what ends the interpreter"
    return ""
