"""Error signatures: noise goes, meaning stays, twice is once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.judge.errors import MAX_CHARS, MAX_LINES, make_signature, normalise

FRAGMENTS = [
    "0x7f931dda19e0",
    "/tmp/tmpa1b2c3d4/case.py:44:26",
    "/usr/lib/python3.11/site-packages/jax/_src/core.py",
    ", line 12, in f\n    x = 1\n    ^^^\n",
    'File "/a/b/c.py", line 12, in f\n    x = 1',
    "For simplicity, JAX has removed its internal frames",
    "-----------------------",
    "PartitionSpec('x',)",
    "Traced<ShapedArray(int32[], weak_type=True)>with<DynamicJaxprTrace(level=1/0)>",
    "Traced<~int32[]>with<JVPTrace>",
    "jit_f_12",
    "%all-reduce.12.3",
    "12.5 seconds",
    "pid=123",
    "https://docs.jax.dev/en/latest/errors.html#x",
    "2026-01-02 03:04:05.678",
    "\x1b[31m",
    "TFRT_CPU_0",
    "\nSuspected Python Code Location:\n",
    "  /a/case.py:1:2 [f]\n",
    "Var(id=123):float32[3]",
    '\nat loc("add"(callsite("f"("case.py":1:2) at "g"("/a/stages.py":5:22 to :60))))',
    "/",
    "\n",
    " ",
    ":1",
    "5 s",
]
messages = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=6), max_size=12).map("".join)


@given(messages)
def test_normalising_is_idempotent(message: str) -> None:
    """The normal form is its own normal form."""
    once = normalise(message)
    assert normalise(once) == once


@settings(max_examples=30)
@given(st.text(alphabet="0x1 f/.s\n", min_size=1990, max_size=2100))
def test_capping_is_idempotent(message: str) -> None:
    """A capped message is not capped again."""
    once = normalise(message)
    assert len(once) <= MAX_CHARS
    assert normalise(once) == once


@pytest.mark.parametrize(
    ("message", "normal"),
    [
        (
            "The error occurred while tracing f at /home/u/case.py:44:26 for jit.",
            "The error occurred while tracing f at case.py:<n> for jit.",
        ),
        (
            "got (Traced<ShapedArray(int32[], weak_type=True)>with<DynamicJaxprTrace(level=1/0)>,)",
            "got (JitTracer(~int32[]),)",
        ),
        ("got (Traced<~int32[]>with<DynamicJaxprTrace>,)", "got (JitTracer(~int32[]),)"),
        ("got (JitTracer(~int32[]),)", "got (JitTracer(~int32[]),)"),
        ("got Traced<float32[3]>with<JVPTrace(level=2/0)>", "got JVPTracer(float32[3])"),
        ("<function sin at 0x7f29ce2694e0>", "<function sin at <address>>"),
        ("See https://docs.jax.dev/en/latest/errors.html#jax.E.", "See <url>."),
        ("spec=PartitionSpec('x',) on TFRT_CPU_0", "spec=P('x',) on cpu:0"),
        ("Var(id=140012345678):float32[3]", "Var(id=<n>):float32[3]"),
        ("timed out after 60.0 s, pid 4312", "timed out after <time>, pid <n>"),
        ("in /tmp/tmpx1y2z3_a/", "in <tmp>/"),
        ("module jit_step_3 of %fusion.12", "module jit_step of %fusion"),
        ("  a\t b  \n\n\n c ", "a b\nc"),
        ("\x1b[31mred\x1b[0m", "red"),
        ('add, source_file="a.py" source_line=357}', 'add, source_file="a.py" source_line=<n>}'),
        (
            'op is wrong\nat loc("add"(callsite("f"("case.py":1:2) at "g"("s.py":5:22))))\nsee',
            "op is wrong\nsee",
        ),
        (
            '%0 = a.custom_call @f(%1) at loc("f"(callsite("g"("case.py":1:2))))\nsee',
            "%0 = a.custom_call @f(%1)\nsee",
        ),
        (
            "maximum recursion depth exceeded while calling a Python object",
            "maximum recursion depth exceeded",
        ),
        (
            "Accepted dtypes are subtypes of integer, floating, complexfloating.",
            "Accepted dtypes are subtypes of complexfloating, floating, integer.",
        ),
    ],
)
def test_noise_has_one_spelling(message: str, normal: str) -> None:
    """Differences between hosts, runs and spellings are folded."""
    assert normalise(message) == normal


@pytest.mark.parametrize(
    "message",
    [
        "add got incompatible shapes for broadcasting: (3,), (4,).",
        "dot_general requires contracting dimensions to have the same shape, got (4,) and (3,).",
        "argument a with shape float32[8,8] and device ids [0, 1, 2, 3] on platform CPU",
        "unbound axis name: nope",
        "axis 1 of mesh Mesh('x': 8, axis_types=(Auto,)) at process 1",
        "op jit(f)/jit(main)/mul has 3/4 of 16 bytes",
    ],
)
def test_meaningful_parts_are_preserved(message: str) -> None:
    """Shapes, dtypes, axes, devices and names are unchanged."""
    assert normalise(message) == message


def test_quoted_tracebacks_lose_their_frames() -> None:
    """Of a callback's error in XLA's message, only type and text remain."""
    message = (
        "INTERNAL: CpuCallback error: Traceback (most recent call last):\n"
        '  File "/a/case.py", line 72, in <module>\n    call(f)\n    ^^^^^^^\n'
        '  File "/b/jax/_src/callback.py", line 77, in __call__\n'
        "ValueError: boom"
    )
    text = "INTERNAL: CpuCallback error: Traceback (most recent call last):\nValueError: boom"
    assert normalise(message) == text


def test_the_code_location_suspected_by_xla_is_removed() -> None:
    """The frames are those of the caller, which differ between processes."""
    message = (
        "UNIMPLEMENTED: Side-effect ops cannot be replicated: %custom-call.1\n\t\n\n"
        "Suspected Python Code Location:\n"
        "  /home/u/case.py:191:13 [sharded]\n"
        "  /home/u/worker/main.py:34:4 [<module>] [xla::PythonStackTrace='']\n"
        "and what stands below it stays"
    )
    assert normalise(message) == (
        "UNIMPLEMENTED: Side-effect ops cannot be replicated: %custom-call\n"
        "and what stands below it stays"
    )
    at_the_end = message.partition("\nand")[0]
    assert normalise(at_the_end).endswith("%custom-call")


def test_the_stack_of_a_leaked_tracer_is_left_out() -> None:
    """It has the frames of who called the program, and as many of them as there are."""
    message = (
        "The leaked intermediate value was created on line /a/case.py:7:12 (leak).\n"
        "------------------------------\n"
        "When the value was created, the final 2 stack frames (most recent last) excluding "
        "JAX-internal frames were:\n"
        "------------------------------\n"
        "/home/u/worker/job.py:34:4 (Server.<locals>.<lambda>)\n/a/case.py:7:12 (leak)\n"
        "------------------------------\n\n"
        "To catch the leak earlier, try something"
    )
    assert normalise(message) == (
        "The leaked intermediate value was created on line case.py:<n> (leak).\n"
        "------------------------------\nTo catch the leak earlier, try something"
    )


def test_the_note_on_filtered_frames_is_removed() -> None:
    """Jax's trailer is no part of the error."""
    trailer = (
        "\n--------------------\nFor simplicity, JAX has removed its internal frames from the "
        "traceback of the following exception. Set JAX_TRACEBACK_FILTERING=off to include these."
    )
    assert normalise("bad shape" + trailer) == "bad shape"


def test_long_messages_end_in_the_hash_of_the_rest() -> None:
    """Two long messages that differ only at the end keep apart, and are short."""
    lines = [f"row {n} is wrong" for n in range(100)]
    one, other = normalise("\n".join([*lines, "x"])), normalise("\n".join([*lines, "y"]))
    assert one != other
    assert len(one.split("\n")) == MAX_LINES
    assert one.rpartition("\n")[2].startswith("[rest: sha256 ")


def test_signature_is_type_and_message() -> None:
    """The type always remains, alone if the message is empty."""
    assert make_signature("TypeError", "bad\n") == "TypeError: bad"
    assert make_signature("SIGSEGV", "") == "SIGSEGV"
