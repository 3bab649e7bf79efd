"""Shrunk cases as files: formatted, with a reference or a claim."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from conformance.model.observation import ExpectedError
from conformance.model.value import Leaf, Value
from conformance.triage.shrink.case_text import add_claim, add_reference, format_text

TEXT = """\
from conformance.kit import Program, program
import numpy as np
LIMIT = 3
@program(devices=2)
def case(env):
    x = np.ones(LIMIT)
    def fn(x):
        back, = call(x)
        return {'a': f'{x}-{1}', 'b': [back, "it's"]}
    mapped = env.compat.shard_map(fn, mesh=env.mesh(2, 'x'), in_specs=lambda a, b: (a, b), out_specs=None)
    return Program(mapped, args=(x,))
"""  # noqa: E501 - it is to be broken


def leaf(path: str, array: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Leaf:
    """Return an array as it was observed."""
    return Leaf(
        path=path, kind="array", dtype=str(array.dtype), shape=array.shape, data=array.tobytes()
    )


def test_formatted_text_is_stable() -> None:
    """Ruff does not change it again."""
    made = format_text(TEXT, ["about it", "more"])
    assert made.startswith("# about it\n# more\n\nimport numpy as np\n\nfrom conformance.kit")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--diff", "--isolated", "--line-length=100", "-"],
        input=made, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert format_text(made) == made.partition("\n\n")[2]


@pytest.mark.parametrize(
    ("leaves", "written"),
    [
        ([("out", [2.0, 2.0])], "np.array([2.0, 2.0], np.float32)"),
        ([("out", [2.0] * 65)], "np.full((65,), 2.0, np.float32)"),
        ([("out", 0.1)], "np.float32(0.1)"),
        ([("out[0]", 1.0), ("out[1]['a']", 2.0)], "[np.float32(1.0), {'a': np.float32(2.0)}]"),
        ([("out", list(range(65)))], None),
    ],
)
def test_value_becomes_the_reference(leaves: list[tuple[str, object]], written: str | None) -> None:
    """With the shortest digits of its dtype; a large value has no text."""
    given = tuple(leaf(path, np.asarray(data, np.float32)) for path, data in leaves)
    made = add_reference(TEXT, "case", Value(structure="", leaves=given))
    last = None if made is None else made.splitlines()[-1].strip()
    call = f"return Program(mapped, args=(x,), reference={written})"
    assert last == (None if written is None else call)


def test_expected_error_and_claim_are_added() -> None:
    """They replace the reference and the claims that the case has."""
    error = ExpectedError(type="TypeError", match="a.b")
    raising = format_text(str(add_reference(TEXT, "case", error)))
    assert 'reference=raises("TypeError", "a.b"))' in raising
    assert "import Program, program, raises" in raising
    claimed = add_claim(TEXT, "case", "collectives.all-reduce", {"collectives": {"all-reduce": 1}})
    assert "@program(devices=2, facts={'collectives': {'all-reduce': 1}})" in claimed


def test_value_of_a_probe_is_wrapped_for_its_reference() -> None:
    """In `Observed`."""
    text = "from conformance.kit import probe\n@probe()\ndef case(env):\n    return 1 + 1"
    made = format_text(str(add_reference(text, "case", ExpectedError(type="TypeError"))))
    assert 'return Observed(1 + 1, reference=raises("TypeError"))' in made
    assert "import Observed, probe, raises" in made
