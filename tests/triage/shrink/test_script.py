"""Scripts as the body of a function while they are cut."""

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


def test_wrapped_script_is_unwrapped_to_itself() -> None:
    """In the same order: a flag is set before jax is imported."""
    assert ast.dump(ast.parse(unwrap_script(wrap_script(SCRIPT)))) == ast.dump(ast.parse(SCRIPT))


@pytest.mark.parametrize("line", ["from __future__ import annotations", "from jax.numpy import *"])
def test_star_and_future_imports_are_not_wrapped(line: str) -> None:
    """A function cannot contain them."""
    text = wrap_script(f"{line}\n{SCRIPT}")
    compile(text, "script", "exec")
    assert unwrap_script(text).count("import *") == line.count("import *")
    assert "print" not in str(apply_edits(drop_statements(text, BODY)))


def test_invalid_python_is_a_syntax_error() -> None:
    """The caller reports the line."""
    with pytest.raises(SyntaxError):
        wrap_script("def f(:")
