"""Derives the names of code that each line of the history is about.

    python benchmarks/history_touches.py [--write]

A line is about the names that its summary quotes, resolved by the public names of all releases; if
it quotes none, about those words of it that its first case uses. Prints how many lines have names,
and those that have none. `--write` writes them to the lines that declare none.
"""

from __future__ import annotations

import argparse
import json
import re
from typing import TYPE_CHECKING, Final

from common import ROOT, checkout_context
from history_commits import identify

from conformance.app.scan.api import load_api
from conformance.corpus.behaviour_changes import FILE_NAME, load_families
from conformance.golden.store import GoldenStore
from conformance.scan.signatures import parse_signature
from conformance.scan.touches import OPTION, Touch
from conformance.scan.uses import find_uses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.app.context import ProjectContext
    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.scan.api import Api, ApiName

ALIASES: Final = {
    "jnp": "jax.numpy",
    "lax": "jax.lax",
    "nn": "jax.nn",
    "random": "jax.random",
    "tree": "jax.tree",
    "tree_util": "jax.tree_util",
    "pl": "jax.experimental.pallas",
    "pallas": "jax.experimental.pallas",
    "pltpu": "jax.experimental.pallas.tpu",
    "checkify": "jax.experimental.checkify",
    "multihost_utils": "jax.experimental.multihost_utils",
    "jsp": "jax.scipy",
}
"""Modules by the names that summaries have for them."""
HOMES: Final = (
    "jax",
    "jax.lax",
    "jax.numpy",
    "jax.nn",
    "jax.random",
    "jax.sharding",
    "jax.scipy.special",
    "jax.scipy.linalg",
    "jax.scipy.sparse.linalg",
    "jax.numpy.linalg",
    "jax.numpy.fft",
    "jax.tree_util",
    "jax.export",
    "jax.experimental.shard_map",
    "jax.experimental.compute_on",
    "jax.experimental.checkify",
    "jax.experimental.pallas",
    "jax.experimental.pjit",
    "jax.experimental.xla_metadata",
    "jax.ad_checkpoint",
    "jax.stages",
    "jax.experimental.layout",
    "jax.errors",
)
"""Modules of names that a summary quotes alone, the likeliest first."""
WRAPPERS: Final = frozenset(
    {
        "jax.jit", "jax.vmap", "jax.grad", "jax.vjp", "jax.jvp", "jax.jacfwd", "jax.jacrev",
        "jax.hessian", "jax.linearize", "jax.linear_transpose", "jax.make_jaxpr", "jax.shard_map",
    }
)  # fmt: skip
"""Functions around the one that changes: they are touched where a summary quotes no other name."""
_QUOTED: Final = re.compile(r"`([\w.]+)")
_OPTION: Final = re.compile(r"jax_[a-z0-9_]+")
FAMILIES: Final = {
    "pallas_kernels": ("jax.experimental.pallas.pallas_call",),
    "pmap_to_jit": ("jax.pmap",),
}
"""Names that each case of a family is about."""
_CLASS: Final = re.compile(r"[A-Z][a-z]+[A-Z]\w+|Mesh")
_WORD: Final = re.compile(r"\w+")
COMMON: Final = frozenset(
    {"jax.numpy.array", "jax.numpy.asarray", "jax.numpy.arange", "jax.numpy.ones", "jax.Array"}
)
"""Names that nearly every case uses, for its inputs."""


def main() -> None:
    """Derive the names of all lines, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    context = checkout_context()
    api = load_api(context, GoldenStore(context.project.cases), [*context.releases.versions])
    found: dict[tuple[str, str, str], tuple[Touch, ...]] = {}
    total = 0
    for family in load_families(ROOT / "cases").values():
        for change in family.change:
            total += 1
            if change.touches:
                found[identify(change)] = ()
            elif touches := find_touches(context, change, api):
                found[identify(change)] = touches
            else:
                print(f"{change.shown_at:8} {change.cases[0]}: {change.summary}")
    print(f"{len(found)} of {total} lines are about names")
    if options.write:
        write_touches({key: touches for key, touches in found.items() if touches})


def find_touches(context: ProjectContext, change: BehaviourChange, api: Api) -> tuple[Touch, ...]:
    """Return the names that a change is about."""
    family = change.cases[0].partition("/")[0]
    quoted = list(dict.fromkeys(_QUOTED.findall(change.summary)))
    options = [Touch(name=f"{OPTION}{text}") for text in quoted if _OPTION.fullmatch(text)]
    found = {text: name for text in quoted if (name := find_name(text, api)) is not None}
    parameters = {one for name in found.values() for one in list_parameters(name, api)}
    # A name alone may be a parameter of another name, such as `axis` or `dtype`.
    names = {
        text: str(name)
        for text, name in found.items()
        if "." in text or text not in parameters or len(found) == 1
    }
    inner = [name for name in names.values() if name not in WRAPPERS]
    keywords = frozenset(text for text in quoted if text in parameters and text not in names)
    if not inner:
        words = {*_WORD.findall(change.summary)}
        classes = (find_name(word, api) for word in sorted(words) if _CLASS.fullmatch(word))
        inner = [str(name) for name in classes if name is not None] or [
            name for name in list_used(context, change, api)
            if name.rpartition(".")[2] in words and name not in WRAPPERS | COMMON
        ]  # fmt: skip
        keywords = frozenset()
    inner = inner or [*names.values()] or [name for name in FAMILIES.get(family, ()) if name]
    touched = dict.fromkeys(inner)
    return (*options, *(Touch(name=name, arguments=keywords) for name in touched))


def find_name(text: str, api: Api) -> ApiName | None:
    """Return the public name that a quoted text means, None if it is none."""
    head, _, rest = text.partition(".")
    places = [f"{ALIASES.get(head, head)}.{rest}"] if rest else [f"{home}.{text}" for home in HOMES]
    for place in places:
        found = api.resolve(place)
        if found is not None and (found[0].name or rest):
            return found[0]
    return None


def list_parameters(name: ApiName, api: Api) -> Iterator[str]:
    """Yield the parameters that a name has in any release."""
    for release in api.releases:
        signature = parse_signature(api.get_signature(name, release))
        if signature is not None:
            yield from (one.name for one in signature.parameters)


def list_used(context: ProjectContext, change: BehaviourChange, api: Api) -> list[str]:
    """Return the public names that the first case of a change uses."""
    case = context.select_cases([change.cases[0]])[0]
    last = case.line + case.code.count("\n")
    module = find_uses(case.file.read_text(), "case", is_package=False, packages=["jax"])
    used = [
        found[0]
        for use in module.uses
        if case.line - 30 <= use.line <= last
        for name in use.names
        if (found := api.resolve(name)) is not None
    ]
    return list(dict.fromkeys(str(name) for name in used if name.name))


def write_touches(found: dict[tuple[str, str, str], tuple[Touch, ...]]) -> None:
    """Write names to the lines of the history, after their other fields."""
    for family, declared in load_families(ROOT / "cases").items():
        file = ROOT / "cases" / family / FILE_NAME
        blocks = file.read_text().split("[[change]]\n")
        for number, change in enumerate(declared.change, 1):
            if touches := found.get(identify(change)):
                text = json.dumps([str(touch) for touch in touches])
                block = blocks[number].rstrip("\n")
                blocks[number] = f"{block}\ntouches = {text}\n\n"
        file.write_text("[[change]]\n".join(blocks).rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
