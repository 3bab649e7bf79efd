"""An index of nightlies: what it has, what goes together, and all the ways it may not answer."""

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
    """Return the index that the environment names, beside released jaxlibs of before and after."""
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
def test_nights_with_the_jaxlib_of_the_same_day(three: FakeIndex, html: bool) -> None:
    """In order, final releases left out; of a complete page nothing else is asked for."""
    three.html = html
    index = opened()
    assert index.versions == (FIRST, SECOND, THIRD)
    row = index.get(THIRD)
    assert (row.version, row.jaxlib, row.pythons) == (THIRD, THIRD, ("3.11", "3.12"))
    assert (row.requires_python, row.date.date()) == (">=3.9", date(2025, 11, 20))
    assert three.requests == ["/index/jax/", "/index/jaxlib/"]


def test_a_night_without_a_jaxlib_takes_the_newest_before_it(three: FakeIndex) -> None:
    """That its requirement admits; a later one would be another night's change."""
    row = opened().get(SECOND)
    assert (row.jaxlib, row.jaxlib_requires) == (FIRST, f"<={SECOND},>=0.8.1")


def test_a_night_may_go_with_a_released_jaxlib(nightly: FakeIndex) -> None:
    """Of before that night, where the index has no jaxlib at all."""
    nightly.add("jax", SECOND, requires=f"jaxlib<={SECOND},>=0.8.1")
    assert opened().get(SECOND).jaxlib == "0.8.2"


def test_a_night_that_nothing_goes_with_cannot_be_installed(three: FakeIndex) -> None:
    """Said with what it wants."""
    version = "0.8.2.dev20251117"
    three.add("jax", version, requires="jaxlib>=0.8.2")
    with pytest.raises(NotInstallableError, match=r"jaxlib >=0.8.2, and the index has none"):
        opened().get(version)


def test_a_page_that_does_not_say_which_python(three: FakeIndex) -> None:
    """The wheel says it."""
    three.requires_python = False
    row = opened().get(THIRD)
    assert row.requires_python == ""
    assert f"/files/jax-{THIRD}-py3-none-any.whl" in three.requests


def test_yanked_nights_are_left_out(three: FakeIndex) -> None:
    """As if they were not there."""
    three.projects["jax"][0]["yanked"] = "broken"
    assert opened().versions == (FIRST, SECOND)


def test_the_newest_of_another_package(three: FakeIndex) -> None:
    """Not later than a night; a package that is not there has none."""
    index = opened()
    assert index.find_newest("jaxlib", date(2025, 11, 19)) == FIRST
    assert index.find_newest("jaxlib", date(2025, 11, 1)) is None
    assert index.find_newest("libtpu", date(2025, 11, 19)) is None


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment comes before the project; where neither says anything it is JAX's own."""
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
    """Serve one answer to whatever is asked, maybe late, and return the URL."""
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
def test_what_is_no_index_is_infrastructure(
    serve_page: Serve, status: int, kind: str, body: bytes, message: str
) -> None:
    """For nightlies and for a package alike, in one line without credentials."""
    url = serve_page(status, kind, body)
    with pytest.raises(InfrastructureError, match=message) as nights:
        NightlyIndex(lambda: url).versions  # noqa: B018
    assert "secret" not in str(nights.value)
    expected = UsageError if status == 404 else InfrastructureError  # no such package
    with pytest.raises(expected) as versions:
        list_versions("numpy", url=url)
    assert "secret" not in str(versions.value)


def test_an_index_of_something_else_is_infrastructure(nightly: FakeIndex) -> None:
    """One with jax, but no nightly of it."""
    nightly.add("jax", "0.8.2")
    with pytest.raises(InfrastructureError, match="has no nightly of jax, expected wheels like"):
        opened().versions  # noqa: B018


def test_an_index_that_hangs_is_given_up(
    serve_page: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bounded time."""
    monkeypatch.setattr(package_index, "TIMEOUT", 0.3)
    url = serve_page(200, "text/html", b"", late=True)
    began = time.monotonic()
    with pytest.raises(InfrastructureError, match=r"[Tt]imed out.*set CONFORMANCE_NIGHTLY_INDEX"):
        NightlyIndex(lambda: url).versions  # noqa: B018
    with pytest.raises(InfrastructureError, match=r"[Tt]imed out.*set CONFORMANCE_INDEX_URL"):
        list_versions("numpy", url=url)
    assert time.monotonic() - began < 5


def test_an_index_that_refuses_is_told() -> None:
    """Without waiting, by its address, and in the same words every time."""
    url = "http://user:secret@127.0.0.1:9/index/"
    said = r"nightly index http://\*\*\*@127.*refused.*set CONFORMANCE_NIGHTLY_INDEX"
    with pytest.raises(InfrastructureError, match=said) as got:
        NightlyIndex(lambda: url).versions  # noqa: B018
    assert "secret" not in str(got.value)
    assert " object at " not in str(got.value)
    with pytest.raises(InfrastructureError) as another:
        NightlyIndex(lambda: url).versions  # noqa: B018
    assert str(another.value) == str(got.value)


def test_nobody_waits_for_an_answer_twice(
    three: FakeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What failed once has failed, for every cell that asks."""
    index = opened()
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", f"{three.url}nowhere/")
    for _ in range(3):
        with pytest.raises(InfrastructureError, match="404"):
            index.versions  # noqa: B018
    assert three.requests == ["/index/nowhere/jax/"]


def test_a_wheel_that_is_gone_cannot_be_installed(three: FakeIndex) -> None:
    """Though the page names it still; the other nights can."""
    (three.folder / f"jax-{SECOND}-py3-none-any.whl").unlink()
    index = opened()
    with pytest.raises(NotInstallableError, match=f"lists jax-{SECOND}-py3-none-any.whl but no"):
        index.get(SECOND)
    assert index.get(THIRD).jaxlib == THIRD


def test_a_wheel_that_is_none_is_told(three: FakeIndex) -> None:
    """Where its metadata must be looked for in it."""
    (three.folder / f"jax-{SECOND}-py3-none-any.whl").write_bytes(b"not a wheel")
    with pytest.raises(InfrastructureError, match=f"jax-{SECOND}.*: cannot read its metadata"):
        opened().get(SECOND)
