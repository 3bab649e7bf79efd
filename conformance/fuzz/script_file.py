"""A finding as a script that runs on any release of jax without the harness. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from conformance.fuzz.batches import DEVICES
from conformance.fuzz.comparison import Kind
from conformance.fuzz.evaluation import NUMPY, PROCESS, RELEASE
from conformance.fuzz.program import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.fuzz.finding import Finding

MODES: Final = {
    "jit": "result = jax.jit(function)(*args)",
    "plain": "other = jax.jit(function)(*args)",
    "eager": "other = function(*map(jnp.asarray, args))",
    "vmap": """\
mapped = jax.jit(jax.vmap(function))(*(arg[None] for arg in args))
other = jax.tree_util.tree_map(lambda leaf: leaf[0], mapped)""",
    "sharded": """\
def shard(arg):
    axes = [None] * arg.ndim
    for axis, extent in enumerate(arg.shape):
        if extent and extent % len(jax.devices()) == 0:
            axes[axis] = "devices"
            break
    spec = jax.sharding.PartitionSpec(*axes)
    return jax.device_put(arg, jax.sharding.NamedSharding(mesh, spec))
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("devices",))
other = jax.jit(function)(*map(shard, args))""",
    "remat": "other = jax.jit(jax.checkpoint(function))(*args)",
    "export": """\
from jax import export
exported = export.export(jax.jit(function))(*args)
other = export.deserialize(exported.serialize()).call(*args)""",
}
"""Statements that run a program in each mode of `conformance.fuzz.inside.batch`."""
TITLES: Final = {
    "jit": "jit", "plain": "without the launch", "eager": "eager", "vmap": "vmap of one element",
    "sharded": "sharded arguments", "remat": "jax.checkpoint", "export": "exported and loaded",
    NUMPY: "NumPy",
}  # fmt: skip
"""The other way to run a program, as a script prints it and a report names it."""
_PRINTED: Final = {
    str(Kind.WEAK_TYPE): "[leaf.weak_type for leaf in jax.tree_util.tree_leaves({value})]",
    str(Kind.DTYPE): "[str(leaf.dtype) for leaf in jax.tree_util.tree_leaves({value})]",
    str(Kind.SHAPE): "[leaf.shape for leaf in jax.tree_util.tree_leaves({value})]",
    str(Kind.SHARDING): "[[str(shard.index) for shard in leaf.addressable_shards]"
    " for leaf in jax.tree_util.tree_leaves({value})]",
}
"""What a script prints in addition to the result, by the kind of the difference."""
_MESH: Final = re.compile(r"jax\.devices\(\)|make_mesh")


def render_script(finding: Finding) -> str:
    """Return a finding as a script.

    It prints the version of jax to standard error, so that its output is equal on releases that
    agree. An error ends it.

    Args:
        finding: The finding.
    """
    head, *statements = _render(finding)
    body = "\n".join(statements)
    for line in HEAD.splitlines():
        name = line.split()[-1]
        if name != "jax" and not re.search(rf"\b{name}\.", body):
            body = body.replace(f"{line}\n", "", 1)
    return f"{head}\n{body}\n"


def describe_root(finding: Finding) -> str:
    """Return what differs, in a phrase: kind, operations and transforms."""
    around = f" under {', '.join(finding.transforms)}" if finding.transforms else ""
    return f"{finding.kind}: {', '.join(finding.operations)}{around}"


def _render(finding: Finding) -> Iterator[str]:
    releases = f", jax {', '.join(finding.releases)}" if finding.releases else ""
    yield f'"""{describe_root(finding)}{releases}."""'
    yield "import os"
    if _MESH.search(finding.script) or finding.oracle == "sharded":
        yield f'os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count={DEVICES}"'
    yield 'os.environ["JAX_PLATFORMS"] = "cpu"'
    if finding.x64:
        yield 'os.environ["JAX_ENABLE_X64"] = "1"'
    yield "import sys"
    yield finding.script.rstrip()
    if finding.x64:
        yield "np.set_printoptions(precision=17)"
    yield 'print("jax", jax.__version__, file=sys.stderr)'
    launched = "def launch(" in finding.script
    yield "result = launch(function, args)" if launched else MODES["jit"]
    if finding.oracle in {RELEASE, PROCESS}:
        yield "print(result)"
        yield from _print_kind(finding, "result")
        return
    yield f'print("{TITLES["jit"]}:", result)'
    yield from _print_kind(finding, "result")
    if finding.oracle == NUMPY:
        yield finding.twin.removeprefix("import numpy as np\n").strip()
        yield from _WIDEN
    else:
        yield MODES[finding.oracle]
    yield f'print("{TITLES[finding.oracle]}:", other)'
    yield from _print_kind(finding, "other")


_WIDEN: Final = (
    "def widen(arg):",
    "    if jnp.issubdtype(arg.dtype, jnp.complexfloating):",
    '        return arg.astype("complex128")',
    '    return arg.astype("float64") if jnp.issubdtype(arg.dtype, jnp.floating) else arg',
    'with np.errstate(all="ignore"):',
    "    other = reference(*map(widen, args))",
)


def _print_kind(finding: Finding, value: str) -> Iterator[str]:
    if finding.kind in _PRINTED:
        yield f"print({_PRINTED[finding.kind].format(value=value)})"
