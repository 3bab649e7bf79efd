"""Requirements in every spelling that pip reads: names, folders, archives, URLs, repositories."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from conformance.cells.overlay import WHEELS
from conformance.cells.secret_masking import mask_text
from conformance.cells.uvtool import run_uv
from conformance.errors import InfrastructureError, UsageError
from conformance.files import describe_os_error, write_atomically
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

_ARCHIVES: Final = (".whl", ".tar.gz", ".zip")
_NAMED: Final = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?P<extras>\[[^\]]*\])?\s*@\s*(?P<place>\S.*)"
)
_EXTRAS: Final = re.compile(r"(?P<place>.+?)\s*(?P<extras>\[[A-Za-z0-9_., -]*\])")
_GIT: Final = "git+"
_CLONE_TIMEOUT: Final = 600.0


def parse_requirement(text: str) -> Requirement:
    """Return a requirement.

    Args:
        text: E.g. `optax>=0.2`.

    Raises:
        UsageError: If it is none, or holds a secret, which would be kept with what is run.
    """
    try:
        found = Requirement(text)
    except InvalidRequirement as error:
        said = str(error).splitlines()[0].lower()
        raise UsageError(
            mask_text(f"requirement {text!r}: {said}, expected e.g. 'optax>=0.2'")
        ) from None
    if found.url:
        _refuse_secret(text, found.url)
    return found


def _refuse_secret(text: str, url: str) -> None:
    """Refuse a URL with a password, or with a token in the place of a user's name."""
    parts = urlsplit(url)
    token = parts.username and parts.scheme.rpartition("+")[2] in {"http", "https"}
    if parts.password or token:
        raise UsageError(
            f"{mask_text(text)}: holds a password or a token, which would be kept with the run; "
            "put it into a netrc file, or set UV_INDEX to an index that has the package"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSource:
    """Where a package comes from that no index has.

    Attributes:
        text: As it was given, for messages.
        place: A path, or a `git+` URL.
        name: Name of the package, empty where that is not given.
        extras: Its extras in brackets, empty for none.
    """

    text: str
    place: str
    name: str = ""
    extras: str = ""

    @property
    def is_git(self) -> bool:
        """Whether it is a repository."""
        return self.place.startswith(_GIT)

    @property
    def path(self) -> Path:
        """The path of a folder or an archive."""
        return Path(self.place).expanduser()


def parse_source(text: str) -> PackageSource | None:
    """Return where a package comes from, None for a requirement that an index or a URL answers.

    Args:
        text: `./pkg`, `pkgs/mine[extra]`, `mine.whl`, `file:///pkg`, `mine[extra] @ ./pkg`,
            `git+https://host/repo@rev#subdirectory=pkg`, or a requirement.

    Raises:
        UsageError: If it is an option of pip.
    """
    text = text.strip()
    if text.startswith("-"):
        raise UsageError(
            f"--with {text!r}: expected one requirement, no option of pip; a folder is built as it "
            "is now: give it alone; give each line of a requirements file a --with of its own"
        )
    if named := _NAMED.fullmatch(text):
        place, name, extras = named["place"], named["name"], named["extras"] or ""
        found = _place(place)
        return PackageSource(text=text, place=found, name=name, extras=extras) if found else None
    if found := _place(text):
        split = None if Path(found).expanduser().exists() else _EXTRAS.fullmatch(found)
        if split is None:
            return PackageSource(text=text, place=found)
        return PackageSource(text=text, place=split["place"], extras=split["extras"])
    return None


def _place(text: str) -> str:
    """Return a path or a `git+` URL, empty for what is neither."""
    if text.startswith(_GIT):
        return text
    if text.startswith("file:"):
        return unquote(urlsplit(text).path)
    if "://" in text or _NAMED.fullmatch(text):
        return ""
    plain = text.partition("[")[0].rstrip()
    is_path = plain.startswith((".", "~")) or "/" in plain or plain.endswith(_ARCHIVES)
    return text if is_path else ""


def build_requirement(text: str, cache: Path) -> str:
    """Return what is wanted as a requirement that an index, a URL or a wheel of the cache answers.

    A package in a folder, in an archive or in a repository is built as it is now.

    Args:
        text: A requirement in any spelling of `parse_source`; what is returned is one, too, and
            stays as it is.
        cache: Cache folder; wheels are kept there by their content.

    Raises:
        UsageError: If it is none of them.
        UvError: If the package cannot be built.
        InfrastructureError: If the disk or a repository refuses.
    """
    source = parse_source(text)
    if source is None:
        return str(parse_requirement(_with_name(text)))
    if source.is_git:
        return _of_repository(source, cache)
    return _of_path(source, source.path, cache)


def _with_name(text: str) -> str:
    """Return the URL of a wheel with the name that its file name has; else the text."""
    if "://" not in text or _NAMED.fullmatch(text):
        return text
    _refuse_secret(text, text)
    file = unquote(urlsplit(text).path).rpartition("/")[2]
    try:
        name, *_ = parse_wheel_filename(file)
    except InvalidWheelFilename:
        raise UsageError(
            f"--with {mask_text(text)}: expected NAME @ URL, or the URL of a wheel"
        ) from None
    return f"{name} @ {text}"


def absolute_requirement(text: str) -> str:
    """Return what is wanted so that it means the same from any working directory.

    Args:
        text: As for `build_requirement`.
    """
    source = parse_source(text)
    if source is None or source.is_git:
        return text
    path = source.path.absolute()
    return (
        f"{source.name}{source.extras} @ {path.as_uri()}"
        if source.name
        else f"{path}{source.extras}"
    )


def _of_path(source: PackageSource, path: Path, cache: Path) -> str:
    if path.suffix == ".whl":
        return _store_wheel(source, path, cache)
    if not path.exists():
        raise UsageError(f"--with {source.text!r}: {path}: no such file or folder")
    is_package = any((path / name).is_file() for name in ("pyproject.toml", "setup.py"))
    if not is_package and not path.name.endswith(_ARCHIVES):
        raise UsageError(f"{path}: has no pyproject.toml, expected the folder of a package")
    before = set(_left_by_builds(path))
    with temporary_folder("overlay") as scratch:
        try:
            # Else uv takes the first Python on PATH, and downloads the newest where there is none.
            where = ("--python", sys.executable, "--out-dir", scratch)
            run_uv(["build", "--wheel", *where, path.resolve()], cwd=scratch)
        finally:
            for left in set(_left_by_builds(path)) - before:
                shutil.rmtree(left, ignore_errors=True)
        (wheel,) = scratch.glob("*.whl")
        return _store_wheel(source, wheel, cache)


def _left_by_builds(folder: Path) -> Iterator[Path]:
    """Yield the folders that setuptools leaves beside a package that it builds."""
    for pattern in ("build", "*.egg-info", "src/*.egg-info"):
        yield from folder.glob(pattern)


def _of_repository(source: PackageSource, cache: Path) -> str:
    """Return the requirement for a package in a repository, cloned and built."""
    url, _, fragment = source.place.removeprefix(_GIT).partition("#")
    _refuse_secret(source.text, url)
    head, slash, last = url.rpartition("/")
    last, _, revision = last.partition("@")
    said = parse_qs(fragment)
    within, named = said.get("subdirectory", [""])[0], said.get("egg", [""])[0]
    with temporary_folder("repository") as scratch:
        clone = scratch / "clone"
        _git(source, "clone", "--quiet", f"{head}{slash}{last}", str(clone))
        if revision:
            _git(source, "-C", str(clone), "checkout", "--quiet", "--detach", revision)
        folder = (clone / within).resolve()
        if not folder.is_relative_to(clone.resolve()):
            raise UsageError(f"--with {source.text!r}: {within} is not a folder of the repository")
        name = source.name or named.partition("[")[0]
        found = PackageSource(text=source.text, place=str(folder), name=name, extras=source.extras)
        return _of_path(found, folder, cache)


def _git(source: PackageSource, *arguments: str) -> None:
    try:
        done = subprocess.run(
            ["git", "-c", "advice.detachedHead=false", *arguments],
            capture_output=True, text=True, errors="replace", check=False,
            timeout=_CLONE_TIMEOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise InfrastructureError(f"git: does not run: {describe_os_error(error)}") from error
    except subprocess.TimeoutExpired:
        raise InfrastructureError(
            f"--with {source.text!r}: git gave no answer within {_CLONE_TIMEOUT:g} s"
        ) from None
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise UsageError(mask_text(f"--with {source.text!r}: git: {said}"))


def _store_wheel(source: PackageSource, wheel: Path, cache: Path) -> str:
    """Keep a wheel by its content, whenever it was built, and return the requirement for it."""
    try:
        name, *_ = parse_wheel_filename(wheel.name)
        with zipfile.ZipFile(wheel) as files:
            content = sorted((entry.filename, entry.CRC) for entry in files.infolist())
            extras = _extras_of(files)
        digest = hashlib.sha256(repr(content).encode()).hexdigest()[:24]
        kept = cache / WHEELS / digest / wheel.name
        if not kept.exists():
            write_atomically(kept, wheel.read_bytes())
    except (OSError, InvalidWheelFilename, zipfile.BadZipFile) as error:
        raise UsageError(f"{wheel}: is no wheel: {error}") from None
    found = parse_requirement(f"{name}{source.extras} @ {kept.as_uri()}")
    if source.name and canonicalize_name(source.name) != name:
        raise UsageError(f"--with {source.text!r}: the package there is {name}, not {source.name}")
    if unknown := sorted(found.extras - extras):
        known = ", ".join(sorted(extras)) or "none"
        raise UsageError(
            f"--with {source.text!r}: {name} has no extra {unknown[0]!r}, expected one of: {known}"
        )
    return str(found)


def _extras_of(wheel: zipfile.ZipFile) -> set[str]:
    """Return the extras that a wheel declares, in the spelling of requirements."""
    for name in wheel.namelist():
        if name.endswith(".dist-info/METADATA") and name.count("/") == 1:
            metadata = BytesParser().parsebytes(wheel.read(name), headersonly=True)
            said = metadata.get_all("Provides-Extra") or []
            return {*said, *map(canonicalize_name, said)}
    return set()
