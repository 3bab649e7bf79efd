"""Batches of programs in a real worker."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.fuzz.array_type import ArrayType
from conformance.fuzz.batches import BatchExecutor, ProgramResult, ProgramRun
from conformance.fuzz.comparison import Kind, compare_results
from conformance.fuzz.evaluation import Evaluator
from conformance.fuzz.findings import HANG
from conformance.fuzz.generation import generate
from conformance.fuzz.program import FuzzProgram, Launch, ProgramFunction, Step, Variable
from conformance.fuzz.strategies import ProgramSpace
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping
    from typing import Any

    from conformance.engine.job import FinishedJob, Job
    from tests.workbench import Bench

F32 = ArrayType((3,), "float32")


class WorkerExecutor:
    """Runs jobs in one worker, one after another."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.sizes: list[int] = []

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """Nothing."""
        return {}

    def run(self, jobs: Iterable[Job]) -> Generator[FinishedJob]:
        """Run the jobs, and note how many programs each had."""
        for job in jobs:
            self.sizes.append(len(job.case.params["programs"]))
            yield self.bench.worker.run(job)


@pytest.fixture
def executor(bench: Bench) -> WorkerExecutor:
    """The executor of the shared worker."""
    return WorkerExecutor(bench)


def program(code: str, twin: str = "") -> FuzzProgram:
    """Return a program of one step."""
    x, y = Variable("x0", F32), Variable("v1", F32)
    step = Step(operation="step", code=code, twin=twin, operands=("x0",), results=(y,))
    body = ProgramFunction(name="body", parameters=(x,), steps=(step,), returns="v1", results=(y,))
    return FuzzProgram(body=body, inputs=('np.array([1.0, 2.0, 3.0], "float32")',))


def run(executor: WorkerExecutor, *programs: FuzzProgram, modes: tuple[str, ...] = ("jit",),
        size: int = 25) -> list[dict[str, ProgramResult]]:  # fmt: skip
    """Run programs in the cell of the worker."""
    runs = [ProgramRun(program=each, modes=modes) for each in programs]
    work = {"here": (executor.bench.planned, runs)}
    return BatchExecutor(executor, size=size).run(work)["here"]


def test_each_program_has_its_result_or_its_error(executor: WorkerExecutor) -> None:
    """In one process."""
    good, bad = program("jnp.sin(x0)"), program("jnp.no_such_function(x0)")
    first, second, third = run(executor, good, bad, good)
    assert executor.sizes == [3]
    assert first["jit"].outcome is Outcome.OK
    assert compare_results(first["jit"], third["jit"]) is None
    assert (second["jit"].outcome, second["jit"].error) == (Outcome.RAISED, "AttributeError")


def test_messages_name_no_folders_of_the_host(executor: WorkerExecutor) -> None:
    """A file of a message keeps its name alone."""
    (result,) = run(executor, program("open('/tmp/no-such-folder/a.file') and x0"))
    assert result["jit"].message == "[Errno 2] No such file or directory: 'a.file'"


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("__import__('os').abort()", Outcome.CRASHED),
        ("__import__('os').kill(__import__('os').getpid(), 11)", Outcome.CRASHED),
    ],
)
def test_a_program_that_ends_the_process_is_isolated(
    executor: WorkerExecutor, code: str, outcome: Outcome
) -> None:
    """It runs again alone, and the others again without it."""
    good, fatal = program("jnp.sin(x0)"), program(code)
    results = [each["jit"].outcome for each in run(executor, good, good, fatal, good)]
    assert results == [Outcome.OK, Outcome.OK, outcome, Outcome.OK]
    assert sorted(executor.sizes) == [1, 3, 4]


def test_a_mode_that_crashes_does_not_hide_the_others(executor: WorkerExecutor) -> None:
    """Each mode of such a program has a process of its own."""
    fatal = program("x0 + (0 if type(x0).__name__ != 'ArrayImpl' else __import__('os').abort())")
    (results,) = run(executor, fatal, modes=("jit", "eager"))
    assert results["jit"].outcome is Outcome.OK
    assert results["eager"].outcome is Outcome.CRASHED


def test_batches_have_a_size(executor: WorkerExecutor) -> None:
    """Results come in the order of the programs."""
    programs = [program(f"x0 + {number}") for number in range(5)]
    results = run(executor, *programs, size=2)
    assert executor.sizes == [2, 2, 1]
    assert len({each["jit"].leaves[0].data for each in results}) == 5


@pytest.mark.long(keep=1)
def test_a_release_does_not_differ_from_itself(executor: WorkerExecutor) -> None:
    """Nor a mode from another, nor a result from NumPy; nearly all programs are valid."""
    planned = executor.bench.planned
    programs = [one.program for one in generate(ProgramSpace(), 4, 40)]
    evaluator = Evaluator(executor, planned, planned)
    found = evaluator.evaluate(programs)
    seen = [
        (program, divergence.oracle)
        for program, each in zip(programs, found, strict=True)
        for divergence in each.divergences
    ]
    # As a campaign does: on a busy host, a program may only be slow.
    assert [(*each, again) for each in seen if (again := evaluator.confirm(*each, HANG))] == []
    # An older release lacks some operations.
    tried = [each for each in found if each.outcome is not Outcome.UNSUPPORTED]
    assert sum(each.outcome is Outcome.OK for each in tried) >= 0.9 * len(tried)


def test_a_wrong_result_differs_from_numpy(executor: WorkerExecutor) -> None:
    """By more than its error bound."""
    planned = executor.bench.planned
    wrong = program("x0 * 1.001", "x0 * 1.0")
    (found,) = Evaluator(executor, planned, planned).evaluate([wrong])
    assert [each.oracle for each in found.divergences] == ["numpy"]


def test_a_wrong_mode_differs_from_jit(executor: WorkerExecutor) -> None:
    """Found again when it is confirmed; a mode that agrees is not."""
    planned = executor.bench.planned
    evaluator = Evaluator(executor, planned, planned)
    wrong = program("x0 * (1.001 if type(x0).__name__ == 'ArrayImpl' else 1)")
    found = evaluator.confirm(wrong, "eager")
    assert found is not None
    assert evaluator.confirm(wrong, "remat") is None


def test_a_program_that_crashes_on_both_releases_is_found(executor: WorkerExecutor) -> None:
    """The releases agree, and yet it is a finding."""
    planned = executor.bench.planned
    evaluator = Evaluator(executor, planned, planned)
    fatal = program("__import__('os').abort()")
    (found,) = evaluator.evaluate([fatal])
    assert [(each.oracle, each.difference.kind) for each in found.divergences] == [
        ("process", Kind.CRASH)
    ]
    assert evaluator.confirm(fatal, "process") is not None


DONATING = Launch(
    name="donate",
    statements=(
        "def launch(function, args):",
        "    return jax.jit(function, donate_argnums=(0,))(*jax.device_put(args))",
    ),
)


def test_a_launch_differs_from_jit_alone(executor: WorkerExecutor) -> None:
    """The mode `jit` launches a program as it says; `plain` leaves that out."""
    planned = executor.bench.planned
    evaluator = Evaluator(executor, planned, planned)
    right = replace(program("x0 + 1"), launch=DONATING)
    wrong = replace(right, launch=replace(DONATING, statements=(
        "def launch(function, args):", "    return 2 * jax.jit(function)(*args)",
    )))  # fmt: skip
    assert evaluator.confirm(right, "plain") is None
    assert evaluator.confirm(wrong, "plain") is not None
