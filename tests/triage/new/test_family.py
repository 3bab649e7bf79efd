"""Which family a script belongs to."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from conformance.triage.new.family import chosen, fits, uses
from tests.projects import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SCRIPTS = ROOT / "benchmarks" / "behaviour_changes" / "scripts"
NEIGHBOURS = {"donation.py", "pod_training.py"}
"""Topics that are about what two families are about."""


def used(file: Path) -> frozenset[str]:
    """Return what a file uses, with the helpers it takes."""
    text = file.read_text()
    helpers = file.with_name("_helpers.py")
    own = uses(ast.parse(text))
    return own | uses(ast.parse(helpers.read_text())) if "_helpers" in text else own


FAMILIES = {
    folder.name: {file: used(file) for file in sorted(folder.glob("[!_]*.py"))}
    for folder in sorted((ROOT / "cases").iterdir())
    if folder.is_dir()
}
TOPICS = [file for files in FAMILIES.values() for file in files if file.name not in NEIGHBOURS]


@pytest.mark.parametrize("file", TOPICS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_topic_is_of_its_family(file: Path) -> None:
    """Told by the others alone."""
    others = {
        family: [names for other, names in files.items() if other != file]
        for family, files in FAMILIES.items()
    }
    found = chosen(fits(used(file), others))
    assert found is not None
    assert found.family == file.parent.name


@pytest.mark.parametrize(
    ("script", "family"),
    [
        ("while_loop_in_shard_map", "shard_map_while"),
        ("lower_through_wrapper", "aot_placement"),
        ("shardy_annotations", "aot_placement"),
        ("flax_list_of_layers", "nnx_vmap_while"),
        ("tree_map", ""),
        ("clip_a_min", ""),
        ("threefry_streams", ""),
        ("make_mesh_explicit", ""),
    ],
)
def test_scripts(script: str, family: str) -> None:
    """Of what no family is about, none is named."""
    families = {name: list(files.values()) for name, files in FAMILIES.items()}
    found = chosen(fits(used(SCRIPTS / f"{script}.py"), families))
    assert (found.family if found else "") == family
    assert found is None or found.reason.startswith("its cases use ")


def test_without_families_none_is_meant() -> None:
    """Nothing is divided by nothing."""
    assert chosen(fits(frozenset({"scan"}), {})) is None
