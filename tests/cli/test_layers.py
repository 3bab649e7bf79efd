"""`conformance layers` on real releases: what it records, repeats and concludes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.projects import HEAD

if TYPE_CHECKING:
    from tests.projects import Ending, Project

CASES = f"""\
{HEAD}
import jax
import jax.numpy as jnp
import jaxlib
from jax.sharding import NamedSharding, PartitionSpec as P

X = np.float32([0.5, 2.0, -3.0, 1.5])
SQUARE = np.float32([[4.0, 1.0], [1.0, 3.0]])


@program(devices=1)
def permuted(env):
    "Its random bits changed with 0.5.0 in the lowering: a flag is on by default."
    return Program(lambda key: jax.random.permutation(key, 8), args=(jax.random.PRNGKey(0),))


@program(devices=1)
def rounded(env):
    "A change of the function itself: other operations are traced."
    newer = env.cell.release >= "0.6.2"
    return Program(lambda x: jnp.floor(x) if newer else jnp.ceil(x), args=(X,))


@probe(devices=4)
def many(env):
    "Devices, collectives, LAPACK, keys, donated arguments, repeated calls; equal everywhere."
    mesh = env.mesh((2, 2), ("a", "b"))
    spread = jax.device_put(np.arange(16.0).reshape(4, 4), NamedSharding(mesh, P("a", "b")))
    summed = jax.jit(lambda x: (x @ x.T).sum(0), out_shardings=NamedSharding(mesh, P("a")))
    shards = env.compat.shard_map(
        lambda x: jax.lax.psum(x, "a"), mesh=mesh, in_specs=P("a", "b"), out_specs=P(None, "b")
    )
    given = jax.jit(lambda x: x + 1, donate_argnums=0)(jnp.arange(4.0))
    values = [summed(spread), jax.jit(shards)(spread), jnp.linalg.cholesky(SQUARE), given]
    values += [jax.random.uniform(jax.random.key(1)), jnp.fft.fft(X), jnp.sort(X)]
    compiled, mapped = jax.jit(jnp.cos).lower(X).compile(), jax.pmap(jnp.tan)
    with jax.transfer_guard_device_to_host("disallow"):
        repeated = [fn(x * n) for n in (1, 2, 3) for fn, x in ((compiled, X), (mapped, SQUARE))]
    changed = np.float32(jaxlib.__version__ >= "0.6.2")
    return Observed([*map(np.asarray, values + repeated), changed])


@probe(devices=1, x64=True)
def uninitialised(env):
    "The XLA of 0.6.2 alone never writes the result (jax-ml/jax#29537)."
    result = jax.jit(lambda x: jnp.exp(x * jnp.nan))(np.ones(64))
    return Observed(np.isnan(result).all())


@probe(devices=1)
def called_back(env):
    newer = jaxlib.__version__ >= "0.6.2"
    shape = jax.ShapeDtypeStruct((4,), jnp.float32)
    host = jax.jit(lambda x: jax.pure_callback(np.sin, shape, x) * (2 if newer else 1))
    return Observed(np.asarray(host(X)))
"""
pytestmark = [pytest.mark.project({"cases/layers/topic.py": CASES}), pytest.mark.cell]


def find(project: Project, target: str, good: str, bad: str, *options: str) -> dict[str, Any]:
    """Return the answer of a search."""
    ending = run(project, target, good, bad, *options, "--json", "-")
    found: dict[str, Any] = ending.json
    return found


def run(project: Project, target: str, good: str, bad: str, *options: str) -> Ending:
    """Search for a layer."""
    ending = project.run("layers", target, "--good", good, "--bad", bad, *options)
    assert ending.code in {0, 1, 2}, ending.err
    return ending


@pytest.mark.long
def test_lowering_is_found_where_equal_jaxprs_become_other_modules(project: Project) -> None:
    """The StableHLO of each release, in the XLA of both."""
    found = find(project, "layers/permuted", "0.4.38", "0.5.0")
    assert found["verdict"] == "front end: lowering"
    assert [
        (row["producer"], row["compiler"], row["outcome"]) for row in found["table"]
    ] == [
        ("0.4.38", "0.4.38", "good"), ("0.4.38", "0.5.0", "good"),
        ("0.5.0", "0.4.38", "bad"), ("0.5.0", "0.5.0", "bad"),
    ]  # fmt: skip


@pytest.mark.long
def test_tracing_is_found_where_the_jaxprs_differ(project: Project) -> None:
    """The user's own code stands for that of jax."""
    assert find(project, "layers/rounded", "0.6.1", "0.6.2")["verdict"] == "front end: tracing"


@pytest.mark.long
def test_every_computation_is_repeated_bit_for_bit(project: Project) -> None:
    """Several devices, collectives, LAPACK, keys, donated arguments, repeated calls: none differs.

    The value that changes is not computed by XLA: it is about jaxlib, which is swapped.
    """
    found = find(project, "layers/many", "0.6.1", "0.6.2")
    assert found["computations"] == {"good": 19, "bad": 19}  # six of them repeated
    assert found["reason"] == "every computation gives the same result"
    assert found["verdict"] == "runtime"


@pytest.mark.long
def test_pass_of_the_compiler_is_found(project: Project) -> None:
    """By repeating the one computation, so that it may be that of a probe."""
    found = find(project, "layers/uninitialised", "0.6.1", "0.6.2")
    assert found["verdict"] == "compiler"
    assert found["passes"]["culprits"] == ["fusion"]
    assert found["passes"]["flags"] == {}


@pytest.mark.long
def test_callback_is_not_separable(project: Project) -> None:
    """The function of the host is in another process."""
    ending = run(project, "layers/called_back", "0.6.1", "0.6.2")
    assert ending.code == 1
    assert "layer: not separable (holds more than the host" in ending.out
    assert "jaxlib makes the difference" in ending.out


@pytest.mark.long
def test_script_is_recorded_as_it_is(project: Project) -> None:
    """Its own imports and prints; the values that it prints differ."""
    project.write(
        {"report.py": "import jax\nprint(jax.random.permutation(jax.random.PRNGKey(0), 8))\n"}
    )
    found = find(project, "report.py", "0.4.38", "0.5.0")
    assert found["verdict"] == "front end: lowering"


LOOKS_FOR_JAX = """\
from importlib.util import find_spec

assert find_spec("jax") is not None  # as libraries do for which jax is optional
import jax


def test_permutation():
    assert jax.random.permutation(jax.random.PRNGKey(0), 8)[0] == 4
"""


@pytest.mark.long
def test_test_is_recorded_as_a_program(project: Project) -> None:
    """An assertion is no error of jax: the computation that it reads decides."""
    project.write({"test_keys.py": LOOKS_FOR_JAX})
    found = find(project, "test_keys.py::test_permutation", "0.4.38", "0.5.0")
    assert found["computations"]["bad"] > 0
    assert found["verdict"] == "front end: lowering"


@pytest.mark.long
def test_equal_ends_are_an_error_of_usage(project: Project) -> None:
    """In a range they are a line of their own."""
    ending = run(project, "layers/permuted", "0.6.0", "0.6.1")
    assert ending.code == 2
    assert "are alike" in ending.err
    found = find(project, "layers/permuted", "0.4.38", "0.5.1", "--every")
    assert [(pair["good"], pair["verdict"]) for pair in found["pairs"]] == [
        ("0.4.38", "front end: lowering"), ("0.5.0", "no difference"),
    ]  # fmt: skip
