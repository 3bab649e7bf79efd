"""Cells, places to run cases, and their ids, which are also tox environment names."""

from __future__ import annotations

import contextlib
import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from conformance.cells.nightly import (
    NIGHTLY,
    encode_nightly_factor,
    is_nightly_selector,
    parse_nightly_factor,
)
from conformance.cells.platforms import DEFAULT_CPU_DEVICES, FORMS, Platform, get_platform
from conformance.cells.releases import is_nightly
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.cells.releases import Releases

PATH_PREFIX = "path:"
DEPS = ("era", "latest")
# As short as possible: the version begins at the first digit, so `numpy2.0.2` needs no sign.
_COMPACT_PIN = re.compile(r"(?P<name>[a-z][a-z0-9_]*?)(?P<version>\d[\w.!+]*)")
_FULL_PIN = re.compile(r"(?P<name>[a-z0-9][a-z0-9_.]*)==(?P<version>[\w.!+]+)")
# Factors with another meaning: a pin that would be spelled like one is written as `name==version`.
_RESERVED_FACTOR = re.compile(
    r"jax\d.*|py\d+|cpu\d*|mp\d+|(tpu|cuda|gpu|rocm)([:.\d].*)?|era|latest|x64"
)
_HEAD = re.compile(rf"jax(?P<release>\d.*|{NIGHTLY}(?:[.-].*)?)")
_PYTHON = re.compile(r"\d+\.\d+")
_PYTHON_FACTOR = re.compile(r"py(\d)(\d+)")
# The number of digits is bounded: Python refuses to convert more than 4,300 of them.
_DEVICES = re.compile(r"(cpu|gpu|tpu)([1-9]\d{0,5})?")
_PROCESSES = re.compile(r"mp\d+")
_TOPOLOGY = re.compile(r"(tpu|cuda|rocm)[:.](.*)")
_WORDS: Final = {"true": True, "false": False, "none": None}
_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(\d+\.\d*|\.?\d+)([eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A place to run cases; construction normalises pins, config and flags.

    Attributes:
        release: Exact jax release, or `path:/abs/bin/python` for an existing environment; a
            nightly selector if the index of nightlies did not answer.
        python: Python version of the cell, `major.minor`.
        platform: Name of its platform, see `conformance.cells.platforms`.
        devices: Number of devices of the platform; 0 is the platform's default. The number of a
            topology is fixed.
        deps: `era` (dependencies as of the release date) or `latest`.
        pins: Further pinned packages, `name==version`.
        x64: Whether `jax_enable_x64` is on for every case.
        config: `jax.config` values by name, sorted.
        xla_flags: Flags added to XLA_FLAGS, each with its leading dashes.
        id: Name in the style of tox environments: `jax0.6.0-py311-cpu8`. It becomes the name of a
            folder on a search path, where a colon separates folders: `tpu:v5e:2x2` is spelled
            `tpu.v5e.2x2`.
    """

    release: str
    python: str
    platform: str = "cpu"
    devices: int = 0
    deps: str = "era"
    pins: tuple[str, ...] = ()
    x64: bool = False
    config: tuple[tuple[str, str], ...] = ()
    xla_flags: tuple[str, ...] = ()
    id: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        platform = get_platform(self.platform)
        if not _PYTHON.fullmatch(self.python):
            raise UsageError(f"python {self.python!r} of a cell: expected major.minor, e.g. '3.11'")
        if self.deps not in DEPS:
            raise UsageError(f"deps {self.deps!r} of a cell: expected one of {', '.join(DEPS)}")
        if self.devices < 0:
            raise UsageError(f"devices {self.devices} of a cell: expected 1 or more")
        for name, _ in self.config:
            if not _NAME.fullmatch(name):
                raise UsageError(f"config name {name!r} of a cell: expected a jax.config name")
        own_devices = 1 if platform.real else DEFAULT_CPU_DEVICES
        # Equal places must be equal cells, in any order and spelling of their options.
        for name, value in (
            ("release", _canonicalize_release(self.release)),
            ("devices", platform.devices or self.devices or own_devices),
            ("pins", tuple(sorted({canonicalize_pin(pin) for pin in self.pins}))),
            ("config", tuple(sorted(dict(self.config).items()))),
            # Not sorted: of two flags with one name XLA takes the last.
            ("xla_flags", tuple(canonicalize_flag(flag) for flag in self.xla_flags)),
        ):
            object.__setattr__(self, name, value)
        # Made once: ids are keys of plans and results, and are read many times per job.
        kind, _, processes = self.platform.replace(":", ".").partition("-")
        fixed = self.place.devices is not None
        factors = [kind if fixed else f"{kind}{self.devices}", *filter(None, [processes])]
        cell_id = "-".join((self._install_id(), *factors, *self._list_options()))
        object.__setattr__(self, "id", cell_id)

    @property
    def place(self) -> Platform:
        """The platform with its properties."""
        return get_platform(self.platform)

    @property
    def settings(self) -> Mapping[str, bool | int | float | str | None]:
        """The `jax.config` values as jax expects them: `true` is a boolean, `2` a number."""
        return {name: _parse_setting(text) for name, text in self.config}

    @property
    def is_unresolved(self) -> bool:
        """Whether its release is a nightly selector, because the index did not answer."""
        return is_nightly_selector(self.release)

    @property
    def env_id(self) -> str:
        """Id of its environment, the same for all device counts and flags."""
        packages = filter(None, [self.place.packages])
        return "-".join((self._install_id(), *packages, *self._list_dependency_factors()))

    @property
    def interpreter(self) -> Path | None:
        """Interpreter of a `path:` cell, None for a provisioned cell."""
        if not self.release.startswith(PATH_PREFIX):
            return None
        return Path(self.release.removeprefix(PATH_PREFIX))

    @property
    def selector(self) -> str:
        """Value of `--cell` that selects it: its id, or `path:PYTHON@PLATFORM` with its options."""
        if self.interpreter is None:
            return self.id
        counted = self.platform in {"cpu", "gpu", "tpu"}
        place = f"{self.platform}{self.devices}" if counted else self.platform
        return f"{self.release}@{'-'.join((place, *self._list_options()))}"

    @property
    def is_plain(self) -> bool:
        """Whether it is a cell of a release without options other than platform and devices."""
        return self.interpreter is None and not any(self._list_options())

    def _install_id(self) -> str:
        python = f"py{self.python.replace('.', '')}"
        path = self.interpreter
        if path is None:
            return f"jax{encode_nightly_factor(self.release)}-{python}"
        stem = re.sub(r"[^A-Za-z0-9_.]+", "_", path.parent.parent.name) or "root"
        # Environments in different projects often have the same folder name, e.g. `.venv`.
        digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
        return f"path-{stem}-{digest}-{python}"

    def _list_dependency_factors(self) -> Iterator[str]:
        if self.deps != "era":
            yield self.deps
        yield from map(_encode_pin, self.pins)

    def _list_options(self) -> Iterator[str]:
        yield from self._list_dependency_factors()
        if self.x64:
            yield "x64"
        for name, value in self.config:
            yield f"cfg.{name}={_quote_value(value)}"
        for flag in self.xla_flags:
            yield f"xla.{_quote_value(flag.removeprefix('--'))}"


def canonicalize_pin(pin: str) -> str:
    """Return a pin as `name==version` with normalised name and version.

    Args:
        pin: `name==version`, in any spelling that PEP 508 admits.

    Raises:
        UsageError: If it is not an exact pin of one package.
    """
    problem = f"pin {pin!r}: expected name==version, e.g. 'numpy==2.0.2'"
    try:
        requirement = Requirement(pin)
        (specifier,) = requirement.specifier
        version = Version(specifier.version)
    except (InvalidRequirement, InvalidVersion, ValueError) as error:
        raise UsageError(problem) from error
    plain = requirement.url is None and requirement.marker is None and not requirement.extras
    if specifier.operator != "==" or not plain:
        raise UsageError(problem)
    return f"{canonicalize_name(requirement.name)}=={version}"


def canonicalize_flag(flag: str) -> str:
    """Return an XLA flag with its leading dashes.

    Args:
        flag: `--xla_name=value`, with or without the dashes.

    Raises:
        UsageError: If its name is not valid, or it contains white space.
    """
    body = flag.removeprefix("--")
    if not _NAME.fullmatch(body.partition("=")[0]) or any(map(str.isspace, body)):
        raise UsageError(f"xla flag {flag!r}: expected --name=value without white space")
    return f"--{body}"


def _parse_setting(text: str) -> bool | int | float | str | None:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        # Python refuses a number of more than 4,300 digits: it stays a text.
        with contextlib.suppress(ValueError):
            return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _canonicalize_release(release: str) -> str:
    if release.startswith(PATH_PREFIX):
        path = Path(release.removeprefix(PATH_PREFIX))
        if not path.is_absolute():
            raise UsageError(f"release {release!r} of a cell: expected an absolute path")
        return release
    if is_nightly_selector(release):
        return release
    try:
        return str(Version(release))
    except ValueError as error:
        raise UsageError(f"release {release!r} of a cell: expected a version") from error


def _encode_pin(pin: str) -> str:
    """Return a pin as `numpy2.0.2` if that parses to the same pin, else as `name==version`."""
    name, _, version = pin.partition("==")
    name = name.replace("-", "_")
    compact = f"{name}{version}"
    match = _COMPACT_PIN.fullmatch(compact)
    same = match is not None and match.group("name", "version") == (name, version)
    return compact if same and not _RESERVED_FACTOR.fullmatch(compact) else f"{name}=={version}"


def _quote_value(value: str) -> str:
    # A dash would end the factor, and a file name cannot contain a slash.
    return quote(value, safe="=+").replace("-", "%2D")


def is_cell_id(text: str) -> bool:
    """Say whether a text is a cell id, e.g. `jax0.6.0-cpu4`, and not a selector."""
    return _HEAD.fullmatch(text) is not None


def is_unresolved_id(text: str) -> bool:
    """Say whether a text is the id of an unresolved cell, see `Cell.is_unresolved`."""
    match = _HEAD.fullmatch(text.partition("-")[0])
    return match is not None and is_nightly_selector(parse_nightly_factor(match["release"]))


def parse_cell(text: str, releases: Releases) -> Cell:
    """Return the cell with an id.

    Args:
        text: Cell id; `pyXY` (default: the release's own Python) and the platform are optional.
        releases: Known releases.

    Returns:
        The cell; `parse_cell(cell.id, releases) == cell` for every cell of a known release.

    Raises:
        UsageError: If the release or a factor is unknown.
    """
    head, *factors = text.split("-")
    match = _HEAD.fullmatch(head)
    if match is None:
        raise UsageError(f"cell {text!r}: expected jaxVERSION-pyXY-cpuN, e.g. jax0.6.0-py311-cpu8")
    release = parse_nightly_factor(match["release"])
    fields = _parse_factors(factors, text)
    if is_nightly_selector(release):
        fields.setdefault("python", releases.find_python(releases.newest.version))
    # The full id of a nightly can be parsed after its index has deleted it.
    elif not (is_nightly(release) and "python" in fields):
        release = releases.get(release).version
        fields.setdefault("python", releases.find_python(release))
    return Cell(release=release, **fields)


def parse_options(text: str) -> dict[str, Any]:
    """Return the fields of a cell that are set by the factors after its release.

    Args:
        text: Factors of a cell id, e.g. `cpu8-x64-cfg.NAME=VALUE`.

    Raises:
        UsageError: If a factor is unknown.
    """
    return _parse_factors(text.split("-"), text)


def _parse_factors(factors: Iterable[str], text: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for factor in factors:
        _parse_factor(factor, fields, text)
    return fields


def _parse_factor(factor: str, fields: dict[str, Any], text: str) -> None:
    if factor.startswith("cfg.") and "=" in factor:
        name, _, value = factor.removeprefix("cfg.").partition("=")
        fields["config"] = (*fields.get("config", ()), (name, unquote(value)))
    elif factor.startswith("xla."):
        flag = unquote(factor.removeprefix("xla."))
        fields["xla_flags"] = (*fields.get("xla_flags", ()), flag)
    elif _RESERVED_FACTOR.fullmatch(factor):
        _parse_unique_factor(factor, fields, text)
    elif pin := _FULL_PIN.fullmatch(factor) or _COMPACT_PIN.fullmatch(factor):
        fields["pins"] = (*fields.get("pins", ()), f"{pin['name']}=={pin['version']}")
    else:
        raise UsageError(
            f"cell {text!r}: unknown factor {factor!r}; expected pyXY, cpuN, a platform "
            "(tpu:v5e:2x2), latest, x64, a pin (numpy2.0.2), cfg.NAME=VALUE or xla.FLAG=VALUE"
        )


def _parse_unique_factor(factor: str, fields: dict[str, Any], text: str) -> None:
    """Parse a factor that may occur once."""
    if python := _PYTHON_FACTOR.fullmatch(factor):
        found: dict[str, Any] = {"python": f"{python[1]}.{python[2]}"}
    elif real := _DEVICES.fullmatch(factor):
        found = {"platform": real[1]}
        if real[2]:
            found["devices"] = int(real[2])
    elif topology := _TOPOLOGY.fullmatch(factor):
        found = {"platform": f"{topology[1]}:{topology[2].replace('.', ':')}"}
    # `cpu4-mp2` is split at its dash: the number of processes refines the platform before it.
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
    # A repeated factor is more likely a mistake than a request for the last one.
    if not found.keys().isdisjoint(fields):
        raise UsageError(f"cell {text!r}: {factor!r} sets {min(found)} twice; leave one out")
    fields.update(found)
