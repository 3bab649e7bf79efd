"""Cells and their ids: an id describes the cell completely."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.cells.cell import Cell, is_cell_id, parse_cell
from conformance.errors import UsageError

from .builders import table

if TYPE_CHECKING:
    from conformance.cells.releases import Releases

VERSIONS = ("0.5.3", "0.6.0", "0.9.0.1", "0.11.0")
TABLE = table(*VERSIONS)
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,5}([._-][a-z0-9]{1,4})?", fullmatch=True)
PINNED = st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,2}(rc[0-9]|\.post[0-9])?", fullmatch=True)
FLAGS = st.from_regex(r"--xla_[a-z_]{1,9}(=[A-Za-z0-9,:/=%.-]{0,9})?", fullmatch=True)
CELLS = st.builds(
    Cell,
    release=st.sampled_from(VERSIONS),
    python=st.from_regex(r"3\.1[0-5]", fullmatch=True),
    devices=st.integers(1, 512),
    deps=st.sampled_from(["era", "latest"]),
    pins=st.lists(st.builds("{}=={}".format, NAMES, PINNED), max_size=3).map(tuple),
    x64=st.booleans(),
    config=st.dictionaries(st.from_regex(r"jax_[a-z_]{1,9}", fullmatch=True), st.text()).map(
        lambda config: tuple(config.items())
    ),
    xla_flags=st.lists(FLAGS, max_size=3).map(tuple),
)


@given(CELLS)
def test_parsed_id_gives_the_same_cell(cell: Cell) -> None:
    """The law of ids: `parse_cell(cell.id) == cell`."""
    assert parse_cell(cell.id, TABLE) == cell


@given(CELLS)
def test_id_is_a_valid_file_name(cell: Cell) -> None:
    """Ids name tox environments and files: no white space, no slash, ASCII only."""
    assert re.fullmatch(r"[!-.0-~]+", cell.id)


@given(CELLS, st.integers(1, 512), st.booleans())
def test_devices_and_flags_share_an_environment(cell: Cell, devices: int, x64: bool) -> None:
    """Cells that differ in devices, config and flags only have one `env_id`."""
    other = Cell(
        release=cell.release,
        python=cell.python,
        devices=devices,
        deps=cell.deps,
        pins=cell.pins,
        x64=x64,
    )
    assert other.env_id == cell.env_id


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "jax0.6.0-py311-cpu8"),
        ({"devices": 4}, "jax0.6.0-py311-cpu4"),
        ({"deps": "latest"}, "jax0.6.0-py311-cpu8-latest"),
        ({"pins": ("NumPy == 2.0.2",)}, "jax0.6.0-py311-cpu8-numpy2.0.2"),
        ({"pins": ("ml-dtypes==0.5.1",)}, "jax0.6.0-py311-cpu8-ml_dtypes0.5.1"),
        ({"pins": ("oauth2==1.0",)}, "jax0.6.0-py311-cpu8-oauth2==1.0"),
        ({"pins": ("x==64",)}, "jax0.6.0-py311-cpu8-x==64"),
        ({"x64": True}, "jax0.6.0-py311-cpu8-x64"),
        ({"config": (("jax_a", "b-c"),)}, "jax0.6.0-py311-cpu8-cfg.jax_a=b%2Dc"),
        ({"xla_flags": ("xla_f=true",)}, "jax0.6.0-py311-cpu8-xla.xla_f=true"),
    ],
)
def test_id_omits_defaults(fields: dict[str, Any], expected: str) -> None:
    """A factor for each option that is not the default."""
    assert Cell(release="0.6.0", python="3.11", **fields).id == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True), ("False", False), ("none", None), ("2", 2), ("-1", -1), ("0.5", 0.5),
        ("1e-05", 1e-05), ("highest", "highest"), ("2x", "2x"), ("", ""), ("1.2.3", "1.2.3"),
    ],
)  # fmt: skip
def test_config_values_are_converted_for_jax(text: str, value: object) -> None:
    """An id is text; jax.config expects booleans, numbers and words."""
    settings = Cell(release="0.6.0", python="3.11", config=(("jax_a", text),)).settings
    assert settings == {"jax_a": value}
    assert type(settings["jax_a"]) is type(value)


@pytest.mark.parametrize(
    ("text", "python", "devices"),
    [("jax0.6.0", "3.11", 8), ("jax0.6.0-cpu4", "3.11", 4), ("jax0.11.0-cpu", "3.12", 8)],
)
def test_short_id_has_the_default_python(
    text: str, python: str, devices: int, releases: Releases
) -> None:
    """Python and platform may be omitted from an id."""
    cell = parse_cell(text, releases)
    assert (cell.python, cell.devices) == (python, devices)


def test_cells_are_equal_in_any_order_of_options() -> None:
    """Pins, config and flags are normalised."""
    one = Cell(release="0.6", python="3.11", pins=("b==1", "A==2"), config=(("b", "1"), ("a", "2")))
    two = Cell(release="0.6", python="3.11", pins=("a==2", "b==1"), config=(("a", "2"), ("b", "1")))
    assert one == two


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "jax0.6.1-cpu8",
            r"unknown jax release '0.6.1' \(did you mean '0.6.[02]' or '0.6.[02]'\?\)",
        ),
        ("jax0.4.32", "'0.4.32' was yanked: broken"),
        ("jax0.6.0-cpu8-wat!", "unknown factor 'wat!'"),
        ("jax0.6.0-cpu8-", "unknown factor ''"),
        ("jax0.6.0-cpu8-cpu4", "'cpu4' sets devices twice"),
        ("jax0.6.0-py311-py312", "'py312' sets python twice"),
        ("jax0.6.0-jax0.6.2", "second release"),
        ("jax0.6.0-cpu0", "'cpu0' is no platform"),
        ("jax0.6.0-mp2", "'mp2' is no platform"),
        ("jax0.6.0-tpu:v5f:2x2", "unknown TPU generation 'v5f'"),
        ("jax0.6.0-tpu:v5e:2x2x2", "v5e has no topology 2x2x2"),
        ("jax0.6.0-tpu:v5e:3x3", "v5e has no topology 3x3"),
        ("jax0.6.0-cuda:h1000:1x1x4", "unknown GPU 'h1000'"),
        ("jax0.6.0-cuda:h100:4", "'4' is no topology of GPUs"),
        ("0.6.0-cpu8", "expected jaxVERSION-pyXY-cpuN"),
    ],
)
def test_invalid_id_names_the_invalid_factor(text: str, message: str, releases: Releases) -> None:
    """One usage error, for every kind of mistake."""
    with pytest.raises(UsageError, match=message):
        parse_cell(text, releases)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"release": "six"}, "release 'six'"),
        ({"release": "path:env/bin/python"}, "expected an absolute path"),
        ({"python": "3"}, "expected major.minor"),
        ({"deps": "old"}, "expected one of era, latest"),
        ({"pins": ("numpy>=2",)}, "expected name==version"),
        ({"pins": ("numpy==2.*",)}, "expected name==version"),
        ({"pins": ("numpy==2; python_version<'4'",)}, "expected name==version"),
        ({"xla_flags": ("--xla_a=b --xla_c",)}, "without white space"),
        ({"config": (("a-b", "1"),)}, "config name 'a-b'"),
    ],
)
def test_invalid_fields_of_a_cell_are_rejected(fields: dict[str, Any], message: str) -> None:
    """Cells are checked at construction."""
    with pytest.raises(UsageError, match=re.escape(message)):
        Cell(**({"release": "0.6.0", "python": "3.11"} | fields))


def test_path_cell_is_named_after_its_environment() -> None:
    """The id has the name of the folder, and a digest that distinguishes equal names."""
    one = Cell(release="path:/opt/a/my env/bin/python", python="3.11")
    two = Cell(release="path:/opt/b/my env/bin/python", python="3.11")
    assert re.fullmatch(r"path-my_env-[0-9a-f]{8}-py311-cpu8", one.id)
    assert one.id != two.id
    assert one.interpreter == Path("/opt/a/my env/bin/python")


def test_ids_are_distinguished_from_selectors() -> None:
    """A text that begins with `jax` and a digit is an id."""
    assert is_cell_id("jax0.6.0-cpu8")
    assert not any(map(is_cell_id, ["0.6.0", ">=0.6", "latest", "path:/x", "jax"]))
