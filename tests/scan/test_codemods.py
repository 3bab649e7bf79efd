"""Fixes of a module's source: names, calls and imports, and everything else as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.app.scan.api import FIXES, read_literal
from conformance.errors import UsageError
from conformance.scan.codemods import FixedModule, PlannedFix, fix_module
from conformance.scan.fixes import FixTable, parse_fix
from conformance.scan.uses import find_uses
from tests.shipped import CASES

if TYPE_CHECKING:
    from conformance.scan.signatures import CallShape

FILE = CASES.joinpath(*FIXES)
ROWS = read_literal(FILE, "FIXES")
HEADER = read_literal(FILE, "HEADER")
TABLE = FixTable(parse_fix(name, row) for name, row in ROWS.items())


def refuse_auto(_: str, call: CallShape) -> bool:
    """Say that a call fits, as the signatures do, unless it passes `auto`."""
    return "auto" not in call.keywords


def fix(source: str | bytes, *, is_package: bool = False) -> FixedModule:
    """Return a module with every fix of the table."""
    data = source.encode() if isinstance(source, str) else source
    planned = []
    for use in find_uses(data, "own", is_package=False, packages=["jax"]).uses:
        (name, *others) = use.names
        found = TABLE.find(name)
        if found is not None and not others and not (use.guarded or use.tested):
            planned.append(PlannedFix(use=use, fix=found))
    return fix_module(data, "own.py", planned, refuse_auto, is_package=is_package)


@pytest.mark.parametrize("name", ROWS)
def test_a_fix_turns_its_example_into_the_other(name: str) -> None:
    """And has nothing to do afterwards."""
    before, after = (f"{HEADER}{ROWS[name][how]}" for how in ("before", "after"))
    assert fix(before).source.decode() == after
    assert fix(after).source.decode() == after


@given(st.lists(st.sampled_from([*ROWS]), min_size=2, max_size=6, unique=True))
def test_fixing_twice_is_fixing_once(names: list[str]) -> None:
    """Of any examples in one module."""
    source = HEADER + "".join(f"{ROWS[name]['before']}\n" for name in names)
    once = fix(source).source
    assert fix(once).source == once


IMPORTS = {
    "an_alias": (
        "from jax import tree_map as tm, jit\n\n\ndef f(x):\n    return tm(x, y)  # note\n",
        (
            "from jax import jit\nfrom jax.tree import map as tm\n\n\n"
            "def f(x):\n    return tm(x, y)  # note\n"
        ),
    ),
    "the_same_name": (
        "from jax import tree_map\n\n__all__ = ['tree_map']\n",
        "from jax.tree import map as tree_map\n\n__all__ = ['tree_map']\n",
    ),
    "a_module_that_is_still_used": (
        "from jax import core\n\np = core.Primitive('x')\nq = core.Tracer\n",
        (
            "import jax.extend.core\nfrom jax import core\n\n"
            "p = jax.extend.core.Primitive('x')\nq = core.Tracer\n"
        ),
    ),
    "a_module_that_is_unused": (
        "# about it\nfrom jax import core\n\np = core.Primitive('x')\n",
        "# about it\nimport jax.extend.core\n\np = jax.extend.core.Primitive('x')\n",
    ),
    "a_removed_module": (
        (
            "import jax.experimental.shard_map as smap\nimport numpy as np\n\n"
            "g = smap.shard_map(f, mesh, a, b, check_rep=False)\n"
        ),
        (
            "import jax\nimport numpy as np\n\n"
            "g = jax.shard_map(f, mesh=mesh, in_specs=a, out_specs=b, check_vma=False)\n"
        ),
    ),
    "a_dotted_import": (
        "import jax.experimental\n\nwith jax.experimental.enable_x64():\n    pass\n",
        "import jax\n\nwith jax.enable_x64(True):\n    pass\n",
    ),
    "a_module_that_moved": (
        "import jax.experimental.export\n\njax.experimental.export.export(f)\n",
        "import jax.export\n\njax.export.export(f)\n",
    ),
    "within_a_function": (
        "def f():\n    from jax import tree_map\n\n    return tree_map(g, x)\n",
        "def f():\n    from jax.tree import map as tree_map\n\n    return tree_map(g, x)\n",
    ),
    "a_line_with_comments": (
        "from jax.core import (\n    Jaxpr,\n    Tracer,  # kept\n)\n\nx = Jaxpr\n",
        (
            "from jax.core import (\n    Tracer,  # kept\n)\n"
            "from jax.extend.core import Jaxpr\n\nx = Jaxpr\n"
        ),
    ),
    "after_the_docstring": (
        (
            '"""About."""\n\nfrom __future__ import annotations\n\nfrom jax import core\n\n'
            "x = core.Var\n"
        ),
        (
            '"""About."""\n\nfrom __future__ import annotations\n\nimport jax.extend.core\n\n'
            "x = jax.extend.core.Var\n"
        ),
    ),
}


@pytest.mark.parametrize(("before", "after"), IMPORTS.values(), ids=IMPORTS)
def test_imports_change_as_little_as_possible(before: str, after: str) -> None:
    """Names that the module binds stay; an import that nothing needs any more goes."""
    assert fix(before).source.decode() == after
    assert fix(after).source.decode() == after


CALLS = {
    "lines_and_comments": (
        (
            "import jax.numpy as jnp\n"
            "y = jnp.clip(\n    x,\n    a_min=0,  # low\n    a_max=jnp.round_(3.2),\n)\n"
        ),
        (
            "import jax.numpy as jnp\n"
            "y = jnp.clip(\n    x,\n    min=0,  # low\n    max=jnp.round(3.2),\n)\n"
        ),
    ),
    "positions_that_still_work": (
        "import jax.numpy as jnp\ny = jnp.clip(x, 0, a_max=1)\n",
        "import jax.numpy as jnp\ny = jnp.clip(x, 0, max=1)\n",
    ),
    "a_partial_application": (
        (
            "from functools import partial\nfrom jax.experimental.shard_map import shard_map\n\n\n"
            "@partial(shard_map, mesh=m, in_specs=a, out_specs=b, check_rep=False)\ndef f(x): ...\n"
        ),
        (
            "from functools import partial\nfrom jax import shard_map\n\n\n"
            "@partial(shard_map, mesh=m, in_specs=a, out_specs=b, check_vma=False)\ndef f(x): ...\n"
        ),
    ),
    "a_parameter_that_is_gone": (
        "import jax\nx = jax.nn.softmax(a, initial=0, axis=1)\n",
        "import jax\nx = jax.nn.softmax(a, axis=1)\n",
    ),
    "positions_of_jit": (
        "import jax\nh = jax.jit(f, None, static_argnums=(1,))\n",
        "import jax\nh = jax.jit(f, in_shardings=None, static_argnums=(1,))\n",
    ),
    "within_a_call": (
        "import jax\nx = jax.tree_map(f, jax.tree_map(g, y))(z).a\n",
        "import jax\nx = jax.tree.map(f, jax.tree.map(g, y))(z).a\n",
    ),
    "a_value_that_may_be_evaluated_twice": (
        "import jax\nx = jax.device_put_replicated(y, (cpu,))\n",
        (
            "import jax\nx = jax.device_put(jax.tree.map(lambda leaf: "
            "jax.numpy.stack([leaf] * len((cpu,))), y), jax.sharding.NamedSharding("
            'jax.sharding.Mesh((cpu,), ("devices",)), jax.sharding.PartitionSpec("devices")))\n'
        ),
    ),
    "letters_of_two_bytes": (
        "import jax\né = 'é'; x = ('é', jax.tree_map(f, y))\n",
        "import jax\né = 'é'; x = ('é', jax.tree.map(f, y))\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), CALLS.values(), ids=CALLS)
def test_calls_keep_their_format(before: str, after: str) -> None:
    """Only the names of parameters, and what the newer release takes otherwise, change."""
    assert fix(before).source.decode() == after


@pytest.mark.parametrize(
    "source",
    [
        (
            "try:\n    from jax import tree_map\nexcept ImportError:\n"
            "    from jax.tree_util import tree_map\ntree_map(f, x)\n"
        ),
        "import jax\nif jax.__version_info__ < (0, 6):\n    jax.tree_map(f, x)\n",
        "import jax\nif hasattr(jax, 'tree_map'):\n    jax.tree_map(f, x)\n",
    ],
)
def test_code_for_several_releases_stays(source: str) -> None:
    """It asks for the version, or catches the error."""
    assert fix(source).source.decode() == source


@pytest.mark.parametrize(
    "source",
    [
        (
            "from jax.experimental.shard_map import shard_map\n"
            "shard_map(f, mesh, a, b, auto=x)\nshard_map(f, mesh, a, b)\n"
        ),
        "import jax.experimental.shard_map as sm\nrun(sm.shard_map)\nsm.shard_map(f, mesh, a, b)\n",
        "from jax.experimental.shard_map import shard_map\nshard_map(f, **options)\n",
        "from jax.util import safe_zip\nzip = safe_zip\nsafe_zip(a, b)\n",
        "import jax\njax.device_put_replicated(x, devices=make())\n",
        "import jax\njax.lax.pvary(\n    x,  # a comment\n    'x',\n)\n",
        "import jax\njnp = 1\njax = jax\ndef f(jax):\n    return 1\n",
        "from jax import core\ndef g(jax):\n    return core.Primitive('x')\n",
        "import jax; import os\nfrom jax import tree_map; y = 2\n",
        "if x: from jax.experimental.shard_map import shard_map\nshard_map(f, mesh, a, b)\n",
    ],
)
def test_what_is_not_certain_stays(source: str) -> None:
    """Unknown arguments, values evaluated twice, comments that would go, hidden names."""
    assert fix(source).source.decode() == source


def test_a_call_that_cannot_be_fixed_keeps_the_import_for_all() -> None:
    """And is reported."""
    source = (
        "from jax.experimental.shard_map import shard_map\n"
        "shard_map(f, mesh, a, b, auto=x)\nshard_map(f, mesh, a, b)\n"
    )
    assert {one.use.line for one in fix(source).failed} == {1, 2, 3}


def test_a_package_keeps_imports_for_others() -> None:
    """An `__init__` may import a name only to pass it on."""
    source = "import jax\nfrom jax import core\n\np = core.Primitive('x')\n"
    assert "from jax import core" in fix(source, is_package=True).source.decode()


@pytest.mark.parametrize(
    ("source", "encoding"),
    [
        ("import jax\r\nx = jax.tree_map(f,\r\n  y)\r\n", "utf-8"),
        ("import jax\nx = jax.tree_map(f, y)\n", "utf-8-sig"),
        ("# -*- coding: latin-1 -*-\nimport jax\né = jax.tree_map(f, y)\n", "latin-1"),
        ("import jax\nx = jax.tree_map(f, y)", "utf-8"),
    ],
)
def test_encoding_and_line_ends_stay(source: str, encoding: str) -> None:
    """Byte for byte."""
    expected = source.replace("tree_map", "tree.map").encode(encoding)
    assert fix(source.encode(encoding)).source == expected


def test_what_is_no_python_is_an_error() -> None:
    """With the file."""
    with pytest.raises(UsageError, match=r"own\.py"):
        fix_module(b"def (", "own.py", [], refuse_auto)
