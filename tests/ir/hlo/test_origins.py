"""Origins of instructions, in the metadata of each release."""

from __future__ import annotations

import pytest

from conformance.ir.graph import NOWHERE, IrSyntaxError, Origin
from conformance.ir.hlo import parse
from tests.ir.hlo.same import instruction

TABLES = """HloModule m

FileNames
1 "a.py"
2 "b \\"c\\".py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=2 end_column=9}
2 {file_name_id=2 function_name_id=1 line=5 end_line=5 column=2 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}


ENTRY %main () -> f32[] {
  ROOT %c = f32[] constant(1), metadata={op_name="n" stack_frame_id=FRAME}
}
"""


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ('op_name="jit(f)/add"', Origin("jit(f)/add")),
        ('op_type="add" op_name="f" source_file="a.py" source_line=7', Origin("f", "a.py", 7)),
        (
            'source_file="a" source_line=7 source_end_line=8 source_column=1 source_end_column=2',
            Origin("", "a", 7),
        ),
        ('source_file="a.py" source_line=7', Origin("", "a.py", 7)),
        ('op_name="f" deduplicated_name="d" scheduling_name="s"', Origin("f")),
        ('op_name="f" profile_type={1} preserve_layout=true', Origin("f")),
        ('op_name="say \\"f\\""', Origin('say "f"')),
        ('op_name="f" stack_frame_id=3', Origin("f")),
        ("", NOWHERE),
    ],
)
def test_metadata_yields_name_file_and_line(metadata: str, expected: Origin) -> None:
    """The other fields are about the compiler."""
    assert instruction(f"%y = f32[4] tanh(%x), metadata={{{metadata}}}").origin == expected


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (1, Origin("n", "a.py", 3)),
        (2, Origin("n", 'b "c".py', 5)),
        (0, Origin("n")),
    ],
)
def test_a_frame_is_looked_up_in_the_tables(frame: int, expected: Origin) -> None:
    """Newer releases print files and lines once, above the computations."""
    text = TABLES.replace("FRAME", str(frame))
    assert parse(text).entry.instructions[0].origin == expected


def test_equal_origins_are_one_object() -> None:
    """Even if their metadata differ in other fields."""
    found = parse(
        'HloModule m\nENTRY e {\n  a = f32[] constant(1), metadata={op_name="f"}\n'
        '  b = f32[] add(a, a), metadata={op_name="f" scheduling_name="b"}\n}'
    )
    first, second = found.entry.instructions
    assert first.origin is second.origin


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FRAME", "7"),
        ("FRAME", "x"),
        ('1 "f"', "one f"),
        ('1 "a.py"', "1 {file_name_id=1}"),
        ('op_name="n"', "op_name=n"),
        ('op_name="n"', 'op_name="n'),
    ],
)
def test_broken_tables_and_metadata_are_refused(old: str, new: str) -> None:
    """They would lead to a wrong line."""
    with pytest.raises(IrSyntaxError, match="hlo line"):
        parse(TABLES.replace(old, new).replace("FRAME", "2"))
