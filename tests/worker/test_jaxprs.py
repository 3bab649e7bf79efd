"""Jaxprs as plain data, on an old and on the newest release."""

from __future__ import annotations

import json
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from conformance.ir.jaxpr import parse
from tests.ir.jaxpr.writing import print_module
from tests.workbench import python_of

if TYPE_CHECKING:
    from conformance.ir.graph import Instruction
    from tests.workbench import Bench

pytestmark = pytest.mark.cell
TOP = """
    import jax, jax.numpy as jnp
    from jax import lax
    from jax.sharding import NamedSharding, PartitionSpec as P
    X = np.float32([1, 2, 3])
    named = lambda env, axes: NamedSharding(env.mesh((1, 1), axes), P(axes))
"""


def text_of(bench: Bench, program: str, decorator: str = "program()") -> str:
    """Return the document of a program's jaxpr."""
    finished = bench.run(f"return Program({program})", decorator, TOP)
    assert "no_jaxpr" not in finished.blobs, finished.blobs["no_jaxpr"]
    return finished.blobs["jaxpr"].decode()


def ops_of(bench: Bench, program: str, decorator: str = "program()") -> dict[str, Instruction]:
    """Return every instruction of a program, by its op."""
    module = parse(text_of(bench, program, decorator))
    assert not module.not_understood, print_module(module)
    return {instruction.op: instruction for instruction in module.walk()}


def test_an_equation_has_its_source(bench: Bench) -> None:
    """The user's innermost line, not the kit's, and the name stack."""
    program = "jax.named_scope('inner')(lambda x: jnp.sin(x)), (X,)"
    sine = ops_of(bench, program)["sin"]
    assert sine.origin.file.endswith("family/topic.py")
    assert sine.origin.name == "inner"
    assert sine.origin.line > 1


def test_the_source_skips_frames_of_the_kit(bench: Bench) -> None:
    """`env.compat` calls jax, and is no line of the user."""
    program = """env.compat.shard_map(lambda x: lax.psum(env.compat.pvary(x, "x"), "x"),
        mesh=env.mesh(2, "x"), in_specs=P(), out_specs=P()), (X,)"""
    ops = ops_of(bench, program, "program(devices=2)")
    (pvary,) = (ops[name] for name in ("pvary", "pbroadcast") if name in ops)
    assert pvary.origin.file.endswith("family/topic.py")
    assert ops["shard_map"].attributes["mesh"] == ("mesh", ("x", 2))


KERNEL = """
    import dataclasses
    try:
        from jax.extend.core import Primitive
    except ImportError:
        from jax.core import Primitive
    kernel_p = Primitive("kernel")
    kernel_p.def_abstract_eval(lambda x, *, info: x)
    Info = dataclasses.make_dataclass("Info", ["name", "src_info"], frozen=True)
"""


def test_a_kernel_does_not_name_its_file(bench: Bench) -> None:
    """The line of a kernel is no parameter: it changes with every edit, and names a folder.

    Pallas keeps it in a parameter up to 0.5.2.
    """
    program = "Program(lambda x: kernel_p.bind(x, info=Info('k', 'at /home/topic.py:3')), (X,))"
    finished = bench.run(f"return {program}", "program()", TOP + KERNEL)
    module = parse(finished.blobs["jaxpr"].decode())
    (kernel,) = (one for one in module.walk() if one.op == "kernel")
    assert kernel.attributes["info"] == ("Info", ("name", "k"))


@pytest.mark.long(keep=4)
@pytest.mark.parametrize(
    ("constant", "value"),
    [
        ("np.int32([[1, 2], [3, 4]])", (1, 2, 3, 4)),
        ("np.array([jnp.inf, -jnp.inf, jnp.nan, -0.0], np.float32)", ("inf", "-inf", "nan", -0.0)),
        ("np.array([1 + 2j], np.complex64)", (("complex", 1.0, 2.0),)),
        ("np.array([True, False])", (True, False)),
        ("jnp.array([1.5], jnp.bfloat16)", (1.5,)),
        ("np.arange(64)", tuple(range(64))),
    ],
)
def test_constants_have_their_values(bench: Bench, constant: str, value: Any) -> None:
    """Up to 64 elements one by one."""
    found = ops_of(bench, f"lambda x: (x, {constant} + jnp.zeros((), int)), (X,)")["constant"]
    assert repr(found.attributes["value"]) == repr(value)


def test_large_constants_are_hashed(bench: Bench) -> None:
    """The same bytes, the same hash."""
    program = "lambda x: x[0] + np.arange(65, dtype='f4'), (X,)"
    value = ops_of(bench, program)["constant"].attributes["value"]
    assert value == f"sha256:{sha256(np.arange(65, dtype='<f4').tobytes()).hexdigest()}"


def test_literals_are_rounded_to_their_type(bench: Bench) -> None:
    """`0.1` is an f32 where it is used as one."""
    literal = ops_of(bench, "lambda x: x * 0.1, (X,)")["literal"]
    assert literal.attributes["value"] == pytest.approx(0.1, rel=1e-7)
    assert literal.attributes["value"] != 0.1


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("program", "op", "expected"),
    [
        ("lambda x: x.astype(jnp.bfloat16), (X,)", "convert_element_type", {"new_dtype": "bf16"}),
        ("lambda x: jnp.fft.fft(x), (X,)", "fft", {"fft_type": "FFT", "fft_lengths": (3,)}),
        ("lambda x: x.at[jnp.array([0, 2])].get(mode='clip'), (X,)", "gather", {"mode": "CLIP"}),
        ("lambda x: jax.random.key(0), (X,)", "random_seed", {"impl": "fry"}),
        ("lambda x: lax.cumsum(x, reverse=True), (X,)", "cumsum", {"axis": 0, "reverse": True}),
        (
            "lambda x: lax.with_sharding_constraint(x, named(env, ('a', 'b'))), (X,)",
            "sharding_constraint",
            {"sharding": ("sharding", ("mesh", ("a", 1), ("b", 1)), (("a", "b"),), None)},
        ),
    ],
)
def test_parameters_are_plain_data(
    bench: Bench, program: str, op: str, expected: dict[str, Any]
) -> None:
    """Dtypes, enums, keys, meshes and specs."""
    attributes = ops_of(bench, program)[op].attributes
    found = {name: attributes[name] for name in expected}
    if "sharding" in found:  # the default memory is named on some releases
        found["sharding"] = (*found["sharding"][:3], None)  # type: ignore[index]
    assert found == expected


def test_inner_jaxprs_are_stored_once(bench: Bench) -> None:
    """Also if called twice, from any primitive."""
    program = """lambda x: lax.cond(x[0] > 0, jax.nn.relu, lambda x: lax.fori_loop(
        0, 3, lambda i, c: c + jnp.linalg.solve(jnp.eye(3), c), x), jax.nn.relu(x)), (X,)"""
    document = json.loads(text_of(bench, program))
    module = parse(json.dumps(document))
    assert len(document["jaxprs"]) == len(module.find_reachable())
    roles = {role for instruction in module.walk() for role, _ in instruction.bodies}
    assert {"branch 0", "branch 1", "jaxpr", "call_jaxpr", "vecmat"} <= roles


def test_effects_and_context_are_parameters(bench: Bench) -> None:
    """E.g. the order of an equation, and where it is computed."""
    program = """lambda x: (jax.debug.print("{}", x), env.compat.compute_on(jnp.sin)(x)), (X,)"""
    text = text_of(bench, program)
    assert "device_host" in text
    found = [i for i in parse(text).walk() if "ctx effects" in i.attributes]
    assert all("Effect" in str(i.attributes["ctx effects"]) for i in found)
    assert found


SCRIPT = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import sys
sys.path.insert(0, sys.argv[1])
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
from conformance.kit import compat
from conformance.worker.jaxprs import encode_jaxpr
mesh = Mesh(np.array(jax.devices()).reshape(1, 2, 2), ("a", "b", "c"))
f = compat.shard_map(lambda x: jax.nn.relu(jax.lax.psum(x, ("b", "c"))), mesh=mesh,
                     in_specs=P(("a", "b", "c")), out_specs=P(), check=False)
print(encode_jaxpr(jax.jit(f).trace(np.ones(4)).jaxpr))
"""


def test_the_document_is_the_same_in_every_process(bench: Bench) -> None:
    """Sets are sorted, addresses removed."""
    python = python_of(bench.planned)
    said = [
        subprocess.run(
            [python, "-c", SCRIPT, str(Path(__file__).resolve().parents[2])],
            env={"PYTHONHASHSEED": seed, "JAX_PLATFORMS": "cpu"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert "0x" not in said[0]
