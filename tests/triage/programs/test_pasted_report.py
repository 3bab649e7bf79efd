"""What a pasted text holds."""

from __future__ import annotations

import contextlib
import io

import pytest

from conformance.errors import UsageError
from conformance.triage.programs.pasted_report import add_echoes, find_thread, read_paste

SCRIPT = "import jax\nprint(jax.devices())\n"


@pytest.mark.parametrize(
    "text",
    [
        SCRIPT,
        f"\n\n{SCRIPT}",
        "    import jax\n    print(jax.devices())",
        f"It fails:\n\n```python\n{SCRIPT}```\n\nIt says:\n\n```\nTraceback ...\n```\n",
        f"It fails:\n~~~~\n{SCRIPT}~~~~\n",
        ">>> import jax\n>>> print(jax.devices())\n[CpuDevice(id=0)]\n",
        "```pycon\n>>> import jax\n>>> print(jax.devices())\n[CpuDevice(id=0)]\n```",
        "In [1]: import jax\nIn [2]: print(jax.devices())\n",
        f"!pip install jax\n%matplotlib inline\n{SCRIPT}",
        f"$ python report.py\n{SCRIPT}",
    ],
)
def test_a_script_is_extracted_from_any_report(text: str) -> None:
    """However it came."""
    assert read_paste(text, "report.md").text == SCRIPT


def test_blocks_at_prompts_keep_their_shape() -> None:
    """Their lines begin with dots."""
    pasted = read_paste(">>> def f(x):\n...     return x\n...\n>>> f(1)\n1\n", "report.md")
    assert pasted.text == "def f(x):\n    return x\n\nf(1)\n"
    assert pasted.echoes


def test_the_first_block_is_used() -> None:
    """The notes count the others."""
    pasted = read_paste("```py\nx = 1\n```\nworks:\n```py\nx = 2\n```\n", "report.md")
    assert (pasted.text, pasted.notes) == ("x = 1\n", ("1 more block of code left out",))


def test_a_block_of_a_notebook() -> None:
    """Its magic lines are left out, in a fence that names no language, too."""
    pasted = read_paste("It fails.\n\n```\n%pip install jax\nx = 1\n```\n", "report.md")
    assert (pasted.text, pasted.notes) == ("x = 1\n", ("`%pip install jax` left out",))


@pytest.mark.parametrize(
    ("code", "echoes"),
    [("x = 1\nx + 1\n", True), ("x = 1\nprint(x)\nx\n", False), ("x = 1\n", False)],
)
def test_a_block_that_ends_in_a_value_shows_it(code: str, echoes: bool) -> None:
    """As a notebook does, where it prints nothing; a script by itself does not."""
    assert read_paste(f"This gives nan:\n```python\n{code}```\n", "report.md").echoes is echoes
    assert not read_paste(code, "report.py").echoes


def test_variables_of_a_command_line_are_set() -> None:
    """Exported variables, too."""
    text = '$ XLA_FLAGS="--a=1 --b" python report.py\nexport JAX_ENABLE_X64=1\nprint(1)\n'
    assert read_paste(text, "r").variables == {"XLA_FLAGS": "--a=1 --b", "JAX_ENABLE_X64": "1"}


@pytest.mark.parametrize(
    ("text", "thread"),
    [
        ("see https://github.com/jax-ml/jax/issues/27664 for it", "jax-ml/jax#27664"),
        ("https://github.com/jax-ml/jax/pull/1#issuecomment-2", "jax-ml/jax#1"),
        ("jax-ml/jax#5", "jax-ml/jax#5"),
        ("CHANGELOG 0.6.0", ""),
        ("x = 1\njax-ml/jax#5", ""),
    ],
)
def test_an_upstream_thread_is_found(text: str, thread: str) -> None:
    """By its URL, or in short form."""
    assert find_thread(text) == thread


def test_statements_get_lines_of_their_own() -> None:
    """Else they could not be edited one by one."""
    assert read_paste("import jax; import os\nx = 1\n", "r").text.count("\n") == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print 'hello'", "report.py:1: no Python: "),
        ("x = 1\nif x:\n", "report.py:2: no Python: expected an indented block"),
        ("# nothing\n", "report.py: holds no statement"),
        ("", "report.py: holds no statement"),
        ("Dear all, it fails.", "report.py:1: no Python"),
    ],
)
def test_text_without_python_is_an_error(text: str, said: str) -> None:
    """The message has the line."""
    with pytest.raises(UsageError) as caught:
        read_paste(text, "report.py")
    assert said in str(caught.value)


def test_values_at_prompts_are_printed() -> None:
    """Unless they are None."""
    pasted = read_paste(">>> x = 'é' * 2\n>>> x\n'éé'\n>>> (x +\n...  'b')\n>>> print(1)\n", "r")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(add_echoes(pasted.text), {})  # noqa: S102 - the test's own
    assert out.getvalue() == "'éé'\n'ééb'\n1\n"
