"""The code that a command ran: records of its processes, and places in its source."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.scan.reached import ReachedCode, ReachedFile, ReachedUses, list_transforms

if TYPE_CHECKING:
    from collections.abc import Sequence

PYTHON = ["python", "3.12.1", True]
LINES: list[list[object]] = [
    PYTHON,
    ["jax", "0.5.3"],
    ["environment", "JAX_PLATFORMS"],
    ["file", 0, "/src/step.py"],
    ["line", 0, 3],
    ["lambda", 0, 4],
    ["call", 0, 3, 8],
    ["name", 0, 3, ["jax.numpy.abs", "jax.numpy.absolute"]],
    ["access", 0, 5, "jax.tree_map"],
    ["primitive", "abs"],
    ["option", "jax_enable_x64", 0, 6],
]


def encode(lines: Sequence[object], zeros: int = 100) -> bytes:
    """Return lines as a process leaves them in a mapped file."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines) + bytes(zeros)


def read(*records: bytes) -> ReachedCode:
    """Return what processes reached."""
    code = ReachedCode()
    for record in records:
        code.add(record)
    return code


def open_source(source: str, file: ReachedFile, *, calls: bool = True) -> ReachedUses:
    """Return what was reached of a source in a process with jax."""
    code = read(encode([["python", "3.12.1", calls], ["jax", "0.5.3"]]))
    return ReachedUses(code, file, textwrap.dedent(source).encode())


def test_a_record_shows_what_a_process_reached() -> None:
    """Files by their path, places within them, and what was reached of jax."""
    code = read(encode(LINES))
    assert (code.processes, code.releases, code.variables) == (1, {"0.5.3"}, {"JAX_PLATFORMS"})
    file = code.files["/src/step.py"]
    assert (file.lines, file.lambdas, file.calls) == ({3}, {4}, {(3, 8)})
    assert file.names == {3: {("jax.numpy.abs", "jax.numpy.absolute")}}
    assert file.accesses == {5: {"jax.tree_map"}}
    assert (code.primitives, code.options) == ({"abs"}, {("jax_enable_x64", "/src/step.py", 6)})
    assert code.calls_known
    assert not code.losses


def test_processes_add_up() -> None:
    """One without jax does not count, and need not record calls."""
    other = encode([PYTHON, ["jax", "0.5.3"], ["file", 0, "/src/step.py"], ["line", 0, 9]])
    old = encode([["python", "3.10.1", False], ["lost", "a debugger"]])
    code = read(encode(LINES), other, old)
    assert code.files["/src/step.py"].lines == {3, 9}
    assert (code.processes, code.calls_known, code.losses) == (2, True, set())
    code = read(encode(LINES), old[:-100] + encode([["jax", "0.5.3"]]))
    assert (code.processes, code.calls_known, code.losses) == (2, False, {"a debugger"})


@given(st.integers(0, len(encode(LINES))))
def test_a_record_that_was_cut_shows_the_lines_before(length: int) -> None:
    """A process that is killed loses at most the line that it wrote."""
    whole = encode(LINES)
    code = read(whole[:length] + bytes(100))
    ends = [index for index, byte in enumerate(whole) if byte == ord("\n")]
    complete = sum(end <= length for end in ends)
    assert code.releases == ({"0.5.3"} if complete > 1 else set())
    assert bool(code.options) == (complete == len(LINES))


@pytest.mark.parametrize(
    ("source", "place", "lines", "reached"),
    [
        ("import jax\njax.jit(f)", (2, 1), {2}, True),
        ("import jax\njax.jit(f)", (2, 1), {1}, False),
        ("from jax import (\n    jit,\n    vmap,\n)", (3, 5), {1}, True),
        ("options = (\n    'jax_enable_x64',\n)", (2, 5), {1}, True),
        ("f(\n    jax.jit,\n)", (2, 5), {1}, False),
        ("def f(a=1):\n    'jax_enable_x64'", (2, 5), {1}, False),
        ("@jax.jit\ndef f():\n    pass", (1, 2), {1}, True),
        ("assert jax.jit(\n    jax.vmap(f)\n)", (2, 5), {1}, True),
        ("if x:\n    from jax import jit", (2, 21), {1}, False),
    ],
)
def test_a_use_is_reached_if_its_line_ran(
    source: str, place: tuple[int, int], lines: set[int], reached: bool
) -> None:
    """Imports and constants have the line of their statement at run time."""
    uses = open_source(source, ReachedFile(lines=lines))
    assert uses.is_reached(*place) is reached


def test_code_of_a_lambda_runs_when_it_is_called() -> None:
    """Not when the line runs that defines it."""
    source = "g = lambda x: jnp.sin(x)"
    assert open_source(source, ReachedFile(lines={1})).is_reached(1, 15) is False
    assert open_source(source, ReachedFile(lines={1}, lambdas={1})).is_reached(1, 15) is True


@pytest.mark.parametrize(
    ("source", "column", "calls", "known", "reached"),
    [
        ("y = jnp.sin(x) if x else jnp.cos(x)", 5, {(1, 4)}, True, True),
        ("y = jnp.sin(x) if x else jnp.cos(x)", 26, {(1, 4)}, True, False),
        ("y = jnp.sin(x) if x else jnp.cos(x)", 26, set(), False, True),
        ("assert jnp.sin(x)", 8, {(1, 0)}, True, True),
        ("y = partial(jnp.sin, 1)", 13, {(1, 4)}, True, True),
    ],
)
def test_a_call_is_reached_if_it_was_made(
    source: str, column: int, calls: set[tuple[int, int]], known: bool, reached: bool
) -> None:
    """By its own position, where the process recorded calls and where it has one at run time."""
    uses = open_source(source, ReachedFile(lines={1}, calls=calls), calls=known)
    assert uses.is_reached(1, column, called=True) is reached


def test_an_incomplete_record_shows_only_what_is_reached() -> None:
    """Anything else may have been reached, too."""
    code = read(encode([PYTHON, ["jax", "0.5.3"], ["lost", "a debugger"]]))
    uses = ReachedUses(code, ReachedFile(lines={1}), b"jax.jit(f)\njax.vmap(f)")
    assert uses.is_reached(1, 1) is True
    assert uses.is_reached(2, 1) is None


def test_lines_that_were_not_watched_to_the_end_are_unknown() -> None:
    """Unless another process saw them."""
    records = [[["unknown", 0, [1, 2]]], [["line", 0, 2]]]
    head = [PYTHON, ["jax", "0.5.3"], ["file", 0, "/a.py"]]
    code = read(*(encode([*head, *lines]) for lines in records))
    uses = ReachedUses(code, code.files["/a.py"], b"jax.jit(f)\njax.vmap(f)\njax.grad(f)")
    assert [uses.is_reached(line, 1) for line in (1, 2, 3)] == [None, True, False]


def test_transforms_are_among_the_names() -> None:
    """By their public names."""
    assert list_transforms(["jax.grad", "jax.numpy.sin", "jax.jit", "jax.grad"]) == [
        "jax.grad",
        "jax.jit",
    ]
