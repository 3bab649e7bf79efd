"""`conformance diff`: two files, a case in two cells, two runs, and one file alone."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from conformance.engine.ir_analysis import analyse_artifacts
from conformance.engine.runs.directory import Results, RunDirectory
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.model.run import RunCell, RunInfo
from conformance.model.value import encode_value
from tests.builders import f32
from tests.ir.texts import stablehlo

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.cache.blobs import BlobStore
    from tests.projects import Project


OLD, NEW = "jax0.5.3-py311-cpu8", "jax0.8.3-py311-cpu8"
ADD = """\
HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %one = f32[4]{0} sine(%x)
  ROOT %sum.7 = f32[4]{0} add(%x, %one), metadata={op_name="jit(f)/add"}
}
"""
MULTIPLY = ADD.replace("%sum.7 = f32[4]{0} add", "%product.8 = f32[4]{0} multiply")
COPIED = ADD.replace("sine(%x)", "sine(%y)").replace(
    "  %one", "  %y = f32[4]{0} copy(%x)\n  %one"
)  # the same work
RENAMED = ADD.replace("%one", "%another.3")
FILES = {
    "add.hlo": ADD, "multiply.hlo": MULTIPLY, "copied.hlo": COPIED, "renamed.hlo": RENAMED,
    "broken.hlo": ADD.replace("parameter(0)", "parameter(0"), "plain.txt": "no IR at all",
    "f.mlir": '"builtin.module"() ({\n}) : () -> ()\n',
}  # fmt: skip


pytestmark = pytest.mark.project(FILES)
"""A project with a few texts to compare."""


def record(blobs: BlobStore, case: str, cell: str, hlo: str = "", **more: Any) -> Record:
    """Return a record of a job that ended well, its artifacts stored."""
    texts = {"hlo": hlo.encode()} if hlo else {}
    artifacts = {"value": encode_value(f32(1, 2))} | texts
    ended = {"outcome": Outcome.OK, "stage": Stage.EXECUTE} | more
    return Record(
        case=case, cell=cell, case_hash="", cell_hash="", ir=analyse_artifacts(texts)[0],
        artifacts={name: blobs.put(data) for name, data in artifacts.items()}, **ended,
    )  # fmt: skip


def make_run(project: Project, name: str, *jobs: tuple[str, str, str], **more: Any) -> Path:
    """Make a run of jobs, each a case, a cell and its HLO; `more` applies to the last job."""
    run = RunDirectory(project.path / "reports" / "runs" / name)
    cells = dict.fromkeys(cell for _, cell, _ in jobs)
    releases = {cell: cell.removeprefix("jax").partition("-")[0] for cell in cells}
    run.write_run(RunInfo(cells=tuple(RunCell(id=c, versions={"jax": releases[c]}) for c in cells)))
    results = Results(run)
    for job in jobs:
        results.append(record(run.blobs, *job, **(more if job is jobs[-1] else {})))
    results.close()
    return run.path


@pytest.mark.parametrize(
    ("other", "level", "code", "words"),
    [
        ("renamed.hlo", "exact", 0, "hlo  equal"),
        ("copied.hlo", "exact", 1, "hlo  same work, grouped or written otherwise"),
        ("copied.hlo", "canonical", 0, "hlo  same work, grouped or written otherwise"),
        ("multiply.hlo", "exact", 1, "hlo  1 pattern: 1 semantic"),
        ("multiply.hlo", "canonical", 1, "hlo  1 pattern: 1 semantic"),
    ],
)
def test_diff_level_decides_whether_two_files_are_equal(
    project: Project, other: str, level: str, code: int, words: str
) -> None:
    """The exit status is 0 if they are equal at the level."""
    ending = project.run("diff", "add.hlo", other, "--level", level)
    assert (ending.code, ending.err) == (code, "")
    first, _, headline, *_ = ending.out.splitlines()
    assert (first, headline) == (f"add.hlo -> {other}", words)


def test_diff_prints_the_differing_lines(project: Project) -> None:
    """With their place, and without colours outside a terminal."""
    out = project.run("diff", "add.hlo", "multiply.hlo").out
    assert "  semantic  add -> multiply\n    in entry, jit(f)/add\n" in out
    assert "    - ROOT %sum.7 = f32[4]{0} add(%x, %one)\n" in out
    assert "    + ROOT %product.8 = f32[4]{0} multiply(%x, %one)\n" in out
    assert "\x1b" not in out


def test_diff_patterns_prints_one_line_per_pattern(project: Project) -> None:
    """Below the number of patterns."""
    out = project.run("diff", "add.hlo", "multiply.hlo", "--patterns").out
    assert out.splitlines()[-1] == "  semantic  add -> multiply"


def test_diff_full_prints_facts_that_gate_nothing(project: Project) -> None:
    """Such as the number of operations."""
    out = project.run("diff", "add.hlo", "multiply.hlo", "--full").out
    assert "ops add       1 -> 0" in out


def test_diff_json_of_two_files_has_the_documented_keys(project: Project) -> None:
    """One object with changes and facts."""
    ending = project.run("diff", "add.hlo", "multiply.hlo", "--json", "-")
    data = ending.json
    assert ending.code == 1
    assert list(data) == [
        *("equal", "neutral_equal", "changes", "facts", "matched", "changed", "unmatched"),
        "not_understood",
    ]
    (change,) = data["changes"]
    assert list(change) == [
        *("kind", "count", "severity", "title", "about", "where", "before", "after")
    ]
    assert (data["equal"], change["kind"], change["severity"]) == (False, "replaced", "semantic")
    assert data["facts"]["a"]["ops"]["add"] == 1


def test_diff_reads_zstandard_files_and_standard_input(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blobs of a run are compressed."""
    (project.path / "blob.zst").write_bytes(zstandard.compress(ADD.encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(RENAMED.encode())))
    assert project.run("diff", "blob.zst", "-").code == 0


def test_diff_of_one_file_prints_its_canonical_form(project: Project) -> None:
    """Goldens contain this form; it can be compared with other texts."""
    ending = project.run("diff", "copied.hlo")
    assert ending.code == 0
    assert ending.out.startswith("conformance-ir 1 hlo ")
    assert "%sine.1 = f32[4] sine(%parameter.1)" in ending.out
    (project.path / "golden.txt").write_text(ending.out)
    assert project.run("diff", "golden.txt").out == ending.out
    assert project.run("diff", "golden.txt", "add.hlo", "--level", "canonical").code == 0
    data = project.run("diff", "copied.hlo", "--json", "-").json
    assert (data["kind"], data["text"]) == ("hlo", ending.out)
    assert data["facts"]["ops"]["copy"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing to compare, expected two files, two runs, or two cells; "),
        (["ad.hlo"], "ad.hlo: no such file or run (did you mean 'add.hlo'"),
        (["add.hlo", "ad.hlo"], "ad.hlo: cannot be read: no such file or directory (did you mean"),
        (["add.hlo", "plain.txt"], "plain.txt: begins with 'no IR at all', expected HLO, Stable"),
        (["add.hlo", "f.mlir"], "add.hlo is hlo, f.mlir is stablehlo; expected two texts of one"),
        (["add.hlo", "broken.hlo"], "broken.hlo: hlo line 4"),
        (["broken.hlo"], "broken.hlo: hlo line 4"),
        (["plain.txt", "--kind", "hlo"], "plain.txt: hlo line 1"),
        (["add.hlo", "add.hlo", "add.hlo"], "got 3 files, expected two to compare, or one to"),
        (["-", "-"], "- is standard input, which can be only one of the two"),
        (["add.hlo", "--cell", "0.5.3"], "--cell is about jobs of runs, got files: add.hlo"),
        (["add.hlo", "--ir", "hlo"], "--ir is about jobs of runs, got files"),
        (["x", "--kind", "hlo"], "--kind says what files hold"),
        (["add.hlo", "--full", "--patterns"], "--patterns and --full: give one of them"),
        (["matrix"], "matrix is a folder without run.json, expected a run"),
        (["--cell", "0.5.3"], "holds no run, expected one; `conformance run` makes it"),
    ],
)
def test_invalid_diff_arguments_exit_2(project: Project, arguments: list[str], words: str) -> None:
    """One line with the value and the expectation."""
    ending = project.run("diff", *arguments)
    assert ending.code == 2
    assert words in ending.error


def test_diff_case_between_two_cells_of_the_newest_run(project: Project) -> None:
    """With one cell, the canonical form is printed."""
    make_run(project, "1", ("f/a", OLD, ADD), ("f/a", NEW, ADD))
    make_run(project, "2", ("f/a", OLD, ADD), ("f/a", NEW, MULTIPLY))
    ending = project.run("diff", "f/a", "--cell", "0.5.3", "--cell", ">=0.8")
    assert ending.code == 1
    assert ending.out.startswith(f"f/a on {OLD} -> {NEW}\n\nhlo  1 pattern: 1 semantic\n")
    assert project.run("diff", "--run", "1", "--cell", OLD, "--cell", NEW).code == 0
    assert project.run("diff", "f/a", "--cell", NEW).out == project.run("diff", "multiply.hlo").out
    (form,) = project.run("diff", "f/a", "--cell", NEW, "--json", "-").json
    assert (form["case"], form["cell"], form["ir"]) == ("f/a", NEW, "hlo")


def test_diff_reports_different_outcomes_in_one_line(project: Project) -> None:
    """Another outcome alone is a difference."""
    error = ErrorInfo(type="TypeError", message="bad shape")
    more = {"outcome": Outcome.RAISED, "stage": Stage.TRACE, "error": error}
    make_run(project, "1", ("f/a", OLD, ""), ("f/a", NEW, ""), **more)
    ending = project.run("diff", "--cell", "0.5.3", "--cell", "0.8.3")
    assert ending.code == 1
    assert ending.out.splitlines() == [
        f"f/a on {OLD} -> {NEW}",
        "differ: ok at execute -> raised TypeError at trace: bad shape",
        "neither has an IR",
    ]


def test_diff_two_runs_groups_equal_changes(project: Project) -> None:
    """Jobs that only one run has are listed."""
    both = [(f"f/{name}[{n}]", OLD) for name in "ab" for n in range(3)]
    make_run(project, "1", *((*job, ADD) for job in both), ("f/gone", OLD, ADD))
    later = [(*job, MULTIPLY if "a" in job[0] else COPIED) for job in both]
    make_run(project, "2", *later, ("f/new", OLD, ADD))
    ending = project.run("diff", "1", project.path / "reports" / "runs" / "2")
    assert ending.code == 1
    out = ending.out
    assert out.startswith(
        "1 -> 2\n6 jobs: 6 same\n6 pairs of IRs: 3 same work grouped otherwise, 3 different\n"
    )
    assert "\nhlo, in 3 jobs:\n  f/a[0]\n  f/a[1]\n  f/a[2]\n" in out
    assert out.count("semantic") == 1
    assert f"\n1 job only in 1:\n  f/gone on {OLD}\n" in out
    assert f"\n1 job only in 2:\n  f/new on {OLD}\n" in out
    assert project.run("diff", "1", "2", "f/b", "--level", "neutral").code == 0
    assert project.run("diff", "1", "2", "f/a[1]", "--cell", "0.5.3").code == 1
    data = project.run("diff", "1", "2", "--json", "-").json
    assert [(e["case"], e["cells"], e["ir"]) for e in data][:1] == [("f/a[0]", [OLD, OLD], "hlo")]
    assert [entry["equal"] for entry in data] == [False] * 6


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["1"], 2, "1 is one run, expected a second one; for cells of one run: "),
        (["1", "12"], 2, "12: no such run"),
        (["1", "2", "--run", "2"], 2, "--run 2: 1 is a run already"),
        (["1", "2"], 3, "no case selected has a job in both 1 and 2"),
        (["1", "2", "f/aa"], 3, "1 and 2: no record of f/aa (did you mean 'f/a'"),
        (["1", "2", "--cell", "0.6.0"], 2, f"no such cell in 1 and 2, expected one of {OLD}"),
        (["--run", "3", "--cell", "0.5.3"], 2, "3: no such run, expected its folder or its id"),
        (["--run", "1", "--cell", "0.6.0"], 2, "--cell 0.6.0: no such cell in 1, expected one of"),
        (["--run", "1", "--cell", "x"], 2, "selector 'x' is not valid; expected"),
        (["--run", "1", "--cell", OLD, "--ir", "jaxpr"], 3, "holds no jaxpr of what is selected"),
    ],
)
def test_invalid_diff_of_runs_is_refused(
    project: Project, arguments: list[str], code: int, words: str
) -> None:
    """One line; exit 3 if no job is left to compare."""
    make_run(project, "1", ("f/a", OLD, ADD))
    make_run(project, "2", ("f/b", OLD, ADD))
    ending = project.run("diff", *arguments)
    assert ending.code == code
    assert words in ending.error


SINE, COSINE = (
    stablehlo(f'%r = "stablehlo.{op}"(%x) : (tensor<4xf32>) -> tensor<4xf32>').encode()
    for op in ("sine", "cosine")
)


@pytest.fixture
def lowered(project: Project) -> Project:
    """A project with a run whose case has another StableHLO for TPU."""
    path = make_run(project, "1", ("f/a", OLD, ADD))
    texts = {"stablehlo": SINE, "stablehlo-tpu": COSINE, "stablehlo-cuda": SINE}
    run = RunDirectory(path)
    found = replace(record(run.blobs, "f/a", OLD), artifacts={
        name: run.blobs.put(text) for name, text in texts.items()
    })  # fmt: skip
    results = Results(run)
    results.append(replace(found, ir=analyse_artifacts(texts)[0]))
    results.close()
    return project


def test_diff_between_lowerings_for_two_platforms(lowered: Project) -> None:
    """Compares the cross-lowered StableHLO of one job."""
    between = ("diff", "f/a", "--cell", OLD, "--between", "stablehlo")
    ending = lowered.run(*between, "stablehlo-tpu")
    assert (ending.code, ending.err) == (1, "")
    assert ending.out.startswith(f"f/a on {OLD}\n\nstablehlo -> stablehlo-tpu  1 pattern")
    assert "semantic  sine -> cosine" in ending.out
    assert lowered.run(*between, "stablehlo-cuda").code == 0
    (data,) = lowered.run(*between, "stablehlo-tpu", "--json", "-").json
    assert (data["cells"], data["ir"]) == ([OLD, OLD], "stablehlo -> stablehlo-tpu")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--cell", OLD, "stablehlo", "stablehlo-rocm"], 3, "has both stablehlo and stablehlo-r"),
        (["--cell", OLD, "stablehlo", "hlo"], 2, "expected two of one kind, and no --ir"),
        (["1", "1", "stablehlo", "stablehlo-tpu"], 2, "about jobs of one run, got two; choose it"),
        (["add.hlo", "stablehlo", "stablehlo-tpu"], 2, "--between is about jobs of runs, got file"),
    ],
)
def test_invalid_diff_between_platforms_is_refused(
    lowered: Project, arguments: list[str], code: int, words: str
) -> None:
    """The message has the problem and a remedy."""
    *what, first, second = arguments
    ending = lowered.run("diff", *what, "--between", first, second)
    assert ending.code == code
    assert words in ending.err


def test_diff_only_changed_groups_jobs_by_root_cause(project: Project) -> None:
    """The gravest group first; equal jobs are counted, IRs are not compared."""
    error = ErrorInfo(type="ValueError", message="bad", signature="ValueError: bad")
    failed = {"outcome": Outcome.RAISED, "error": error}
    for name, texts in (("1", (ADD, ADD)), ("2", (MULTIPLY, ADD))):
        directory = RunDirectory(project.path / "reports" / "runs" / name)
        ends: tuple[dict[str, Any], ...] = ({}, failed) if name == "1" else (failed, {})
        jobs = [
            record(directory.blobs, "f/a", OLD, texts[0]),
            record(directory.blobs, "f/b", OLD, texts[1]),
            *(record(directory.blobs, f"f/{n}", OLD, **ends[0]) for n in range(4)),
            record(directory.blobs, "f/x", OLD, **ends[1]),
        ]
        results = Results(directory)
        for job in jobs:
            results.append(job)
        results.close()
        directory.write_run(RunInfo(cells=(RunCell(id=OLD, versions={"jax": "0.5.3"}),)))
    ending = project.run("diff", "1", "2", "--only-changed")
    assert ending.code == 1
    assert ending.out == (
        "1 -> 2\n7 jobs: 4 regressed, 1 fixed, 2 same\n\n"
        "regressed in 4 jobs: ok at execute -> raised ValueError at execute: bad\n"
        "  f/0\n  f/1\n  f/2\n  ... 1 more job (--full)\n\n"
        "fixed in 1 job: raised ValueError at execute: bad -> ok at execute\n  f/x\n"
    )
    data = project.run("diff", "1", "2", "--only-changed", "--json", "-").json
    assert [(one["case"], one["transition"]) for one in data] == [
        *((f"f/{n}", "regressed") for n in range(4)),
        ("f/x", "fixed"),
    ]
    assert project.run("diff", "1", "2", "f/a", "f/b", "--only-changed").code == 0
    refused = project.run("diff", "1", "2", "--only-changed", "--ir", "hlo")
    assert (refused.code, "--only-changed leaves IRs out" in refused.error) == (2, True)
