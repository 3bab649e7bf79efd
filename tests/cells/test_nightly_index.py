"""An index of nightlies: its versions, matching jaxlibs, and failures to answer."""

from __future__ import annotations

import time
from contextlib import ExitStack
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import msgspec
import pytest

from conformance.cells import package_index
from conformance.cells.nightly import NotInstallableError
from conformance.cells.nightly_index import PUBLIC, NightlyIndex
from conformance.cells.release_index import list_versions
from conformance.errors import InfrastructureError, UsageError

from .builders import release
from .fake_index import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.cells.releases import Release

    from .fake_index import FakeIndex

    Serve = Callable[..., str]

FIRST, SECOND, THIRD = (f"0.8.3.dev202511{day}" for day in (18, 19, 20))


def of_day(version: str, month: int, day: int) -> Release:
    """Return a release of a day of 2025."""
    return msgspec.structs.replace(release(version), date=datetime(2025, month, day, tzinfo=UTC))


def opened() -> NightlyIndex:
    """Return the index of the environment, with jaxlibs released before and after its nightlies."""
    return NightlyIndex(lambda: "", (of_day("0.8.2", 11, 10), of_day("0.8.2.1", 12, 24)))


def add_jaxlib(index: FakeIndex, version: str) -> None:
    """Add the wheels of a jaxlib for two Pythons."""
    for python in ("311", "312"):
        index.add("jaxlib", version, tag=f"cp{python}-cp{python}-manylinux_2_27_x86_64")


@pytest.fixture
def three(nightly: FakeIndex) -> FakeIndex:
    """Three nights of jax; jaxlibs of the first and the third, and of a later one."""
    for version in (THIRD, FIRST, SECOND):
        nightly.add("jax", version, requires=f"jaxlib<={version},>=0.8.1")
    for version in (FIRST, THIRD, "0.8.3.dev20251121"):
        add_jaxlib(nightly, version)
    nightly.add("jax", "0.8.2")
    return nightly


@pytest.mark.parametrize("html", [False, True])
def test_nightlies_have_the_jaxlib_of_the_same_date(three: FakeIndex, html: bool) -> None:
    """In order, without final releases; a complete page needs no more requests."""
    three.html = html
    index = opened()
    assert index.versions == (FIRST, SECOND, THIRD)
    row = index.get(THIRD)
    assert (row.version, row.jaxlib, row.pythons) == (THIRD, THIRD, ("3.11", "3.12"))
    assert (row.requires_python, row.date.date()) == (">=3.9", date(2025, 11, 20))
    assert three.requests == ["/index/jax/", "/index/jaxlib/"]


def test_nightly_without_jaxlib_has_the_newest_before_it(three: FakeIndex) -> None:
    """If its requirement admits it; a later one belongs to another nightly."""
    row = opened().get(SECOND)
    assert (row.jaxlib, row.jaxlib_requires) == (FIRST, f"<={SECOND},>=0.8.1")


def test_nightly_may_have_a_released_jaxlib(nightly: FakeIndex) -> None:
    """One released before it, if the index has no jaxlib."""
    nightly.add("jax", SECOND, requires=f"jaxlib<={SECOND},>=0.8.1")
    assert opened().get(SECOND).jaxlib == "0.8.2"


def test_nightly_without_any_jaxlib_cannot_be_installed(three: FakeIndex) -> None:
    """The message has the requirement."""
    version = "0.8.2.dev20251117"
    three.add("jax", version, requires="jaxlib>=0.8.2")
    with pytest.raises(NotInstallableError, match=r"jaxlib >=0.8.2, and the index has none"):
        opened().get(version)


def test_missing_python_requirement_is_read_from_the_wheel(three: FakeIndex) -> None:
    """A page need not have it."""
    three.requires_python = False
    row = opened().get(THIRD)
    assert row.requires_python == ""
    assert f"/files/jax-{THIRD}-py3-none-any.whl" in three.requests


def test_yanked_nightlies_are_ignored(three: FakeIndex) -> None:
    """As if the index did not have them."""
    three.projects["jax"][0]["yanked"] = "broken"
    assert opened().versions == (FIRST, SECOND)


def test_newest_nightly_of_another_package(three: FakeIndex) -> None:
    """Not later than a date; None for a package that the index lacks."""
    index = opened()
    assert index.find_newest("jaxlib", date(2025, 11, 19)) == FIRST
    assert index.find_newest("jaxlib", date(2025, 11, 1)) is None
    assert index.find_newest("libtpu", date(2025, 11, 19)) is None


def test_url_of_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment comes before the project; the default is JAX's own."""
    monkeypatch.delenv("CONFORMANCE_NIGHTLY_INDEX", raising=False)
    assert NightlyIndex(lambda: "http://project/").url == "http://project/"
    assert NightlyIndex(lambda: "").url == PUBLIC
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", "http://environment/")
    assert NightlyIndex(lambda: "http://project/").url == "http://environment/"
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", "ftp://user:secret@host/")
    with pytest.raises(UsageError, match=r"'ftp://\*\*\*@host/': expected http"):
        NightlyIndex(lambda: "").versions  # noqa: B018 - a property that reads


@pytest.fixture
def serve_page() -> Iterator[Serve]:
    """Serve the same answer to every request, optionally late, and return the URL."""
    with ExitStack() as stack:
        yield lambda *answer, **more: stack.enter_context(serving(*answer, **more))


ANSWERS = [
    (404, "text/plain", b"no such page", "404"),
    (500, "text/plain", b"oh", "500"),
    (200, "text/html", b"<p>\xff\xfe <a>log in first", "without any file"),
    (200, "text/html", b"", "without any file"),
    (200, "application/vnd.pypi.simple.v1+json", b'{"files": 3', "without any file"),
    (200, "application/vnd.pypi.simple.v1+json", b'{"files": 3}', "without any file"),
    (200, "application/vnd.pypi.simple.v1+json", b"[]", "without any file"),
    (200, "image/png", b"\x89PNG", "without any file"),
    (
        200,
        "application/vnd.pypi.simple.v1+json",
        b'{"meta": {"api-version": "9.0"}, "name": "jax", "files": []}',
        "9.0",
    ),
]


@pytest.mark.parametrize(("status", "kind", "body", "message"), ANSWERS)
def test_invalid_index_is_infra(
    serve_page: Serve, status: int, kind: str, body: bytes, message: str
) -> None:
    """For nightlies and for a package, in one line without credentials."""
    url = serve_page(status, kind, body)
    with pytest.raises(InfrastructureError, match=message) as nights:
        NightlyIndex(lambda: url).versions  # noqa: B018
    assert "secret" not in str(nights.value)
    expected = UsageError if status == 404 else InfrastructureError  # no such package
    with pytest.raises(expected) as versions:
        list_versions("numpy", url=url)
    assert "secret" not in str(versions.value)


def test_index_without_nightlies_is_infra(nightly: FakeIndex) -> None:
    """An index with releases of jax only."""
    nightly.add("jax", "0.8.2")
    with pytest.raises(InfrastructureError, match="has no nightly of jax, expected wheels like"):
        opened().versions  # noqa: B018


def test_hanging_index_is_infra(serve_page: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a time limit."""
    monkeypatch.setattr(package_index, "TIMEOUT", 0.3)
    url = serve_page(200, "text/html", b"", late=True)
    began = time.monotonic()
    with pytest.raises(InfrastructureError, match=r"[Tt]imed out.*set CONFORMANCE_NIGHTLY_INDEX"):
        NightlyIndex(lambda: url).versions  # noqa: B018
    with pytest.raises(InfrastructureError, match=r"[Tt]imed out.*set CONFORMANCE_INDEX_URL"):
        list_versions("numpy", url=url)
    assert time.monotonic() - began < 5


def test_refusing_index_is_named() -> None:
    """At once, with its address, and with the same message every time."""
    url = "http://user:secret@127.0.0.1:9/index/"
    said = r"nightly index http://\*\*\*@127.*refused.*set CONFORMANCE_NIGHTLY_INDEX"
    with pytest.raises(InfrastructureError, match=said) as got:
        NightlyIndex(lambda: url).versions  # noqa: B018
    assert "secret" not in str(got.value)
    assert " object at " not in str(got.value)
    with pytest.raises(InfrastructureError) as another:
        NightlyIndex(lambda: url).versions  # noqa: B018
    assert str(another.value) == str(got.value)


def test_failed_request_is_not_repeated(three: FakeIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell gets the first failure."""
    index = opened()
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", f"{three.url}nowhere/")
    for _ in range(3):
        with pytest.raises(InfrastructureError, match="404"):
            index.versions  # noqa: B018
    assert three.requests == ["/index/nowhere/jax/"]


def test_nightly_with_a_deleted_wheel_cannot_be_installed(three: FakeIndex) -> None:
    """Though the page lists it; other nightlies can be installed."""
    (three.folder / f"jax-{SECOND}-py3-none-any.whl").unlink()
    index = opened()
    with pytest.raises(NotInstallableError, match=f"lists jax-{SECOND}-py3-none-any.whl but no"):
        index.get(SECOND)
    assert index.get(THIRD).jaxlib == THIRD


def test_invalid_wheel_is_reported(three: FakeIndex) -> None:
    """If its metadata must be read from it."""
    (three.folder / f"jax-{SECOND}-py3-none-any.whl").write_bytes(b"not a wheel")
    with pytest.raises(InfrastructureError, match=f"jax-{SECOND}.*: cannot read its metadata"):
        opened().get(SECOND)
