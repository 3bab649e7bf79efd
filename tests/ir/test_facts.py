"""Facts read from real optimised HLO of five releases, and from forms no CPU prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.ir.facts import COLLECTIVES, HloSyntaxError, facts

DATA = Path(__file__).parent / "data"
RELEASES = ["0.4.30", "0.5.3", "0.6.2", "0.8.3", "0.12.0.1"]


def _module(release: str, name: str) -> str:
    return (DATA / release / f"{name}.hlo").read_text()


@pytest.mark.parametrize("release", RELEASES)
def test_five_collectives_are_found_once_each(release: str) -> None:
    """One program with five collectives reads the same from every release."""
    found = facts(_module(release, "coll"))["collectives"]
    assert found == dict.fromkeys(
        sorted(COLLECTIVES - {"ragged-all-to-all", "collective-broadcast"}), 1
    )


@pytest.mark.parametrize("release", RELEASES)
def test_host_compute_is_seen(release: str) -> None:
    """A computation marked for the host is seen, and one that is not is not."""
    assert facts(_module(release, "host"))["host_compute"] is True
    assert facts(_module(release, "coll"))["host_compute"] is False


@pytest.mark.parametrize(
    ("release", "target"), [("0.4.30", "lapack_spotrf"), ("0.12.0.1", "lapack_spotrf_ffi")]
)
def test_custom_calls_are_counted_by_target(release: str, target: str) -> None:
    """The LAPACK call of a Cholesky factorisation has the target of its release."""
    assert facts(_module(release, "chol"))["custom_calls"] == {target: 1}


def test_async_pairs_count_once() -> None:
    """A start and its done are one collective, in the layouts of an accelerator."""
    text = """
  %ag-start = (bf16[8,128]{1,0:T(8,128)(2,1)S(1)}, bf16[64,128]{1,0:T(8,128)}) all-gather-start(%p)
  %ag-done = bf16[64,128]{1,0:T(8,128)} all-gather-done(%ag-start)
  ROOT %ar = f32[] all-reduce(%x), to_apply=%add
"""
    assert facts(text)["collectives"] == {"all-gather": 1, "all-reduce": 1}


def test_names_do_not_count() -> None:
    """An instruction, operand or annotation named after a collective is none."""
    text = '%all-reduce.1 = f32[] add(%all-gather, %y), metadata={op_name="all-to-all(x)"}'
    assert facts(text)["collectives"] == {}


def test_quoted_annotations_do_not_count_as_host_compute() -> None:
    """A source name that quotes the host attribute marks nothing."""
    text = r'%x = f32[] add(%a, %b), metadata={op_name="_xla_compute_type=\"host\""}'
    assert facts(text)["host_compute"] is False


@pytest.mark.parametrize(
    "line",
    [
        '%c = f32[4]{0} call(%p), to_apply=%f, frontend_attributes={_xla_compute_type="host"}',
        "%c = f32[4]{0:S(5)} call(%p), to_apply=%f",
        '%c = ((f32[4]), f32[4], u32[]) call-start(%p), async_execution_thread="host"',
        '%c = f32[4]{0} custom-call(%p), custom_call_target="HostExecute"',
    ],
)
def test_spellings_of_host_compute(line: str) -> None:
    """Attribute, host memory space, host thread and host call all say host."""
    assert facts(line)["host_compute"] is True


def test_a_line_without_opcode_is_an_error() -> None:
    """What looks like an instruction but is none is reported with its line number."""
    with pytest.raises(HloSyntaxError, match="hlo line 2: '%x = f32"):
        facts("HloModule m\n%x = f32[4]{0}\n")


def test_lines_that_are_no_instructions_are_passed_over() -> None:
    """Headers, tables and computations say nothing."""
    text = 'HloModule m\n\nFileNames\n1 "a.py"\n\nENTRY %main (p: f32[]) -> f32[] {\n}\n'
    assert facts(text) == {"collectives": {}, "host_compute": False, "custom_calls": {}}
