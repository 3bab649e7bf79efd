"""Drafts of cases from scripts of each kind."""

from __future__ import annotations

import ast
import contextlib
import io
from textwrap import dedent
from typing import Any

import pytest

from conformance.errors import UsageError
from conformance.kit import Observed
from conformance.triage.new.case_file import Declarations, render_case
from conformance.triage.new.draft import Draft, DraftOptions, make_draft
from conformance.triage.new.script import Script, read_script
from conformance.triage.programs.pasted_report import read_paste

PROGRAM = DraftOptions(kind="program")
COMPAT = DraftOptions(use_compat=True)


def script(text: str) -> Script:
    """Return a script, read."""
    return read_script(read_paste(dedent(text), "report.py"), "report.py")


def body(text: str, options: DraftOptions = DraftOptions(), **more: str) -> str:  # noqa: B008 - it is frozen
    """Return the inside of the case of a script."""
    draft = make_draft(script(text), options, **more)
    assert draft is not None
    return "\n".join([*draft.inner, draft.body])


def made(text: str, options: DraftOptions = DraftOptions()) -> Draft | None:  # noqa: B008 - it is frozen
    """Return the draft of a script, if there is one."""
    return make_draft(script(text), options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\nprint(x)", "x = 1\nreturn Observed(x)"),
        ("x = 1\nprint('x is', x)", "x = 1\nreturn Observed(x)"),
        ("x = 1\nprint(x, x.dtype)", "x = 1\nreturn Observed((x, str(x.dtype)))"),
        ("print('done')", "return Observed('done')"),
        ("x = 1\nx + 1", "x = 1\nreturn Observed(x + 1)"),
        ("f(1)\ny = f(2)", "f(1)\nreturn Observed(f(2))"),
        (
            "print(1 + 1)\nx = 2\nprint(x)",
            "seen = []\nseen.append(1 + 1)\nx = 2\nseen.append(x)\nreturn Observed(seen)",
        ),
        (
            "for x in y:\n    print(x)",
            "seen = []\nfor x in y:\n    seen.append(x)\nreturn Observed(seen)",
        ),
        (
            "seen = 1\nprint(seen)\nprint(seen)",
            "seen_ = []\nseen = 1\nseen_.append(seen)\nseen_.append(seen)\nreturn Observed(seen_)",
        ),
        ("if x:\n    y = 1", 'if x:\n    y = 1\nreturn Observed("ran", reference="ran")'),
        (
            "import sys\nsys.exit(0 if x == 1 else 1)",
            "return Observed(bool(x == 1), reference=True)",
        ),
        ("import sys\nsys.exit(1 if x else 0)", "return Observed(bool(x), reference=False)"),
        ("import sys\nsys.exit(main())", "return Observed(main(), reference=0)"),
        ("print(x)\nexit()", "return Observed(x)"),
    ],
)
def test_printed_or_last_values_are_observed(text: str, expected: str) -> None:
    """Labels next to them are not."""
    assert body(text) == expected


@pytest.mark.parametrize(
    ("text", "expected", "condition"),
    [
        ("assert x == 1", "return Observed(x, reference=1)", "bool(x == 1), reference=True"),
        ("assert 1 == x", "return Observed(reference=1, value=x)", "bool(1 == x), reference=True"),
        ("assert x > 1", "return Observed(bool(x > 1), reference=True)", "bool(x > 1)"),
        (
            "import numpy as np\nassert np.allclose(x, y)",
            "return Observed(x, reference=y)",
            "bool(np.allclose(x, y)), reference=True",
        ),
        (
            "import numpy as np\nnp.testing.assert_allclose(x, [1, 2])",
            "return Observed(x, reference=np.array([1, 2]))",
            'np.testing.assert_allclose(x, [1, 2])\nreturn Observed("ran", reference="ran")',
        ),
    ],
)
def test_asserted_value_is_the_reference(text: str, expected: str, condition: str) -> None:
    """Or the condition, if both sides cannot be compared."""
    assert body(text) == expected
    assert condition in body(text, DraftOptions(as_conditions=True))


def test_several_assertions_become_two_lists() -> None:
    """Values are appended in place of the assertions; prints are not observed."""
    text = "x = 1\nassert x == 1\nprint(x)\nx = 2\nassert x == 2, 'no'\n"
    lines = body(text).split("\n")
    assert lines[:3] == ["seen = []", "expected = []", "x = 1"]
    assert lines[3:5] == ["seen.append(x)", "expected.append(1)"]
    assert lines[-1] == "return Observed(seen, reference=expected)"
    assert not any("print" in line for line in lines)


def test_case_has_the_widest_tolerances_of_the_script() -> None:
    """Both `rtol` and `atol`."""
    text = "import numpy as np\nnp.testing.assert_allclose(x, 1.0, rtol=1e-3, atol=1e-5)\n"
    one = made(text)
    assert one is not None
    assert one.tolerances == {"rtol": 1e-3, "atol": 1e-5}


JITTED = "import jax\n\n\n@jax.jit\ndef f(x):\n    return x\n\n\n"


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("print(f(1))", "return Program(f, args=(1,))"),
        ("print(float(f(x, 1)))", "return Program(f, args=(x, 1))"),
        ("f(x).block_until_ready()", "return Program(f, args=(x,))"),
        ("y = f(x, k=2)\nprint(y)", 'return Program(f, args=(x,), kwargs={"k": 2})'),
        ("assert f(x) == 3", "return Program(f, args=(x,), reference=3)"),
        ("print(jax.jit(g)(x))", "return Program(jax.jit(g), args=(x,))"),
        ("print(jax.shard_map(g, m)(x))", "return Program(jax.shard_map(g, m), args=(x,))"),
    ],
)  # fmt: skip
def test_call_of_a_staged_function_becomes_a_program(last: str, expected: str) -> None:
    """With its arguments, so that the harness can observe each stage."""
    assert body(JITTED + last, PROGRAM).endswith(f"\n{expected}")


@pytest.mark.parametrize(
    "last",
    [
        "print(f(1).shape)",
        "print(f(1), f(2))",
        "print(f(*x))",
        "print(g(1))",
        "print(jax.jit(g, static_argnums=0)(1))",
        "print(jax.vmap(g)(x))",
        "with m:\n    print(f(1))",
        "f = 1\nprint(f(1))",
        "y = f(x)\nprint(y, y.dtype)",
        "assert f(1) > 0",
    ],
)
def test_other_scripts_are_no_programs(last: str) -> None:
    """They become probes."""
    assert made(JITTED + last, PROGRAM) is None
    assert made(JITTED + last) is not None


def test_proposed_reference_has_a_comment() -> None:
    """The comment asks for a review."""
    text = body("x = 1\nprint(x)", reference="np.float32(1.0)", note="Proposed: look.")
    assert text == "x = 1\n# Proposed: look.\nreturn Observed(x, reference=np.float32(1.0))"
    one = make_draft(script("print(x)"), DraftOptions(), "np.float32(1.0)")
    assert one is not None
    assert one.outer == {"np": "import numpy as np"}


def test_values_that_are_no_arrays_are_observed_as_text() -> None:
    """Or by their type."""
    text = "print(x, y)\n"
    assert body(text, DraftOptions(as_text=frozenset({1}))) == "return Observed((x, str(y)))"
    assert (
        body(text, DraftOptions(as_type=frozenset({0}))) == "return Observed((type(x).__name__, y))"
    )


MAPPED = """\
import jax
from jax.experimental.shard_map import shard_map
from jax.sharding import Mesh, PartitionSpec as P

mesh = Mesh(jax.devices()[:4], ("x",))
f = shard_map(g, mesh, P("x"), out_specs=P("x"), check_rep=False)
print(f(x).sum())
"""


def test_compat_replaces_shard_map_and_meshes() -> None:
    """Without `env.compat` only the mesh is replaced."""
    assert 'mesh = env.mesh(4, ("x",))' in body(MAPPED)
    assert "    from" not in body(MAPPED)
    assert body(MAPPED).startswith("from jax.experimental.shard_map import shard_map")
    bridged = body(MAPPED, COMPAT)
    assert bridged.startswith("mesh = ")
    call = 'env.compat.shard_map(g, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check=False)'
    assert call in bridged


@pytest.mark.parametrize(
    ("mesh", "expected"),
    [
        ("Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ('a', 'b'))",
         "env.mesh((2, 2), ('a', 'b'))"),
        ("Mesh(np.asarray(jax.devices()), ('a',))", "env.mesh(len(env.devices), ('a',))"),
        ("Mesh(np.array(jax.devices()).reshape(-1, 2), 'ab')",
         "Mesh(np.array(env.devices).reshape(-1, 2), 'ab')"),
        ("jax.make_mesh((4,), ('a',))", "jax.make_mesh((4,), ('a',))"),
    ],
)  # fmt: skip
def test_mesh_of_the_first_devices_becomes_env_mesh(mesh: str, expected: str) -> None:
    """Other meshes stay."""
    text = f"import jax\nimport numpy as np\nfrom jax.sharding import Mesh\nprint({mesh})\n"
    assert f"Observed({expected})" in body(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import jax\nwith jax.set_mesh(m):\n    print(1 + 1)", "with env.compat.set_mesh(m):"),
        ("import jax\nprint(jax.lax.pvary(x, 'x'))", "env.compat.pvary(x, 'x')"),
        ("from jax.experimental import enable_x64\nwith enable_x64():\n    print(x)",
         "with env.compat.enable_x64():"),
    ],
)  # fmt: skip
def test_compat_replaces_other_functions(text: str, expected: str) -> None:
    """Each has the same arguments."""
    assert expected in body(text, COMPAT)


@pytest.mark.parametrize(
    "text",
    [
        "import jax\nprint(jax.tree_map(f, x))",
        "from jax.experimental.shard_map import shard_map\nprint(shard_map(f, m, a, b, auto=c)(x))",
        "import jax\njax.set_mesh(m)\nprint(x)",
        "import jax\ng = jax.shard_map\nprint(g(f, mesh=m, in_specs=a, out_specs=b)(x))",
    ],
)
def test_compat_does_not_replace_other_arguments(text: str) -> None:
    """There is no such draft."""
    assert made(text, COMPAT) is None


def test_imports_that_may_fail_are_in_the_function() -> None:
    """Other cases of the file must not fail with them."""
    one = made(
        "import functools\nimport jax\nimport jax.numpy as jnp\nfrom jax import tree_map\n"
        "from flax import nnx\nimport jax.extend.core\n"
        "print(tree_map(functools.partial(f, nnx), jnp.ones(3)))\n"
    )
    assert one is not None
    assert set(one.outer.values()) == {"import functools", "import jax.numpy as jnp"}
    assert one.inner == (
        "from jax import tree_map",
        "from flax import nnx",
        "import jax.extend.core  # noqa: F401",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('if __name__ == "__main__":\n    # why\n    print(x)\n', "# why\nreturn Observed(x)"),
        ("def main():\n    y = 1\n    print(y)\n\n\nmain()\n", "y = 1\nreturn Observed(y)"),
        ("def main():\n    print(y)\n\nif __name__ == '__main__':\n    main()\n",
         "return Observed(y)"),
        ("def main():\n    def f():\n        return 1\n    print(f())\nmain()\n",
         "def f():\n    return 1\nreturn Observed(f())"),
        ("try:\n    f()\nexcept TypeError as e:\n    print(e)\n", "return Observed(f())"),
        ("count = 0\ndef f():\n    global count\n    count += 1\nf()\nprint(count)\n",
         "count = 0\ndef f():\n    nonlocal count\n    count += 1\nf()\nreturn Observed(count)"),
    ],
)  # fmt: skip
def test_script_is_flattened(text: str, expected: str) -> None:
    """Without a guard, a `main` function, or a handler that only prints."""
    assert body(text) == expected


def test_prints_of_untraced_functions_are_observed() -> None:
    """Functions that jax may trace keep their prints."""
    plain = "def show(x):\n    print(x)\n\n\nshow(1)\nshow(2)\n"
    assert "    seen.append(x)" in body(plain)
    traced = "import jax\ndef show(x):\n    print(x)\n    return x\n\n\nprint(jax.jit(show)(2))\n"
    assert "    print(x)" in body(traced)
    one = made(traced)
    assert one is not None
    assert one.unobserved_prints == 1


@pytest.mark.parametrize(
    "text",
    [
        "x = 3\nprint(x, 'and', x + 1)\n",
        "def f(n):\n    return [n] * n\nfor n in range(3):\n    print(f(n))\n",
        's = """a\n  b\n c"""\nprint(s)\nprint(f"""{s}\n  end""")\n',
        "import math\nclass A:\n    def c(x):\n        return math.exp(2)\nprint(A().c())\n",
        "x = 1\nif x:\n    # here\n    print(x)\nelse:\n    print(2 * x)\n",
        "from functools import partial\nadd = partial(max, 1)\nprint(add(2))\nprint(add(3))\n",
        "def main():\n    s = 0\n    for n in (1, 2):\n        s += n\n    print(s)\nmain()\n",
        "try:\n    x = {}['a']\nexcept KeyError as e:\n    print('no', e)\nprint(1 + 1)\n",
    ],
)  # fmt: skip
def test_case_observes_the_printed_values(text: str) -> None:
    """Runs both, and compares."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(text, {"__name__": "__main__"})  # noqa: S102 - a script of this file
    one = made(text)
    assert one is not None
    code = render_case(one, "case", Declarations(doc="What it does.")).partition("\n")[2]
    scope: dict[str, Any] = {"Observed": Observed}
    exec("\n".join([*one.outer.values(), code]), scope)  # noqa: S102 - see above
    seen = scope["case"](None).value
    printed = [str(leaf) for leaf in _leaves(seen)]
    assert all(leaf in out.getvalue() for leaf in printed)
    assert len(printed) >= out.getvalue().strip().count("\n") - text.count('"""')


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [leaf for one in value for leaf in _leaves(one)] if value else [value]
    return [value]


def test_docstring_of_a_case_is_quoted() -> None:
    """It may contain quotes and backslashes."""
    one = made('"""Say \\"so\\" \\\\ and \'\'\' no more"""\nprint(1 + 1)\n')
    assert one is not None
    doc = 'Say "so" \\ and """ no more'
    (function,) = ast.parse(render_case(one, "case", Declarations(doc=doc))).body
    assert isinstance(function, ast.FunctionDef)
    assert ast.get_docstring(function) == doc.replace('"""', "'''") + "."


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        (
            "from jax.numpy import *\nprint(ones(3))",
            "import *: not allowed in a function",
        ),
        ("from .beside import f\nprint(f())", "has a relative import"),
        ("def program():\n    pass\nprint(program())", "binds program, which a case needs"),
    ],
)
def test_scripts_that_cannot_become_a_function_are_refused(text: str, expected_text: str) -> None:
    """The message has the remedy."""
    with pytest.raises(UsageError, match=r"^report\.py: ") as caught:
        script(text)
    assert expected_text in str(caught.value)
