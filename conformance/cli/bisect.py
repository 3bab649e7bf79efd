"""`conformance bisect`: which release changed what a case, a script, a test or a command does."""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console

from conformance.cells.accelerators import Turns
from conformance.cli.axes import axis_of, nightlies_answer
from conformance.cli.named_files import as_json, check_writable, write_file
from conformance.cli.preparing import prepare_in
from conformance.cli.setting import default_jobs, here
from conformance.engine.cache import ResultCache
from conformance.engine.judging import Judge
from conformance.engine.local import LocalExecutor
from conformance.engine.prepare import Provider
from conformance.engine.rundir import RESULTS, Results, RunDirectory
from conformance.errors import UsageError
from conformance.judge.tolerance import Tolerance
from conformance.model.outcome import ExitCode
from conformance.triage.axis import JAX
from conformance.triage.bisection import Bisection
from conformance.triage.figures import MEMORY, time_of
from conformance.triage.points import Points
from conformance.triage.prober import CaseProber, ProgramProber
from conformance.triage.program import ProgramRunner
from conformance.triage.question import PREDICATES
from conformance.triage.target import Target, target_of
from conformance.triage.telling import answer_json, answer_lines, step_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.cells.lock import Lock
    from conformance.cli.setting import Setting
    from conformance.model.case import Case
    from conformance.triage.bisection import Step
    from conformance.triage.figures import Figure
    from conformance.triage.prober import Prober

LOGS: Final = Path("reports") / "bisect"
"""Where searches are logged, below the project."""
FIGURES: Final = ("time", "memory")
"""What `--when` says of what is measured."""
TIMED: Final = ("build", "trace", "lower", "compile", "execute")
"""Stages whose time is measured of a case."""
TIMEOUT: Final = 120.0
"""Seconds that a script may take."""


@click.command("bisect", short_help="Find the release that changed what a target does.")
@click.argument("target")
@click.option("--good", required=True, metavar="RELEASE", help="Where it is right.")
@click.option("--bad", required=True, metavar="RELEASE", help="Where it is wrong.")
@click.option(
    "--axis", default=JAX, show_default=True, metavar="AXIS",
    help="What is varied: jax, nightly, another package, config:NAME or xla:FLAG.",
)  # fmt: skip
@click.option(
    "--jax", default="latest", show_default=True, metavar="RELEASE",
    help="The release of jax, where another thing is varied.",
)  # fmt: skip
@click.option("--values", default="", metavar="V,V,...", help="Values of an option, in order.")
@click.option(
    "--find", type=click.Choice(["bad", "fix"]), default="bad", show_default=True,
    help="The first bad release, or the first in which a bug was fixed.",
)  # fmt: skip
@click.option(
    "--when", type=click.Choice([*PREDICATES, *FIGURES]), default=None,
    help="What makes a release bad.  [default: whatever tells both ends apart]",
)  # fmt: skip
@click.option(
    "--fact", default="", metavar="NAME",
    help="A fact of the optimised HLO that makes it bad, e.g. collectives.all-gather.",
)  # fmt: skip
@click.option(
    "--stage", type=click.Choice(TIMED), default=None,
    help="The stage of a case whose time counts.  [default: all of them]",
)  # fmt: skip
@click.option("--platform", default="", metavar="PLATFORM", help="E.g. cpu4 or tpu:v5e:2x2.")
@click.option(
    "--timeout", type=click.FloatRange(0.1), default=TIMEOUT, show_default=True,
    metavar="SECONDS", help="Of a script, test or command.",
)  # fmt: skip
@click.option(
    "--with", "wanted", multiple=True, metavar="REQUIREMENT",
    help="A package that a script or test needs beside the cells' own; repeatable.",
)  # fmt: skip
@click.option("--command", "is_command", is_flag=True, help="TARGET is a command line.")
@click.option("--fresh", is_flag=True, help="Probe also what the log of an earlier search knows.")
@click.option(
    "--jobs", "-j", type=click.IntRange(1, 64), default=default_jobs,
    show_default="one a core", help="Probes at the same time.",
)  # fmt: skip
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE",
    help="Write what was found as JSON; - is standard output.",
)  # fmt: skip
def command(
    *,
    target: str,
    good: str,
    bad: str,
    axis: str,
    jax: str,
    values: str,
    find: str,
    when: str | None,
    fact: str,
    stage: str | None,
    platform: str,
    timeout: float,
    wanted: tuple[str, ...],
    is_command: bool,
    fresh: bool,
    jobs: int,
    json_file: Path | None,
) -> int:
    """Find the release that changed what a target does.

    TARGET is a case id, a Python script as somebody pasted it, the node id of a pytest test, or
    a command line that is run with the environment's programs first on PATH.

    \b
    conformance bisect shard_map_while/fori_from[zeros] --good 0.5.3 --bad 0.12.0.1
    conformance bisect report.py --good 0.4.35 --bad latest
    conformance bisect report.py --good latest --bad 0.5.3 --find fix
    conformance bisect report.py --good 0.8.1 --bad nightly
    conformance bisect report.py --axis nightly --good 2025-11-01 --bad 2025-11-20
    conformance bisect report.py --axis numpy --jax 0.4.38 --good 1.26.4 --bad 2.2.0
    conformance bisect report.py --axis config:jax_use_shardy_partitioner --good false --bad true
    conformance bisect tests/test_model.py::test_loss --good 0.5.3 --bad 0.8.3
    conformance bisect 'python train.py --steps 2' --good 0.5.3 --bad 0.8.3 --when exit

    Both ends are tried first, and what was found once more. Every probe is logged: a search that
    was interrupted goes on where it was.
    """  # noqa: D301 - \b is click's own mark
    setting = here()
    if json_file is not None:
        check_writable("--json", json_file)
    figure = _figure(when, fact, stage)
    console = Console(stderr=str(json_file) == "-", highlight=False, soft_wrap=True)
    subject = _subject(setting, target, is_command=is_command)
    place = platform or ("cpu1" if subject.program else "")
    chosen = axis_of(setting, axis, (good, bad), find=find, values=values, jax=jax, place=place)
    points = Points(
        chosen.points, partial(prepare_in, setting), check=partial(nightlies_answer, setting)
    )
    axis = chosen.name
    question = (axis, jax, platform, when or "", fact, stage or "")
    directory = RunDirectory(setting.project.root / LOGS / subject.log_name(" ".join(question)))
    if fresh:
        (directory.path / RESULTS).unlink(missing_ok=True)
    jobs = jobs if figure is None else 1  # one that runs beside another takes longer
    prober = _prober(
        setting, subject, points.locks, directory, timeout=timeout, wanted=wanted,
        facts=bool(fact) or when == "facts", jobs=jobs,
    )  # fmt: skip
    try:
        with closing(Results(directory)) as log:
            answer = Bisection(
                points=points, reverse=find == "fix", prober=prober,
                blobs=directory.blobs, log=log, tolerance=subject.tolerance,
                known=[r for r in directory.read_records() if r.case_hash == subject.hash],
                when="" if figure else when or "", fact=fact, figure=figure, width=jobs,
                progress=partial(_show, console, points.labels),
            ).run()  # fmt: skip
    except KeyboardInterrupt:
        click.echo("conformance: interrupted; the same command goes on where it was", err=True)
        return ExitCode.INTERRUPTED
    left_out = [*chosen.refused.items(), *((e.cell, e.reason) for e in points.exclusions)]
    told = [f"left out {name}: {reason}" for name, reason in left_out]
    for line in ("", *answer_lines(answer, find, axis), *told):
        console.print(line)
    if json_file is not None:
        write_file("--json", json_file, as_json(answer_json(answer, target, find, axis)))
    return ExitCode.OK if answer.confirmed else ExitCode.UNEXPECTED


def _show(console: Console, labels: Sequence[str], step: Step) -> None:
    console.print(step_line(step, labels[step.point], max(map(len, labels))))


def _figure(when: str | None, fact: str, stage: str | None) -> Figure | None:
    """Return what is measured, None where one look answers the question.

    Raises:
        UsageError: If the options contradict each other.
    """
    if fact and when not in (None, "facts"):
        raise UsageError(f"--fact {fact}: goes with --when facts, got --when {when}")
    if stage is not None and when not in (None, "time"):
        raise UsageError(f"--stage {stage}: goes with --when time, got --when {when}")
    if stage is not None or when == "time":
        return time_of(stage or "job")
    return MEMORY if when == "memory" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is tried: a case, or a program.

    Attributes:
        case: The case.
        program: The program.
    """

    case: Case | None = None
    program: Target | None = None

    @property
    def hash(self) -> str:
        """Hash of its content."""
        if self.program is not None:
            return self.program.hash
        return self.case.content_hash if self.case is not None else ""

    @property
    def tolerance(self) -> Tolerance:
        """What it states about values."""
        return Tolerance() if self.case is None else Tolerance.of(self.case)

    def log_name(self, question: str) -> str:
        """Return the name of the folder of its log.

        Args:
            question: What is asked of it.
        """
        name = self.program.text if self.program else self.case.id if self.case else ""
        digest = hashlib.sha256(f"{name}\0{question}\0{Path.cwd()}".encode()).hexdigest()[:12]
        word = "".join(sign if sign.isalnum() else "-" for sign in Path(name).name)[:40]
        return f"{word.strip('-')}-{digest}"


def _subject(setting: Setting, text: str, *, is_command: bool) -> Subject:
    program = target_of(text, command=is_command)
    if program is not None:
        return Subject(program=program)
    return Subject(case=setting.case(text))


def _prober(
    setting: Setting,
    subject: Subject,
    locks: Mapping[str, Lock],
    directory: RunDirectory,
    *,
    timeout: float,
    wanted: tuple[str, ...],
    facts: bool,
    jobs: int,
) -> Prober:
    if subject.case is not None:
        provider = Provider(locks, setting.cache)
        return CaseProber(
            case=subject.case,
            executor=LocalExecutor(provider.open, slots=jobs, turns=Turns(setting.cache)),
            cache=ResultCache(setting.cache),
            judge=Judge(directory.blobs),
            blobs=directory.blobs,
        )
    assert subject.program is not None  # noqa: S101 - a subject is one of the two
    runner = ProgramRunner(
        target=subject.program, locks=locks, cache=setting.cache, outer=os.environ,
        blobs=directory.blobs, timeout=timeout, wanted=wanted, facts=facts,
    )  # fmt: skip
    return ProgramProber(runner=runner, slots=jobs)
