"""Requirements in every form that pip accepts: names, folders, archives, URLs, repositories."""

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

from conformance.cells.overlay import DIGITS, WHEELS
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
"""Seconds that a command of git may take."""


def parse_requirement(text: str) -> Requirement:
    """Return a requirement.

    Args:
        text: Requirement, e.g. `optax>=0.2`.

    Raises:
        UsageError: If it is not valid, or contains a secret, which would be stored with the run.
    """
    try:
        found = Requirement(text)
    except InvalidRequirement as error:
        problem = str(error).splitlines()[0].lower()
        raise UsageError(
            mask_text(f"requirement {text!r}: {problem}, expected e.g. 'optax>=0.2'")
        ) from None
    if found.url:
        _check_no_secret(text, found.url)
    return found


def _check_no_secret(text: str, url: str) -> None:
    """Raise a UsageError for a URL with a password, or with a token as its user name."""
    parts = urlsplit(url)
    # ssh URLs have a user name that is no secret, e.g. git@github.com.
    token = parts.username and parts.scheme.rpartition("+")[2] in {"http", "https"}
    if parts.password or token:
        raise UsageError(
            f"{mask_text(text)}: contains a password or a token, which would be stored with the "
            "run; put it into a netrc file, or set UV_INDEX to an index that has the package"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSource:
    """The source of a package that is built locally.

    Attributes:
        text: Requirement as given, for messages.
        place: Path or `git+` URL.
        name: Name of the package, empty if not given.
        extras: Extras in brackets, empty for none.
    """

    text: str
    place: str
    name: str = ""
    extras: str = ""

    @property
    def is_git(self) -> bool:
        """Whether it is a Git repository."""
        return self.place.startswith(_GIT)

    @property
    def path(self) -> Path:
        """Path of a folder or an archive."""
        return Path(self.place).expanduser()


def parse_source(text: str) -> PackageSource | None:
    """Return the source of a package, None if it comes from an index or a URL.

    Args:
        text: Requirement: `./pkg`, `pkgs/mine[extra]`, `mine.whl`, `file:///pkg`,
            `mine[extra] @ ./pkg`, `git+https://host/repo@rev#subdirectory=pkg`, or one of PEP 508.

    Raises:
        UsageError: If it is an option of pip.
    """
    text = text.strip()
    if text.startswith("-"):
        raise UsageError(
            f"--with {text!r}: expected one requirement, no option of pip; give a folder "
            "without -e, it is built from its current content; give each line of a requirements "
            "file in a --with of its own"
        )
    if named := _NAMED.fullmatch(text):
        place, name, extras = named["place"], named["name"], named["extras"] or ""
        found = _find_place(place)
        return PackageSource(text=text, place=found, name=name, extras=extras) if found else None
    if found := _find_place(text):
        # Brackets are extras only if no file has that name.
        split = None if Path(found).expanduser().exists() else _EXTRAS.fullmatch(found)
        if split is None:
            return PackageSource(text=text, place=found)
        return PackageSource(text=text, place=split["place"], extras=split["extras"])
    return None


def _find_place(text: str) -> str:
    """Return a path or a `git+` URL, empty if the text is neither."""
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
    """Return a PEP 508 requirement; a package in a folder, an archive or a repository is built.

    Args:
        text: Requirement in any form of `parse_source`. A returned requirement is returned
            unchanged by a second call.
        cache: Cache folder; built wheels are stored in it by their content.

    Raises:
        UsageError: If the requirement is not valid.
        UvError: If the package cannot be built.
        InfrastructureError: If the disk fails or git does not answer.
    """
    source = parse_source(text)
    if source is None:
        return str(parse_requirement(_name_wheel_url(text)))
    if source.is_git:
        return _build_repository(source, cache)
    return _build_path(source, source.path, cache)


def _name_wheel_url(text: str) -> str:
    """Return the URL of a wheel with the name of its package in front; else the text."""
    if "://" not in text or _NAMED.fullmatch(text):
        return text
    _check_no_secret(text, text)
    file = unquote(urlsplit(text).path).rpartition("/")[2]
    try:
        name, *_ = parse_wheel_filename(file)
    except InvalidWheelFilename:
        raise UsageError(
            f"--with {mask_text(text)}: expected NAME @ URL, or the URL of a wheel"
        ) from None
    return f"{name} @ {text}"


def make_absolute(text: str) -> str:
    """Return a requirement whose path does not depend on the working directory.

    Args:
        text: As for `build_requirement`.
    """
    source = parse_source(text)
    if source is None or source.is_git:
        return text
    path = source.path.absolute()
    if source.name:
        return f"{source.name}{source.extras} @ {path.as_uri()}"
    return f"{path}{source.extras}"


def _build_path(source: PackageSource, path: Path, cache: Path) -> str:
    if path.suffix == ".whl":
        return _store_wheel(source, path, cache)
    if not path.exists():
        raise UsageError(f"--with {source.text!r}: {path}: no such file or folder")
    is_package = any((path / name).is_file() for name in ("pyproject.toml", "setup.py"))
    if not is_package and not path.name.endswith(_ARCHIVES):
        raise UsageError(f"{path}: has no pyproject.toml, expected the folder of a package")
    before = set(_list_build_folders(path))
    with temporary_folder("overlay") as scratch:
        try:
            # By default uv uses the first Python on PATH, or downloads the newest.
            where = ("--python", sys.executable, "--out-dir", scratch)
            run_uv(["build", "--wheel", *where, path.resolve()], cwd=scratch)
        finally:
            for created in set(_list_build_folders(path)) - before:
                shutil.rmtree(created, ignore_errors=True)
        (wheel,) = scratch.glob("*.whl")
        return _store_wheel(source, wheel, cache)


def _list_build_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders that setuptools creates in the source folder of a package."""
    # setuptools would pack files of an old `build` folder into the next wheel.
    for pattern in ("build", "*.egg-info", "src/*.egg-info"):
        yield from folder.glob(pattern)


def _build_repository(source: PackageSource, cache: Path) -> str:
    """Clone a repository, build its package, and return the requirement for the wheel."""
    url, _, fragment = source.place.removeprefix(_GIT).partition("#")
    _check_no_secret(source.text, url)
    head, slash, last = url.rpartition("/")
    # Only in the last part: an earlier `@` belongs to the user, as in git@host.
    last, _, revision = last.partition("@")
    options = parse_qs(fragment)
    subdirectory, egg = (options.get(key, [""])[0] for key in ("subdirectory", "egg"))
    with temporary_folder("repository") as scratch:
        clone = scratch / "clone"
        # Whole, not shallow: the revision may be any commit.
        _run_git(source, "clone", "--quiet", f"{head}{slash}{last}", str(clone))
        if revision:
            _run_git(source, "-C", str(clone), "checkout", "--quiet", "--detach", revision)
        folder = (clone / subdirectory).resolve()
        # The subdirectory may be `../..`, or a link in the repository.
        if not folder.is_relative_to(clone.resolve()):
            raise UsageError(
                f"--with {source.text!r}: {subdirectory} is not a folder of the repository"
            )
        name = source.name or egg.partition("[")[0]
        found = PackageSource(text=source.text, place=str(folder), name=name, extras=source.extras)
        return _build_path(found, folder, cache)


def _run_git(source: PackageSource, *arguments: str) -> None:
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
        problem = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise UsageError(mask_text(f"--with {source.text!r}: git: {problem}"))


def _store_wheel(source: PackageSource, wheel: Path, cache: Path) -> str:
    """Store a wheel in the cache by its content, and return the requirement for it."""
    try:
        name, *_ = parse_wheel_filename(wheel.name)
        with zipfile.ZipFile(wheel) as files:
            # Not the hash of the file, which contains the time of the build.
            content = sorted((entry.filename, entry.CRC) for entry in files.infolist())
            extras = _read_extras(files)
        digest = hashlib.sha256(repr(content).encode()).hexdigest()[:DIGITS]
        stored = cache / WHEELS / digest / wheel.name
        # Never overwritten: another process may be installing it, and its content is the same.
        if not stored.exists():
            write_atomically(stored, wheel.read_bytes())
    except (OSError, InvalidWheelFilename, zipfile.BadZipFile) as error:
        raise UsageError(f"{wheel}: not a wheel: {error}") from None
    found = parse_requirement(f"{name}{source.extras} @ {stored.as_uri()}")
    if source.name and canonicalize_name(source.name) != name:
        raise UsageError(
            f"--with {source.text!r}: it contains the package {name}, not {source.name}"
        )
    if unknown := sorted(found.extras - extras):
        known = ", ".join(sorted(extras)) or "none"
        raise UsageError(
            f"--with {source.text!r}: {name} has no extra {unknown[0]!r}, expected one of: {known}"
        )
    return str(found)


def _read_extras(wheel: zipfile.ZipFile) -> set[str]:
    """Return the extras of a wheel, as written and in normalised form."""
    for name in wheel.namelist():
        if name.endswith(".dist-info/METADATA") and name.count("/") == 1:
            metadata = BytesParser().parsebytes(wheel.read(name), headersonly=True)
            extras = metadata.get_all("Provides-Extra") or []
            return {*extras, *map(canonicalize_name, extras)}
    return set()
