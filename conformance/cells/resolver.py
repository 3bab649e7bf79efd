"""Resolutions of requirements by uv: one Python, one cut-off date, one host at a time."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conformance.cells.releases import is_nightly
from conformance.cells.uvtool import NoSolutionError, run_uv
from conformance.errors import InfrastructureError
from conformance.files import MALFORMED
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# The first one decides the versions, so a lock comes out the same wherever it is made.
HOSTS: Final = {
    "linux-x86_64": "x86_64-unknown-linux-gnu",
    "linux-aarch64": "aarch64-unknown-linux-gnu",
    "macos-arm64": "aarch64-apple-darwin",
}
# libtpu is built for a newer C library than jax is.
TPU_HOSTS: Final = {
    "linux-x86_64": "x86_64-manylinux_2_31",
    "linux-aarch64": "aarch64-manylinux_2_31",
}
_CONCLUSION = re.compile(r".*?\bbecause (.*?),? we can conclude\b.*", re.IGNORECASE | re.DOTALL)
JAX_PACKAGES: Final = re.compile(r"jax|jaxlib|libtpu|jax-(cuda|rocm)\d*-(plugin|pjrt)")
"""Packages that are released together, of which there are nightlies."""
IMPORTED_BY_JAX: Final = ("ml-dtypes", "numpy", "opt-einsum", "scipy")
"""What every case imports beside them, since jax does."""
_PROJECT = """\
[project]
name = "cell"
version = "0"
dependencies = [
{dependencies}
]
[tool.uv.sources]
{sources}
[[tool.uv.index]]
name = "nightly"
url = "{url}"
explicit = true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver:
    """The options of all resolutions of a cell.

    Attributes:
        python: Python to resolve for, `major.minor`.
        cut_off: Nothing uploaded from then on is considered.
        newer: Packages with a cut-off of their own, or `false` for none.
        left_out: Packages that are not installed whoever asks for them.
        hosts: What uv calls each host.
        nightly_index: Where nightlies come from, empty if none are asked for.
        work: Folder to run uv in.
    """

    python: str
    cut_off: str
    newer: Mapping[str, str]
    left_out: Sequence[str]
    hosts: Mapping[str, str]
    nightly_index: str
    work: Path

    def resolve(self, requirements: Sequence[str], host: str = "linux-x86_64") -> Pins:
        """Return the packages that satisfy some requirements on a host.

        Nightlies that are required by their exact version come from their own index, and no
        other package does: what somebody else uploaded there is ignored.

        Args:
            requirements: The requirements.
            host: A key of `hosts`.

        Raises:
            NoSolutionError: If there are none.
            InfrastructureError: If an index does not answer.
        """
        base = getattr(sys, "_base_executable", None) or sys.executable
        nightlies = nightly_names(requirements) if self.nightly_index else ()
        arguments = ["--python", base, "--python-platform", self.hosts[host]]
        arguments += ["--python-version", self.python, "--only-binary", ":all:"]
        arguments += ["--exclude-newer", self.cut_off, "--format", "pylock.toml", "--no-header"]
        # A nightly's date is in its version; its index need not tell upload times.
        for name, until in (*self.newer.items(), *((name, "false") for name in nightlies)):
            arguments += ["--exclude-newer-package", f"{name}={until}"]
        with temporary_folder("resolver") as scratch:
            left_out = Path(scratch, "left-out.txt")
            left_out.write_text("\n".join(self.left_out), encoding="utf-8")
            arguments += ["--excludes", str(left_out)]
            source, stdin = "-", "\n".join(requirements) + "\n"
            if nightlies:
                # Only a project file can say which packages an index is for.
                project = Path(scratch, "pyproject.toml")
                project.write_text(self._project(requirements, nightlies), encoding="utf-8")
                source, stdin = str(project), ""
            text = run_uv(["pip", "compile", source, *arguments], cwd=self.work, stdin=stdin)
        return parse_pylock(text)

    def same_on(self, host: str, pins: Pins) -> Pins | None:
        """Resolve exactly these versions on another host; None when it cannot have them."""
        try:
            found = self.resolve([f"{p.name}=={p.version}" for p in pins.values()], host)
        except NoSolutionError:
            return None
        return found if found.keys() == pins.keys() else None

    def _project(self, requirements: Sequence[str], nightlies: Sequence[str]) -> str:
        return _PROJECT.format(
            dependencies="\n".join(f"    {_quote(text)}," for text in requirements),
            sources="\n".join(f'{name} = {{ index = "nightly" }}' for name in nightlies),
            url=self.nightly_index.replace("\\", "%5C").replace('"', "%22"),
        )


def nightly_names(requirements: Sequence[str]) -> tuple[str, ...]:
    """Return the packages of jax that are required by the exact version of a nightly, sorted."""
    found = set()
    for requirement in map(Requirement, requirements):
        name = canonicalize_name(requirement.name)
        exact = [spec.version for spec in requirement.specifier if spec.operator == "=="]
        if JAX_PACKAGES.fullmatch(name) and any(map(is_nightly, exact)):
            found.add(str(name))
    return tuple(sorted(found))


def explain_refusal(error: NoSolutionError) -> str:
    """Return the premises that a resolver's proof begins with, without what follows from them."""
    said = str(error)
    match = _CONCLUSION.fullmatch(said)
    return match[1] if match else said


def _quote(text: str) -> str:
    return "'" + text.replace("'", '"') + "'"


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """One package of a resolution.

    Attributes:
        name: Normalised name.
        version: Version chosen.
        hashes: `sha256:...` of each wheel that serves.
    """

    name: str
    version: str
    hashes: tuple[str, ...]


Pins: TypeAlias = "Mapping[str, Pin]"


class _Wheel(msgspec.Struct):
    hashes: dict[str, str]


class _Package(msgspec.Struct):
    name: str
    version: str
    wheels: tuple[_Wheel, ...] = ()


class _File(msgspec.Struct):
    packages: tuple[_Package, ...] = ()


def parse_pylock(text: str) -> Pins:
    """Return the packages of a pylock.toml.

    Args:
        text: TOML text as uv prints it.

    Returns:
        Each package by name.

    Raises:
        InfrastructureError: If the text is none, or a package has no wheel with a hash.
    """
    try:
        packages = msgspec.toml.decode(text, type=_File).packages
    except MALFORMED as error:
        raise InfrastructureError(f"uv: unexpected pylock.toml: {error}") from error
    return {package.name: _pin(package) for package in packages}


def _pin(package: _Package) -> Pin:
    hashes = tuple(f"sha256:{w.hashes['sha256']}" for w in package.wheels if "sha256" in w.hashes)
    if not hashes:
        raise InfrastructureError(
            f"package index: no hash for the wheels of {package.name} {package.version}; "
            "expected an index that serves sha256 hashes"
        )
    return Pin(name=package.name, version=package.version, hashes=hashes)
