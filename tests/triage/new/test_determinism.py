"""Scripts without facts of their environment, and with fixed seeds."""

from __future__ import annotations

from textwrap import dedent

import pytest

from conformance.triage.new import determinism
from conformance.triage.new.script_source import ScriptSource


def remove_environment(text: str) -> str:
    """Return a script that prints no facts of its environment."""
    return determinism.remove_environment(ScriptSource.parse(text)).text


def add_seeds(text: str) -> str:
    """Return a script whose random numbers have a seed."""
    return determinism.add_seeds(ScriptSource.parse(text)).text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("print(jax.__version__)", "pass"),
        ('print("jax", jax.__version__, "on", jax.devices())', "pass"),
        ('print(f"jax {jax.__version__} on {jax.devices()[0].platform}")', "pass"),
        ("print(sys.version.split()[0], platform.python_version(), np.__version__)", "pass"),
        ("jax.print_environment_info()", "pass"),
        ("print(jax.print_environment_info(return_string=True))", "pass"),
        ("print(jax.__version__, x)", "print(x)"),
        ('print(f"{jax.__version__}: {x.sum()} {y:.3f}")', "print(x.sum(), y)"),
        ('print("%s: %s" % (jax.__version__, x))', 'print("%s: %s" % (jax.__version__, x))'),
        ("print(x.devices())", "print(x.devices())"),
        ("print('done')", "print('done')"),
        ("jax.__version__", "pass"),
        ("y = jax.__version__", "y = jax.__version__"),
    ],
)
def test_prints_lose_facts_of_the_environment(line: str, expected: str) -> None:
    """Other printed values and plain texts stay."""
    head = "import jax, sys, platform\nimport numpy as np\nx = 1\n"
    assert remove_environment(head + line + "\n") == f"{head}{expected}\n"


def test_variables_that_hold_only_facts_are_facts() -> None:
    """A variable that is also assigned another value is not."""
    text = dedent("""\
        import time
        from time import perf_counter
        start = time.time()
        x = f()
        took = time.time() - start
        print(f"took {took:.3f} s", x)
        print(round(took, 2))
        took = x
        """)
    assert 'print(f"took' in remove_environment(text)
    changed = remove_environment(text.replace("took = x\n", ""))
    assert changed.splitlines()[-2:] == ["print(x)", "pass"]


def test_other_statements_are_unchanged() -> None:
    """Also if a statement spans lines, or is in a block."""
    text = "if x:\n    print(\n        x,  # one\n        y,\n    )\n"
    assert remove_environment(text) == text
    text = "import jax\nfor x in y:\n    print(jax.__version__)\n    print(x)\n"
    assert remove_environment(text) == "import jax\nfor x in y:\n    pass\n    print(x)\n"


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
def test_missing_seed_is_added(line: str, expected: str) -> None:
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


def test_seed_is_set_before_a_function_that_draws() -> None:
    """Not in the function, where each call would set it."""
    text = "import numpy as np\ndef f():\n    return np.random.rand()\nprint(f(), f())\n"
    lines = add_seeds(text).splitlines()
    assert lines[1:4] == ["import numpy.random", "numpy.random.seed(0)", "def f():"]
