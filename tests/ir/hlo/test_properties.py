"""Properties of every module, and of every malformed text."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.ir.graph import IrSyntaxError, Module
from conformance.ir.hlo import parse
from tests.ir.hlo.printer import print_module
from tests.ir.hlo.same import same_graph
from tests.ir.hlo.test_attributes import KNOWN
from tests.ir.hlo.test_parser import HEAD
from tests.ir.hlo.test_printer import TEXT
from tests.ir.hlo.test_shardings import SPELLINGS

NAMES = st.from_regex(r"[a-z_][a-z0-9_.\-]{0,6}", fullmatch=True)
TENSORS = st.sampled_from(
    ["f32[]", "bf16[2,3]{1,0:T(8,128)(2,1)S(1)}", "pred[<=4]{0}", "token[]", "s4[7]{0:E(4)}"]
)
TYPES = st.recursive(
    TENSORS, lambda inner: st.lists(inner, max_size=3).map(lambda each: f"({', '.join(each)})")
)
METADATA = st.builds(
    'op_name="{}" source_file="{}" source_line={}'.format, NAMES, NAMES, st.integers(0, 9999)
)
ATTRIBUTES = st.sampled_from(
    [
        *[text for text in KNOWN if not text.startswith(("control", "sharding"))],
        *[f"sharding={text}" for text in SPELLINGS],
        "foo={unknown, (1)}",
        "to_apply=%callee",
        "branch_computations={%callee, %callee}",
    ]
)


@st.composite
def modules(draw: st.DrawFn) -> str:
    """Return the text of a module: a callee, and an entry of any instructions."""
    lines: list[str] = []
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    root = draw(st.integers(0, len(names) - 1))
    for number, name in enumerate(names):
        type_ = draw(TYPES)
        operands = draw(st.lists(st.sampled_from(names[:number]))) if number else []
        attributes = draw(st.lists(ATTRIBUTES, max_size=3, unique_by=lambda a: a.split("=")[0]))
        if draw(st.booleans()):
            attributes.append(f"metadata={{{draw(METADATA)}}}")
        line = f"%{name} = {type_} some-op({', '.join([f'%{o}' for o in operands])})"
        lines.append(f"  {'ROOT ' * (number == root)}{', '.join([line, *attributes])}")
    body = "\n".join(lines)
    return f"HloModule m\n\ncallee {{\n  c = f32[] constant(1)\n}}\n\nENTRY main {{\n{body}\n}}\n"


@given(modules())
def test_a_printed_module_reads_back(text: str) -> None:
    """To the same graph, and printed again to the same text."""
    found = parse(text)
    printed = print_module(found)
    again = parse(printed)
    assert same_graph(found, again)
    assert print_module(again) == printed


def read(text: str) -> Module | None:
    """Return the module, or nothing where the text is refused; let other errors through."""
    with suppress(IrSyntaxError):
        return parse(text)
    return None


@given(st.text() | st.text().map(lambda text: HEAD + text))
def test_any_text_is_read_or_refused(text: str) -> None:
    """With a single type of error."""
    read(text)


@given(st.integers(0, len(TEXT) - 3))
def test_a_truncated_module_is_refused(end: int) -> None:
    """At any position."""
    assert read(TEXT[:end]) is None


@settings(max_examples=300)
@given(
    st.integers(0, len(TEXT)), st.integers(0, 5), st.text('{}()[]",=% \n<>-#:*/\\0aT²', max_size=4)
)
def test_a_changed_module_is_refused_or_printed_and_read_back(
    start: int, cut: int, put: str
) -> None:
    """No change leads to another error, or to a graph that has no text."""
    found = read(TEXT[:start] + put + TEXT[start + cut :])
    if found is not None:
        assert same_graph(parse(print_module(found)), found)
