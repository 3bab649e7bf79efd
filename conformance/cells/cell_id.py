"""Cell ids: parsing `jax0.6.0-py311-cpu8-x64` and its shorter spellings, and stable ids.

A stable id is the same in every run, also where the id changes by the day: that of a nightly.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from packaging.version import Version

from conformance.cells.cell import COMPACT_PIN, RESERVED_FACTOR, Cell
from conformance.cells.nightly import NIGHTLY, is_nightly_selector, parse_nightly_factor
from conformance.cells.platforms import FORMS
from conformance.cells.releases import is_nightly
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.cells.releases import Releases


_HEAD = re.compile(rf"jax(?P<release>\d.*|{NIGHTLY}(?:[.-].*)?)")
_PYTHON = re.compile(r"py(\d)(\d+)")
_DEVICES = re.compile(r"(cpu|gpu|tpu)([1-9]\d{0,5})?")
_PROCESSES = re.compile(r"mp\d+")
_TOPOLOGY = re.compile(r"(tpu|cuda|rocm)[:.](.*)")
_FULL_PIN = re.compile(r"(?P<name>[a-z0-9][a-z0-9_.]*)==(?P<version>[\w.!+]+)")
_CELL: Final = re.compile(r"jax(?P<release>[^-]+)-(?P<python>py\d+)(?P<rest>(?:-.+)?)")


def is_cell_id(text: str) -> bool:
    """Say whether a text is meant as a cell id, e.g. `jax0.6.0-cpu4`, not as a selector."""
    return _HEAD.fullmatch(text) is not None


def is_unresolved_id(text: str) -> bool:
    """Say whether a text is the id of a cell of a nightly of which it is not known which it is."""
    match = _HEAD.fullmatch(text.partition("-")[0])
    return match is not None and is_nightly_selector(parse_nightly_factor(match["release"]))


def parse_cell(text: str, releases: Releases) -> Cell:
    """Return the cell an id names.

    Args:
        text: Cell id; `pyXY` may be left out (the release's own Python), and the platform too.
        releases: Known releases.

    Returns:
        The cell; `parse_cell(cell.id, releases) == cell` for every cell of a known release.

    Raises:
        UsageError: If the release is unknown or a factor is not understood.
    """
    head, *factors = text.split("-")
    match = _HEAD.fullmatch(head)
    if match is None:
        raise UsageError(f"cell {text!r}: expected jaxVERSION-pyXY-cpuN, e.g. jax0.6.0-py311-cpu8")
    release = parse_nightly_factor(match["release"])
    fields: dict[str, Any] = {}
    for factor in factors:
        _read_factor(factor, fields, text)
    if is_nightly_selector(release):
        fields.setdefault("python", releases.python_for(releases.newest.version))
    # The full id of a nightly reads the same when its index has forgotten it.
    elif not (is_nightly(release) and "python" in fields):
        release = releases.get(release).version
        fields.setdefault("python", releases.python_for(release))
    return Cell(release=release, **fields)


def parse_options(text: str) -> dict[str, Any]:
    """Return the fields of a cell that the factors after its release name.

    Args:
        text: `cpu8-x64-cfg.NAME=VALUE`.

    Raises:
        UsageError: If a factor is not understood.
    """
    fields: dict[str, Any] = {}
    for factor in text.split("-"):
        _read_factor(factor, fields, text)
    return fields


def _read_factor(factor: str, fields: dict[str, Any], text: str) -> None:
    if factor.startswith("cfg.") and "=" in factor:
        name, _, value = factor.removeprefix("cfg.").partition("=")
        fields["config"] = (*fields.get("config", ()), (name, unquote(value)))
    elif factor.startswith("xla."):
        flag = unquote(factor.removeprefix("xla."))
        fields["xla_flags"] = (*fields.get("xla_flags", ()), flag)
    elif RESERVED_FACTOR.fullmatch(factor):
        _read_single(factor, fields, text)
    elif pin := _FULL_PIN.fullmatch(factor) or COMPACT_PIN.fullmatch(factor):
        fields["pins"] = (*fields.get("pins", ()), f"{pin['name']}=={pin['version']}")
    else:
        raise UsageError(
            f"cell {text!r}: unknown factor {factor!r}; expected pyXY, cpuN, a platform "
            "(tpu:v5e:2x2), latest, x64, a pin (numpy2.0.2), cfg.NAME=VALUE or xla.FLAG=VALUE"
        )


def _read_single(factor: str, fields: dict[str, Any], text: str) -> None:
    """Read a factor that may stand once."""
    if python := _PYTHON.fullmatch(factor):
        found: dict[str, Any] = {"python": f"{python[1]}.{python[2]}"}
    elif real := _DEVICES.fullmatch(factor):
        found = {"platform": real[1]}
        if real[2]:
            found["devices"] = int(real[2])
    elif topology := _TOPOLOGY.fullmatch(factor):
        found = {"platform": f"{topology[1]}:{topology[2].replace('.', ':')}"}
    elif _PROCESSES.fullmatch(factor) and fields.get("platform") == "cpu":
        fields["platform"] = f"cpu-{factor}"
        return
    elif factor in {"era", "latest"}:
        found = {"deps": factor}
    elif factor == "x64":
        found = {"x64": True}
    elif factor.startswith("jax"):
        raise UsageError(f"cell {text!r}: {factor!r} is a second release; expected one")
    else:
        raise UsageError(f"cell {text!r}: {factor!r} is no platform; expected one of {FORMS}")
    if not found.keys().isdisjoint(fields):
        raise UsageError(f"cell {text!r}: {factor!r} says {min(found)} twice; leave one out")
    fields.update(found)


def stable_cell_ids(cells: Iterable[str]) -> dict[str, str]:
    """Return the place of every cell of a run.

    A cell of a release, or of an environment, is its own place. That of a nightly is `nightly`
    with the platform and the options: neither its date nor the Python that goes with it says
    where it is. Where a run has several, the newest is that; those before it are `nightly-1` and
    so on, as selectors name them, and of one nightly the Python tells them apart. A nightly of
    which it is not known which one that is has the place that it would have.

    Args:
        cells: Cell ids of one run.
    """
    places = {}
    nightlies: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        match = _CELL.fullmatch(cell)
        release = "" if match is None else match["release"]
        is_night = is_nightly(release) or is_nightly_selector(parse_nightly_factor(release))
        if match is None or not is_night:
            places[cell] = cell
        else:
            nightlies[match["rest"]][match["release"]].append((match["python"], cell))
    for rest, releases in nightlies.items():
        for back, release in enumerate(_newest_first(releases)):
            head = f"{NIGHTLY}-{back}" if back else NIGHTLY
            several = len(releases[release]) > 1
            for python, cell in releases[release]:
                places[cell] = f"{head}-{python}{rest}" if several else f"{head}{rest}"
    return places


def _newest_first(releases: Iterable[str]) -> list[str]:
    """Return nightlies by age; those of which it is not known which they are come last."""
    known: list[str] = []
    others: list[str] = []
    for release in releases:
        (known if is_nightly(release) else others).append(release)
    return [*sorted(known, key=Version, reverse=True), *sorted(others, key=_back)]


def _back(release: str) -> tuple[int, ...]:
    """Return how far back a nightly is, of `nightly`, `nightly.3` or `nightly.2025.11.20`."""
    numbers = tuple(map(int, release.split(".")[1:]))
    return numbers if len(numbers) <= 1 else tuple(-number for number in numbers)
