"""Resolution of requirements with uv, for one Python, cut-off date and host at a time."""

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


# The first host decides the versions, so that a lock does not depend on the host that creates it.
HOSTS: Final = {
    "linux-x86_64": "x86_64-unknown-linux-gnu",
    "linux-aarch64": "aarch64-unknown-linux-gnu",
    "macos-arm64": "aarch64-apple-darwin",
}
# The wheels of libtpu need a newer glibc than those of jax.
TPU_HOSTS: Final = {
    "linux-x86_64": "x86_64-manylinux_2_31",
    "linux-aarch64": "aarch64-manylinux_2_31",
}
# uv prints a proof: its premises are the facts that a user can change.
_CONCLUSION = re.compile(r".*?\bbecause (.*?),? we can conclude\b.*", re.IGNORECASE | re.DOTALL)
JAX_PACKAGES: Final = re.compile(r"jax|jaxlib|libtpu|jax-(cuda|rocm)\d*-(plugin|pjrt)")
"""Packages that are released together and have nightlies."""
IMPORTED_BY_JAX: Final = ("ml-dtypes", "numpy", "opt-einsum", "scipy")
"""Further packages that every case imports, because jax does."""
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
        python: Python version, `major.minor`.
        cut_off: Time from which uploads are ignored.
        newer: Cut-off times of single packages, `false` for none.
        excluded: Packages that are not installed even if required.
        hosts: Platform names of uv by host.
        nightly_index: URL of the index of nightlies, empty if no nightly is required.
        work: Working directory of uv.
    """

    python: str
    cut_off: str
    newer: Mapping[str, str]
    excluded: Sequence[str]
    hosts: Mapping[str, str]
    nightly_index: str
    work: Path

    def resolve(self, requirements: Sequence[str], host: str = "linux-x86_64") -> Pins:
        """Return the packages that satisfy requirements on a host.

        Only nightlies that are required by their exact version come from the index of nightlies.
        Packages that somebody else uploads to that index are never installed.

        Args:
            requirements: Requirements to satisfy.
            host: A key of `hosts`.

        Raises:
            NoSolutionError: If there is no solution.
            InfrastructureError: If an index does not answer.
        """
        # Any interpreter will do, as --python-version decides; without one uv searches for it.
        base = getattr(sys, "_base_executable", None) or sys.executable
        nightlies = find_nightlies(requirements) if self.nightly_index else ()
        arguments = ["--python", base, "--python-platform", self.hosts[host]]
        arguments += ["--python-version", self.python, "--only-binary", ":all:"]
        arguments += ["--exclude-newer", self.cut_off, "--format", "pylock.toml", "--no-header"]
        # The cut-off does not apply to nightlies: their index may lack upload times.
        for name, until in (*self.newer.items(), *((name, "false") for name in nightlies)):
            arguments += ["--exclude-newer-package", f"{name}={until}"]
        with temporary_folder("resolver") as scratch:
            excludes = Path(scratch, "excludes.txt")
            excludes.write_text("\n".join(self.excluded), encoding="utf-8")
            arguments += ["--excludes", str(excludes)]
            source, stdin = "-", "\n".join(requirements) + "\n"
            if nightlies:
                # Only a project file can bind packages to an index.
                project = Path(scratch, "pyproject.toml")
                project.write_text(self._format_project(requirements, nightlies), encoding="utf-8")
                source, stdin = str(project), ""
            text = run_uv(["pip", "compile", source, *arguments], cwd=self.work, stdin=stdin)
        return parse_pylock(text)

    def resolve_pins(self, host: str, pins: Pins) -> Pins | None:
        """Resolve exact versions on another host; None if they have no solution."""
        try:
            found = self.resolve([f"{p.name}=={p.version}" for p in pins.values()], host)
        except NoSolutionError:
            return None
        # With environment markers a host may need other packages: it is then not supported.
        return found if found.keys() == pins.keys() else None

    def _format_project(self, requirements: Sequence[str], nightlies: Sequence[str]) -> str:
        return _PROJECT.format(
            dependencies="\n".join(f"    {_quote(text)}," for text in requirements),
            sources="\n".join(f'{name} = {{ index = "nightly" }}' for name in nightlies),
            url=self.nightly_index.replace("\\", "%5C").replace('"', "%22"),
        )


def find_nightlies(requirements: Sequence[str]) -> tuple[str, ...]:
    """Return the sorted packages of jax that are required by the exact version of a nightly."""
    found = set()
    for requirement in map(Requirement, requirements):
        name = canonicalize_name(requirement.name)
        exact = [spec.version for spec in requirement.specifier if spec.operator == "=="]
        if JAX_PACKAGES.fullmatch(name) and any(map(is_nightly, exact)):
            found.add(str(name))
    return tuple(sorted(found))


def explain_refusal(error: NoSolutionError) -> str:
    """Return the premises of a resolver's proof, without the conclusions."""
    match = _CONCLUSION.fullmatch(str(error))
    return match[1] if match else str(error)


def _quote(text: str) -> str:
    return "'" + text.replace("'", '"') + "'"


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """A package of a resolution.

    Attributes:
        name: Normalised name.
        version: Resolved version.
        hashes: `sha256:...` of each suitable wheel.
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
    """Return the packages of a pylock.toml, by name.

    Args:
        text: TOML text as printed by uv.

    Raises:
        InfrastructureError: If the text is not valid, or a package has no wheel with a hash.
    """
    try:
        packages = msgspec.toml.decode(text, type=_File).packages
    except MALFORMED as error:
        raise InfrastructureError(f"uv: unexpected pylock.toml: {error}") from error
    return {package.name: _make_pin(package) for package in packages}


def _make_pin(package: _Package) -> Pin:
    hashes = tuple(f"sha256:{w.hashes['sha256']}" for w in package.wheels if "sha256" in w.hashes)
    if not hashes:
        raise InfrastructureError(
            f"package index: no hash for the wheels of {package.name} {package.version}; "
            "expected an index that serves sha256 hashes"
        )
    return Pin(name=package.name, version=package.version, hashes=hashes)
