"""A cell: one place to run cases, and its id, which is also a tox environment name."""

from __future__ import annotations

import contextlib
import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from conformance.cells.nightly import is_nightly_selector, nightly_factor
from conformance.cells.platforms import DEFAULT_CPU_DEVICES, Platform, get_platform
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PATH_PREFIX = "path:"
DEPS = ("era", "latest")
COMPACT_PIN = re.compile(r"(?P<name>[a-z][a-z0-9_]*?)(?P<version>\d[\w.!+]*)")
RESERVED_FACTOR = re.compile(
    r"jax\d.*|py\d+|cpu\d*|mp\d+|(tpu|cuda|gpu|rocm)([:.\d].*)?|era|latest|x64"
)
_PYTHON = re.compile(r"\d+\.\d+")
_WORDS: Final = {"true": True, "false": False, "none": None}
_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(\d+\.\d*|\.?\d+)([eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One place to run cases; construction normalises pins, config and flags.

    Attributes:
        release: Exact jax release, or `path:/abs/bin/python` for an existing environment; `nightly`
            and the like where their index does not tell which that is.
        python: Python of the cell, `major.minor`.
        platform: Name of its platform, see `conformance.cells.platforms`.
        devices: Devices the platform offers; a case states how many it needs. 0 is the
            platform's own number, which a topology has whatever is said here.
        deps: `era` (dependencies as of the release's date) or `latest`.
        pins: Packages pinned on top, `name==version`.
        x64: Whether `jax_enable_x64` is on for every case.
        config: `jax.config` values by name, sorted.
        xla_flags: Flags added to XLA_FLAGS, each with its leading dashes.
        id: Its name, as tox spells environments: `jax0.6.0-py311-cpu8`. No colon can stand in the
            name of a folder on a search path: `tpu:v5e:2x2` is spelled `tpu.v5e.2x2`.
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
        # Equal places must be equal cells, whatever order or spelling they were written in.
        for name, value in (
            ("release", _canonical_release(self.release)),
            ("devices", platform.devices or self.devices or own_devices),
            ("pins", tuple(sorted({canonical_pin(pin) for pin in self.pins}))),
            ("config", tuple(sorted(dict(self.config).items()))),
            ("xla_flags", tuple(canonical_flag(flag) for flag in self.xla_flags)),
        ):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "id", self._id())

    def _id(self) -> str:
        kind, _, processes = self.platform.replace(":", ".").partition("-")
        fixed = self.place.devices is not None
        factors = [kind if fixed else f"{kind}{self.devices}", *filter(None, [processes])]
        return "-".join((self._install_id(), *factors, *self._options()))

    @property
    def place(self) -> Platform:
        """Its platform, and what that takes."""
        return get_platform(self.platform)

    @property
    def settings(self) -> Mapping[str, bool | int | float | str | None]:
        """Its `jax.config` values as jax takes them: `true` is a boolean, `2` a number."""
        return {name: _setting(text) for name, text in self.config}

    @property
    def is_unresolved(self) -> bool:
        """Whether it is one of a nightly of which it is not known which one that is."""
        return is_nightly_selector(self.release)

    @property
    def env_id(self) -> str:
        """Name of what must be installed for it, alike for all devices and flags."""
        return "-".join((self._install_id(), *self._install_options()))

    @property
    def interpreter(self) -> Path | None:
        """Interpreter of a `path:` cell, None for the cells that are provisioned."""
        if not self.release.startswith(PATH_PREFIX):
            return None
        return Path(self.release.removeprefix(PATH_PREFIX))

    @property
    def selector(self) -> str:
        """Its `--cell`: its id, or `path:PYTHON@PLATFORM` with its options."""
        if self.interpreter is None:
            return self.id
        counted = self.platform in {"cpu", "gpu", "tpu"}
        place = f"{self.platform}{self.devices}" if counted else self.platform
        return f"{self.release}@{'-'.join((place, *self._options()))}"

    @property
    def is_plain(self) -> bool:
        """Whether it is one of a release, with no option but its platform and its devices."""
        return self.interpreter is None and not any(self._options())

    def _install_id(self) -> str:
        python = f"py{self.python.replace('.', '')}"
        path = self.interpreter
        if path is None:
            return f"jax{nightly_factor(self.release)}-{python}"
        stem = re.sub(r"[^A-Za-z0-9_.]+", "_", path.parent.parent.name) or "root"
        digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
        return f"path-{stem}-{digest}-{python}"

    def _install_options(self) -> Iterator[str]:
        if self.place.packages:
            yield self.place.packages
        if self.deps != "era":
            yield self.deps
        yield from map(_pin_factor, self.pins)

    def _options(self) -> Iterator[str]:
        if self.deps != "era":
            yield self.deps
        yield from map(_pin_factor, self.pins)
        if self.x64:
            yield "x64"
        for name, value in self.config:
            yield f"cfg.{name}={_quote_value(value)}"
        for flag in self.xla_flags:
            yield f"xla.{_quote_value(flag.removeprefix('--'))}"


def canonical_pin(pin: str) -> str:
    """Return a pin in its one spelling.

    Args:
        pin: `name==version`, any spelling PEP 508 admits.

    Returns:
        `name==version` with normalised name and version.

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


def canonical_flag(flag: str) -> str:
    """Return an XLA flag with its leading dashes.

    Args:
        flag: `--xla_name=value`, with or without the dashes.

    Returns:
        The flag as XLA_FLAGS wants it.

    Raises:
        UsageError: If its name is not a flag's, or it holds white space.
    """
    body = flag.removeprefix("--")
    if not _NAME.fullmatch(body.partition("=")[0]) or any(map(str.isspace, body)):
        raise UsageError(f"xla flag {flag!r}: expected --name=value without white space")
    return f"--{body}"


def _setting(text: str) -> bool | int | float | str | None:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        with contextlib.suppress(ValueError):  # a number of thousands of digits stays a text
            return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _canonical_release(release: str) -> str:
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


def _pin_factor(pin: str) -> str:
    """Spell a pin `numpy2.0.2` where that reads back as the same pin, else `name==version`."""
    name, _, version = pin.partition("==")
    name = name.replace("-", "_")
    compact = f"{name}{version}"
    match = COMPACT_PIN.fullmatch(compact)
    same = match is not None and match.group("name", "version") == (name, version)
    return compact if same and not RESERVED_FACTOR.fullmatch(compact) else f"{name}=={version}"


def _quote_value(value: str) -> str:
    # A dash would end the factor, a slash cannot stand in a file name.
    return quote(value, safe="=+").replace("-", "%2D")
