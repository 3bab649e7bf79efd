"""The family of a script."""

from __future__ import annotations

import ast
from functools import cache, partial
from typing import TYPE_CHECKING

import pytest

from conformance.errors import UsageError
from conformance.triage.new.family import (
    UsedNames,
    choose_family,
    collect_used_names,
    guess_family,
    rank_families,
)
from conformance.triage.new.placement import ABOUT_TIME, find_placement, read_used_names
from tests.projects import ROOT
from tests.shipped import CASES, FAMILY_NAMES

if TYPE_CHECKING:
    from pathlib import Path

TABLES = {"api_removals", "extensions", "scipy_functions", "zero_size_arrays"}
"""Families whose topics have no subject in common."""
SCRIPTS = ROOT / "benchmarks" / "behaviour_changes" / "scripts"


def used(file: Path) -> frozenset[str]:
    """Return the names that a file and its helpers use."""
    helpers = file.with_name("_helpers.py")
    helped = [helpers] if "_helpers" in file.read_text() else []
    return read_used_names(file).union(*map(read_used_names, helped)).typical


@cache
def load_used_names() -> dict[str, dict[Path, frozenset[str]]]:
    """Return the names that each topic uses, by family and file."""
    return {
        family: {file: used(file) for file in sorted((CASES / family).glob("[!_]*.py"))}
        for family in FAMILY_NAMES
        if family not in ABOUT_TIME
    }


def test_topics_are_matched_to_their_family() -> None:
    """By the other topics: nearly always among the first three families, mostly as the first.

    Names do not distinguish families with the same subject, such as loops within `shard_map`: then
    no family is chosen, or a neighbour.
    """
    topics = [
        (name, file)
        for name, files in load_used_names().items()
        for file in files
        if len(files) > 1 and name not in TABLES
    ]
    places, sure, right = [], 0, 0
    for family, topic in topics:
        others = {
            name: left
            for name, files in load_used_names().items()
            if (left := [names for file, names in files.items() if file != topic])
        }
        found = rank_families(load_used_names()[family][topic], others)
        places.append([match.family for match in found].index(family))
        if (match := choose_family(found)) is not None:
            sure += 1
            right += match.family == family
    assert sum(place < 3 for place in places) >= 0.93 * len(topics)
    assert sum(place == 0 for place in places) >= 0.7 * len(topics)
    assert right >= 0.85 * sure
    assert sure >= 0.6 * len(topics)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("script", "family"),
    [
        ("while_loop_in_shard_map", "shard_map_while"),
        ("flax_list_of_layers", "nnx_and_ecosystem"),
        ("clip_a_min", "api_removals"),
        ("threefry_streams", "prng"),
        ("make_mesh_explicit", "sharding_in_types"),
        ("tree_map", ""),
    ],
)
def test_scripts_are_matched_to_families(script: str, family: str) -> None:
    """A script of another subject has none."""
    families = {name: list(files.values()) for name, files in load_used_names().items()}
    found = choose_family(rank_families(used(SCRIPTS / f"{script}.py"), families))
    assert (found.family if found else "") == family
    assert found is None or found.reason.startswith("its cases use ")


@pytest.mark.parametrize(
    "line",
    [
        "print(jax.__version__, jax.devices()[0].platform)",
        'jax.config.update("jax_enable_x64", True)',
        "jax.config.jax_debug_nans = True",
        "jax.print_environment_info()",
        "jax.block_until_ready(jax.numpy.ones(3)).block_until_ready()",
    ],
)
def test_settings_and_environment_do_not_count(line: str) -> None:
    """They are not the subject of a program."""
    assert collect_used_names(ast.parse(f"import jax\n{line}")) == UsedNames()


def test_uncertain_family_is_a_guess() -> None:
    """It must be ahead of the others."""
    families = {name: list(files.values()) for name, files in load_used_names().items()}
    script = "import jax\nfrom einops import a\njax.numpy.clip(a, a_min=0, a_max=1).round(3)"
    found = rank_families(collect_used_names(ast.parse(script)).typical, families)
    assert choose_family(found) is None
    guess = guess_family(found)
    assert guess is not None
    assert guess.family == "api_removals"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("line", "family"),
    [
        ("print(jnp.trunc(jnp.arange(3)))", "numerics"),
        ("print(jnp.meshgrid(jnp.arange(2), None))", "api_removals"),
        ("print(jnp.zeros(3, jnp.int8))", ""),
    ],
)
def test_script_of_jax_numpy_alone_gets_a_guess(line: str, family: str) -> None:
    """By functions, not by constructors of arrays."""
    tree = ast.parse(f"import jax.numpy as jnp\n{line}")
    place = partial(
        find_placement, CASES, tree, stem="script", family="", topic="reported", name=""
    )
    names = collect_used_names(tree).typical
    assert rank_families(names, {"loops": [frozenset({"scan"})]})[0].score == 0
    if family:
        found = place()
        assert found.folder.name == family
        assert found.why.startswith("a guess, for its cases use ")
    else:
        with pytest.raises(UsageError, match="no family matches"):
            place()


def test_keywords_of_the_kit_do_not_count() -> None:
    """A script has none, so they would make all cases unlike it."""
    case = """
from conformance.kit import Observed, probe
from jax import lax

@probe(devices=2, platforms=("cpu",))
def steps(env):
    return Observed(lax.scan(step, 0, xs, unroll=2), reference=7)
"""
    assert collect_used_names(ast.parse(case)).typical == {"scan", "unroll="}


def test_no_family_matches_without_names_or_families() -> None:
    """No division by zero."""
    assert choose_family(rank_families(frozenset({"scan"}), {})) is None
    assert choose_family(rank_families(frozenset(), {"loops": [frozenset()]})) is None
