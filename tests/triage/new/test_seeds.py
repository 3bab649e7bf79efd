"""Seeds for random numbers that a script draws without one."""

from __future__ import annotations

import pytest

from conformance.triage.new import seeds
from conformance.triage.new.source import ScriptSource


def add_seeds(text: str) -> str:
    """Return a script whose random numbers have a seed."""
    return seeds.add_seeds(ScriptSource.parse(text)).text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "x = np.random.randn(3)",
            "import numpy.random\nnumpy.random.seed(0)\nx = np.random.randn(3)",
        ),
        ("x = randn(3)", "import numpy.random\nnumpy.random.seed(0)\nx = randn(3)"),
        ("x = random.random()", "import random\nrandom.seed(0)\nx = random.random()"),
        ("x = np.random.default_rng()", "x = np.random.default_rng(0)"),
        ("x = np.random.default_rng().normal(3)", "x = np.random.default_rng(0).normal(3)"),
        ("x = np.random.RandomState( )", "x = np.random.RandomState( 0)"),
    ],
)
def test_a_seed_is_added(line: str, expected: str) -> None:
    """Before the statement that draws first, or to the generator."""
    head = "import random\nimport numpy as np\nfrom numpy.random import randn\n"
    assert add_seeds(f"{head}{line}\n") == f"{head}{expected}\n"


@pytest.mark.parametrize(
    "line",
    [
        "np.random.seed(3)\nx = np.random.randn(3)",
        "x = np.random.default_rng(7).normal(3)",
        "x = np.random.Generator(np.random.PCG64(1)).normal(3)",
        "x = jax.random.normal(jax.random.key(0), 3)",
        "state = np.random.get_state()",
    ],
)
def test_a_script_with_its_own_seeds_is_unchanged(line: str) -> None:
    """So is one that draws from `jax.random`, whose keys are seeds."""
    text = f"import jax\nimport numpy as np\n{line}\n"
    assert add_seeds(text) == text


def test_a_function_that_draws() -> None:
    """The seed is set once, before the function, and not at each call of it."""
    text = "import numpy as np\ndef f():\n    return np.random.rand()\nprint(f(), f())\n"
    lines = add_seeds(text).splitlines()
    assert lines[1:4] == ["import numpy.random", "numpy.random.seed(0)", "def f():"]
