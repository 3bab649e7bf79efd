"""Laws of cases with `given`, on an old, a middle and the newest release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.cache_folder import VARIABLE
from conformance.judge.conformance import describe_outcome, judge_conformance
from conformance.laws import launch
from conformance.laws.launch import CONVERSATIONS
from conformance.model.outcome import Conformance, Outcome, Stage
from tests.workbench import HEAD, NEWEST, Bench, planned_cell

from .test_variants import load_result

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.job import FinishedJob

pytestmark = pytest.mark.cell
TOP = """
import jax, jax.numpy as jnp
from conformance.kit import strategies as st
from conformance.kit.laws import assume, check_same
X = st.arrays("float32", (2,))
"""


@pytest.fixture(autouse=True)
def conversations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The empty folder in which conversations with example servers are stored."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / CONVERSATIONS


@pytest.fixture
def bench(bench_of_each_age: Bench, tmp_path: Path) -> Bench:
    """The kept worker, with a folder of case files of this test's own."""
    return bench_of_each_age.at(tmp_path)


def run(bench: Bench, source: str, topic: str = "topic") -> FinishedJob:
    """Run the only case of a source."""
    (job,) = bench.jobs(HEAD + TOP + source, topic)
    return bench.worker.run(job)


def message_of(finished: FinishedJob) -> str:
    """Return the message of a job that raised an error."""
    assert finished.outcome is Outcome.RAISED
    assert finished.error is not None
    return finished.error.message


@pytest.mark.long(keep=1)
def test_a_law_that_holds_conforms(bench: Bench) -> None:
    """The value is the number of examples; rejected ones do not count."""
    source = """
@probe(params={"twice": {"factor": 2}}, given={"x": X, "n": st.integers(0, 3)}, examples=12)
def case(env, factor, x, n):
    assume(n != 1)
    check_same(jnp.asarray(x) * factor, x + x)
"""
    finished = run(bench, source)
    seen = load_result(finished, bench.folder)
    assert finished.error is None
    assert judge_conformance(finished.job.case, seen) == (Conformance.CONFORMS, ())
    assert seen.value is not None
    assert [(leaf.path, leaf.data) for leaf in seen.value.leaves] == [("out['examples']", b"12")]
    assert finished.blobs["example"] == b'x = np.array([0.0, 0.0], "float32"); n = 0'


def test_a_law_that_does_not_hold_raises_with_the_shrunk_example(bench: Bench) -> None:
    """The error is that of the case, at its line."""
    source = """
@probe(given={"x": X, "n": st.integers(0, 9)})
def case(env, x, n):
    if n > 3:
        raise KeyError("too large")
"""
    finished = run(bench, source)
    example = 'x = np.array([0.0, 0.0], "float32"); n = 4'
    assert message_of(finished) == f"'too large'\nfalsifying example: {example}"
    assert finished.blobs["falsifying"] == example.encode()
    assert finished.error is not None
    assert finished.error.type == "KeyError"
    assert finished.error.where.endswith(f"topic.py:{len((HEAD + TOP).splitlines()) + 5}")
    described = describe_outcome(load_result(finished, bench.folder))
    assert described == (f"raised KeyError at execute: 'too large'; falsifying example: {example}")


def test_a_program_is_observed_with_the_simplest_example(bench: Bench) -> None:
    """Its reference and its variants are checked with all."""
    source = """
@program(given={"x": X}, same_as=("eager", "vmap_of_one"))
def case(env, x):
    return Program(lambda x: x + 1, (x,), reference=lambda x: x + 1)
"""
    finished = run(bench, source)
    seen = load_result(finished, bench.folder)
    assert finished.error is None
    assert judge_conformance(finished.job.case, seen) == (Conformance.CONFORMS, ())
    assert {"jaxpr", "stablehlo", "hlo", "example", "same_as-eager"} <= set(finished.blobs)
    assert seen.value is not None
    assert seen.value.leaves[0].data == b"\x00\x00\x80?" * 2


@pytest.mark.parametrize(
    ("returned", "same_as", "message"),
    [
        ("Program(jnp.abs, (x,), reference=lambda x: x)", "()", "out 2 of 2 elements differ"),
        (
            "Program(lambda x: x if isinstance(x, jax.core.Tracer) else abs(x), (x,))",
            "('eager',)",
            "same_as eager: out 2 of 2 elements differ",
        ),
    ],
    ids=["reference", "variant"],
)
def test_a_program_that_differs_for_an_example_raises(
    bench: Bench, returned: str, same_as: str, message: str
) -> None:
    """After its observation with the simplest example, which is stored."""
    source = f"""
@program(given={{"x": X}}, same_as={same_as})
def case(env, x):
    return {returned}
"""
    finished = run(bench, source)
    assert finished.stage is Stage.EXECUTE
    assert message_of(finished).startswith(f"{message}, first at [0]: ")
    assert finished.blobs["falsifying"] == b'x = np.array([-1.0, -1.0], "float32")'
    assert {"value", "hlo"} <= set(finished.blobs)


@pytest.mark.long(keep=7)
@pytest.mark.parametrize(
    ("decorator", "body", "message"),
    [
        ("probe(given={'x': st.arrays(abs, 3)})", "pass", "given, x: a builtin_function_or_method"),
        ("probe(given={'x': st.arrayss(3)})", "pass", "Hypothesis has no strategy arrayss"),
        ("program(given={'x': st.arrayss(3)})", "pass", "Hypothesis has no strategy arrayss"),
        ("probe(given={'x': X})", "return x", "a probe with given returned a ndarray, expected no"),
        ("probe(given={'x': X})", "assume(False)", "Unable to satisfy assumptions"),
        ("program(given={'x': X})", "return Program(abs, (x,))", "no reference and no same_as"),
        (
            "program(given={'x': X})",
            "return Program(abs, (x,), reference=raises('E'))",
            "raises(...) is no reference",
        ),
    ],
)
def test_a_wrong_case_is_reported_as_such(
    bench: Bench, decorator: str, body: str, message: str
) -> None:
    """It says nothing about jax."""
    finished = run(bench, f"\n@{decorator}\ndef case(env, x):\n    {body}\n")
    assert message in message_of(finished)
    assert finished.error is not None
    assert finished.error.type == "CaseError"


def test_unsupported_ends_the_law(bench: Bench) -> None:
    """As in other cases."""
    source = "@probe(given={'x': X})\ndef case(env, x):\n    env.unsupported('no such device')\n"
    finished = run(bench, source)
    assert finished.outcome is Outcome.UNSUPPORTED
    assert finished.error is not None
    assert finished.error.message == "no such device"


def test_jobs_with_and_without_a_law_share_a_process(bench: Bench) -> None:
    """The example server has ended before the next job."""
    source = """
@probe(given={"x": X}, examples=2)
def law(env, x):
    check_same(x, x)
@probe()
def plain(env):
    return np.ones(1)
"""
    jobs = bench.jobs(HEAD + TOP + source)
    assert [bench.worker.run(job).outcome for job in (*jobs, *jobs)] == [Outcome.OK] * 4


def test_a_later_job_takes_the_examples_of_an_earlier_one(
    bench: Bench, conversations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a server, which takes half a second to start."""
    source = "@probe(given={'x': X})\ndef case(env, x):\n    assert x.max() < 3\n"
    first = message_of(run(bench, source))
    (file,) = conversations.iterdir()
    monkeypatch.setattr(launch, "_SCRIPT", "raise SystemExit")
    assert message_of(run(bench, source)) == first
    file.write_text("[")
    assert "the example server ended with no output" in message_of(run(bench, source))


def test_a_job_with_other_replies_goes_on_with_a_server(bench: Bench) -> None:
    """After the examples for which the replies are the same."""
    source = "@probe(given={'x': X})\ndef case(env, x):\n    assert x.max() < LIMIT\n"
    assert run(bench, source.replace("LIMIT", "100")).error is None
    # The worker imports a file once.
    message = message_of(run(bench, source.replace("LIMIT", "3"), "another"))
    assert message == '\nfalsifying example: x = np.array([3.0, 3.0], "float32")'


@pytest.mark.long
@pytest.mark.cell("3.10", "3.13")
@pytest.mark.parametrize("cell", ["jax0.4.30-py310-cpu", f"jax{NEWEST}-py313-cpu"])
def test_cells_of_other_pythons_draw_the_same_examples(cell: str, tmp_path: Path) -> None:
    """Hypothesis runs in the environment of the harness, whatever Python the cell has."""
    source = '@probe(given={"x": X})\ndef case(env, x):\n    assert abs(x).sum() < 5\n'
    with Bench(planned_cell(cell), tmp_path) as bench:
        message = message_of(run(bench, source))
    assert message == '\nfalsifying example: x = np.array([3.0, 3.0], "float32")'
