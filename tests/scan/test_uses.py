"""Uses of a package in source: names, calls, guards and options."""

from __future__ import annotations

import pytest

from conformance.scan.uses import NameUse, find_uses


def find(source: str) -> list[NameUse]:
    """Return the uses of jax and of the package `own` in a module of it."""
    return find_uses(source, "own.module", is_package=False, packages=["jax", "own"]).uses


def called(source: str) -> dict[str, NameUse]:
    """Return the calls by the name that is called, which stands for one name."""
    return {"".join(use.names): use for use in find(source) if use.call is not None}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import jax\njax.numpy.clip(1)", "jax.numpy.clip"),
        ("import jax.numpy as jnp\njnp.clip(1)", "jax.numpy.clip"),
        ("from jax import numpy\nnumpy.clip(1)", "jax.numpy.clip"),
        ("from jax.numpy import clip as limit\nlimit(1)", "jax.numpy.clip"),
        ("import jax.numpy as jnp\nclip = jnp.clip\nclip(1)", "jax.numpy.clip"),
        ("import jax\ndef f():\n    import jax.numpy as n\n    n.clip(1)", "jax.numpy.clip"),
        ("def f():\n    return jnp.clip(1)\nimport jax.numpy as jnp", "jax.numpy.clip"),
        ("from .compat import clip\nclip(1)", "own.compat.clip"),
        ("from . import compat\ncompat.clip(1)", "own.compat.clip"),
        (
            "import jax.numpy as jnp\nclass A:\n    def f(self):\n        jnp.clip(1)",
            "jax.numpy.clip",
        ),
    ],
)
def test_names_are_resolved(source: str, name: str) -> None:
    """Through imports, aliases and scopes."""
    assert name in called(source)


@pytest.mark.parametrize(
    "source",
    [
        "import jax.numpy as jnp\ndef f(jnp):\n    jnp.clip(1)",
        "import jax.numpy as jnp\n[jnp.clip(1) for jnp in range(3)]",
        "def f():\n    import jax\njax.jit(1)",
        "import numpy as np\nnp.clip(1)",
        "import jax\nclass A:\n    clip = jax.numpy.clip\n    def f(self):\n        clip(1)",
    ],
)
def test_other_things_of_the_same_name_are_none(source: str) -> None:
    """Parameters, names of other scopes and of other packages."""
    assert called(source) == {}


def test_a_call_has_its_arguments() -> None:
    """Also those of a partial application."""
    source = (
        "import jax\nfrom functools import partial\n"
        "jax.f(1, *x, a=1, **y)\n"
        "@partial(jax.jit, static_argnums=0)\ndef g(): ..."
    )
    found = called(source)
    shape = found["jax.f"].call
    assert shape is not None
    assert shape.positions == 1
    assert shape.keywords == {"a"}
    assert shape.more_positions
    assert shape.more_keywords
    partial = found["jax.jit"].call
    assert partial is not None
    assert partial.partial
    assert partial.keywords == {"static_argnums"}


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    jax.f()\nexcept AttributeError:\n    pass",
        "try:\n    pass\nexcept (KeyError, ImportError):\n    jax.f()",
        "if jax.__version_info__ > (0, 5):\n    jax.f()\nelse:\n    jax.f()",
        "if hasattr(jax, 'f') or old:\n    jax.f()",
        "if not hasattr(jax, 'g'):\n    jax.f()",
        "if hasattr(jax, 'g'):\n    pass\nelse:\n    jax.f()",
        "if hasattr(jax, 'g') and VERSION_IS_NEW:\n    jax.f()",
        "VERSION_IS_NEW and None\nx = jax.f() if VERSION_IS_NEW else None",
        "if JAX_GE_0_8_2:\n    jax.f()",
        "NEW = Version(jax.__version__) >= Version('0.8')\nif not NEW:\n    jax.f()",
        "NEW = hasattr(jax, 'f')\ndef g():\n    return jax.f() if NEW else None",
    ],
)
def test_code_that_asks_for_the_version_is_guarded(source: str) -> None:
    """It is written for several releases."""
    assert all(use.guarded for use in find(f"import jax\n{source}") if "jax.f" in use.names)


@pytest.mark.parametrize(
    ("test", "names"),
    [
        ("hasattr(jax, 'g')", {"jax.g"}),
        ("hasattr(jax, 'g') and x and hasattr(jax.nn, 'h')", {"jax.g", "jax.nn.h"}),
        ("hasattr(x, 'g') and hasattr(jax, 'h')", None),
    ],
)
def test_names_that_code_asks_for_are_kept(test: str, names: set[str] | None) -> None:
    """Whether they are there is known; of any other object it is not."""
    (one,) = [use for use in find(f"import jax\nif {test}:\n    jax.f()") if "jax.f" in use.names]
    assert (one.tested == names and not one.guarded) if names else one.guarded


def test_alternatives_are_kept_together() -> None:
    """A name that two imports bind may stand for both."""
    source = (
        "try:\n    from jax import shard_map\n"
        "except ImportError:\n    from jax.experimental.shard_map import shard_map\n"
        "shard_map(f)"
    )
    (use,) = [use for use in find(source) if use.call is not None]
    assert use.names == {"jax.shard_map", "jax.experimental.shard_map.shard_map"}
    assert not use.guarded


def test_options_are_found_in_text() -> None:
    """As an option of `jax.config`, or as an environment variable."""
    source = "import os, jax\njax.config.update('jax_a', 1)\nos.environ['JAX_B'] = '1'"
    assert [use.option for use in find(source) if use.option] == ["jax_a", "jax_b"]


def test_lines_and_columns_are_those_of_the_name() -> None:
    """Both from 1."""
    (use,) = [use for use in find("import jax\n\nx = jax.jit(f)") if use.call is not None]
    assert (use.line, use.column) == (3, 5)


def test_what_is_no_python_is_an_error() -> None:
    """The caller names the file."""
    with pytest.raises(SyntaxError):
        find("def (")
