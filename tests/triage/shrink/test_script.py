"""Scripts while they are cut: the form they have then."""

from __future__ import annotations

import ast

import pytest

from conformance.triage.shrink.edits import apply_edits, drop_statements
from conformance.triage.shrink.script import BODY, unwrap_script, wrap_script

SCRIPT = """\
import os
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=4'
import jax

def double(x):
    return 2 * x
for n in range(2):
    print(double(n))
"""


def test_a_script_is_the_same_after_all() -> None:
    """What comes first stays first: a flag is set before jax is imported."""
    assert ast.dump(ast.parse(unwrap_script(wrap_script(SCRIPT)))) == ast.dump(ast.parse(SCRIPT))


@pytest.mark.parametrize("line", ["from __future__ import annotations", "from jax.numpy import *"])
def test_imports_of_the_top_of_a_module(line: str) -> None:
    """A function cannot have them, and the text can be cut all the same."""
    text = wrap_script(f"{line}\n{SCRIPT}")
    compile(text, "script", "exec")
    assert unwrap_script(text).count("import *") == line.count("import *")
    assert "print" not in str(apply_edits(drop_statements(text, BODY)))


def test_no_python() -> None:
    """The caller says where."""
    with pytest.raises(SyntaxError):
        wrap_script("def f(:")
