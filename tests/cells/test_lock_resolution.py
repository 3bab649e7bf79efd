"""Locks: resolved as of a date, and found in matrix folders and in the cache."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.cells import lock as lock_module
from conformance.cells.cell import Cell
from conformance.cells.interpreter_inspection import PathEnvironment
from conformance.cells.lock import (
    Lock,
    UnsupportedHostError,
    check_host,
    get_host,
    read_lock,
    store_lock,
)
from conformance.cells.lock_resolution import find_lock, resolve_lock
from conformance.cells.nightly_index import NightlyIndex
from conformance.errors import InfrastructureError, UsageError

from .builders import MATRICES, table

if TYPE_CHECKING:
    from conformance.cells.releases import Releases

    from .fake_index import FakeIndex

CELL = Cell(release="0.6.0", python="3.11")


@pytest.fixture
def releases() -> Releases:
    """One release of 2025-01-31, and flax as an additional package."""
    return replace(table("0.6.0"), packages=("flax",))


@pytest.fixture
def upstream(index: FakeIndex) -> FakeIndex:
    """An index with jax 0.6.0, and a NumPy of its time and a later one."""
    index.add("jax", "0.6.0", requires="numpy")
    index.add("jaxlib", "0.6.0")
    index.add("flax", "0.1.0")
    index.add("numpy", "2.0.0")
    index.add("numpy", "2.1.0", day="2025-02-01")
    index.add("numpy", "2.2.0", day="2025-02-02")
    return index


def test_era_lock_ignores_later_uploads(
    releases: Releases, upstream: FakeIndex, tmp_path: Path
) -> None:
    """Dependencies are those of one day after the release; the lock has hashes but no URLs."""
    lock = resolve_lock(CELL, releases, work=tmp_path)
    assert lock.pins == {"flax": "0.1.0", "jax": "0.6.0", "jaxlib": "0.6.0", "numpy": "2.1.0"}
    assert lock.headers["exclude-newer"] == "2025-02-02T00:00:00Z"
    assert lock.headers["hosts"] == "linux-x86_64 linux-aarch64 macos-arm64"
    assert upstream.projects["numpy"][1]["hashes"]["sha256"] in lock.text
    assert "://" not in lock.text


def test_latest_lock_has_the_newest_dependencies(
    releases: Releases, upstream: FakeIndex, tmp_path: Path
) -> None:
    """`latest` is what the release admits today."""
    lock = resolve_lock(replace(CELL, deps="latest"), releases, work=tmp_path)
    assert lock.pins["numpy"] == "2.2.0"


def test_pins_override_other_requirements(
    releases: Releases, upstream: FakeIndex, tmp_path: Path
) -> None:
    """The pins of a cell apply, also those of additional packages."""
    cell = replace(CELL, pins=("numpy==2.0.0", "flax==0.1.0"))
    lock = resolve_lock(cell, releases, work=tmp_path)
    assert lock.pins["numpy"] == "2.0.0"
    assert lock.headers["environment"] == "jax0.6.0-py311-flax0.1.0-numpy2.0.0"


def test_pin_may_be_newer_than_the_era(
    releases: Releases, upstream: FakeIndex, tmp_path: Path
) -> None:
    """Only packages that are not pinned are as of the release date."""
    lock = resolve_lock(replace(CELL, pins=("numpy==2.2.0",)), releases, work=tmp_path)
    assert lock.pins["numpy"] == "2.2.0"


def test_conflicting_package_is_left_out_with_the_reason(
    releases: Releases, upstream: FakeIndex, tmp_path: Path
) -> None:
    """A flax that requires another jax is left out, and the lock has the reason."""
    upstream.projects["flax"].clear()
    upstream.add("flax", "0.2.0", requires="jax>=0.7")
    lock = resolve_lock(CELL, releases, work=tmp_path)
    assert "flax" not in lock.pins
    assert re.search(r"^# without flax: .*jax>=0\.7", lock.text, re.MULTILINE)


def test_host_without_wheels_is_not_listed(
    releases: Releases, upstream: FakeIndex, tmp_path: Path
) -> None:
    """A lock lists its hosts; any other host is refused."""
    upstream.projects["jaxlib"].clear()
    upstream.add("jaxlib", "0.6.0", tag="cp311-cp311-manylinux2014_x86_64")
    upstream.add("jaxlib", "0.6.0", tag="cp311-cp311-macosx_11_0_arm64")
    lock = resolve_lock(CELL, releases, work=tmp_path)
    assert lock.headers["hosts"] == "linux-x86_64 macos-arm64"
    assert lock.text.count("--hash") == len(lock.pins) + 1


def test_unsupported_host_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names this host and the supported ones."""
    monkeypatch.setattr(lock_module, "get_host", lambda: "linux-riscv64")
    lock = read_lock(MATRICES / "locks" / "jax0.6.0-py311.txt")
    assert lock is not None
    with pytest.raises(UnsupportedHostError, match="no wheels for linux-riscv64, only for linux-x"):
        check_host(lock)


def test_conflicting_pins_are_a_usage_error(
    releases: Releases, upstream: FakeIndex, tmp_path: Path
) -> None:
    """The message names the cell."""
    cell = replace(CELL, pins=("numpy==1.0",))
    with pytest.raises(UsageError, match=r"numpy1.0: no environment satisfies it.*numpy==1.0"):
        resolve_lock(cell, releases, work=tmp_path)


def test_python_without_wheels_is_a_usage_error(releases: Releases, tmp_path: Path) -> None:
    """Reported before anything is resolved."""
    with pytest.raises(UsageError, match=r"on python 3.13; expected one of 3.11, 3.12"):
        resolve_lock(replace(CELL, python="3.13"), releases, work=tmp_path)


def test_unreachable_index_is_infra(
    releases: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message contains no secret."""
    monkeypatch.setenv("CONFORMANCE_INDEX_URL", "http://user:secret@127.0.0.1:9/index/")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    with pytest.raises(InfrastructureError, match="Connection refused") as caught:
        resolve_lock(CELL, releases, work=tmp_path)
    assert not isinstance(caught.value, UsageError)
    assert "secret" not in str(caught.value)


def test_lock_is_resolved_once(releases: Releases, upstream: FakeIndex, tmp_path: Path) -> None:
    """Then it is read from the cache, without a request to the index."""
    first = find_lock(CELL, releases, folders=[], cache=tmp_path)
    upstream.projects.clear()
    second = find_lock(CELL, releases, folders=[], cache=tmp_path)
    assert second.hash == first.hash
    assert second.path == tmp_path / "locks" / "jax0.6.0-py311.txt"


def test_cached_latest_lock_is_valid_for_a_day(
    releases: Releases, upstream: FakeIndex, tmp_path: Path
) -> None:
    """A committed `latest` lock stays valid."""
    cell = replace(CELL, deps="latest")
    lock = find_lock(cell, releases, folders=[], cache=tmp_path)
    old = re.sub(r"exclude-newer: \S+", "exclude-newer: 2025-03-01T00:00:00Z", lock.text)
    lock.path.write_text(old)
    assert find_lock(cell, releases, folders=[], cache=tmp_path).text != old
    store_lock(Lock(text=old, path=lock.path), tmp_path / "matrix" / "locks")
    assert find_lock(cell, releases, folders=[tmp_path / "matrix"], cache=tmp_path).text == old


def test_committed_lock_comes_first(real_releases: Releases, tmp_path: Path) -> None:
    """No request to the index for a release with a committed lock."""
    lock = find_lock(CELL, real_releases, folders=[MATRICES], cache=tmp_path)
    assert lock.path == MATRICES / "locks" / "jax0.6.0-py311.txt"


def test_committed_lock_for_other_packages_is_passed_over(
    real_releases: Releases, upstream: FakeIndex, tmp_path: Path
) -> None:
    """If another additional package is requested."""
    more = replace(real_releases, packages=("flax", "numpy"))
    lock = find_lock(CELL, more, folders=[MATRICES], cache=tmp_path)
    assert lock.path.is_relative_to(tmp_path)


def test_every_release_has_a_committed_lock(real_releases: Releases, tmp_path: Path) -> None:
    """All releases, on their default Python, with flax, with hashes and without URLs."""
    for row in real_releases.rows:
        cell = Cell(release=row.version, python=real_releases.find_python(row.version))
        lock = find_lock(cell, real_releases, folders=[MATRICES], cache=tmp_path)
        assert (lock.pins["jax"], lock.pins["jaxlib"]) == (row.version, row.jaxlib)
        assert "flax" in lock.pins
        assert lock.text.count("==") - len(lock.headers["requires"].split("==")) + 1 == len(
            lock.pins
        )
        assert "://" not in lock.text


@pytest.mark.parametrize(
    ("platform", "wheel", "first"),
    [("tpu:v5e:2x2", "libtpu", "0.4.35"), ("cuda:h100:1x1x4", "jax-cuda12-pjrt", "0.4.30")],
)
def test_compile_only_releases_have_committed_locks(
    platform: str, wheel: str, first: str, real_releases: Releases, tmp_path: Path
) -> None:
    """With flax, the jaxlib of the release and the plugin, without checkpoint packages."""
    for row in real_releases.rows[real_releases.versions.index(first) :]:
        python = real_releases.find_python(row.version)
        cell = Cell(release=row.version, python=python, platform=platform)
        lock = find_lock(cell, real_releases, folders=[MATRICES], cache=tmp_path)
        assert lock.path.parent == MATRICES / "locks"
        assert (lock.pins["jax"], lock.pins["jaxlib"]) == (row.version, row.jaxlib)
        assert {wheel, "flax"} <= lock.pins.keys()
        assert not {"orbax-checkpoint", "tensorstore", "libtpu-nightly"} & lock.pins.keys()


def test_compile_only_cell_has_no_checkpoint_packages(
    releases: Releases, upstream: FakeIndex, tmp_path: Path
) -> None:
    """Unless they are pinned; a CPU cell has them."""
    upstream.projects["flax"].clear()
    upstream.add("flax", "0.1.0", requires="tensorstore")
    upstream.add("tensorstore", "0.1.0")
    upstream.projects["jax"].clear()
    upstream.add("jax", "0.6.0", requires="libtpu")
    upstream.add("libtpu", "0.0.1", day="2025-02-05")
    tpu = replace(CELL, platform="tpu:v5e:2x2", devices=0)
    lock = resolve_lock(tpu, releases, work=tmp_path)
    assert lock.pins["libtpu"] == "0.0.1"
    assert "tensorstore" not in lock.pins
    assert lock.headers["left out"] == "libtpu-nightly orbax-checkpoint tensorstore"
    pinned = resolve_lock(replace(tpu, pins=("tensorstore==0.1.0",)), releases, work=tmp_path)
    assert pinned.pins["tensorstore"] == "0.1.0"
    upstream.projects["jax"].clear()
    upstream.add("jax", "0.6.0")
    assert "tensorstore" in resolve_lock(CELL, releases, work=tmp_path).pins


def test_release_without_libtpu_is_refused(
    releases: Releases, upstream: FakeIndex, tmp_path: Path
) -> None:
    """One line with the requirement, without the proof of the resolver."""
    cell = replace(CELL, platform="tpu:v5e:2x2", devices=0)
    said = r"^jax0.6.0-py311-tpu.v5e.2x2: jax 0.6.0 requires libtpu-nightly, which no package index"
    with pytest.raises(UsageError, match=said):
        resolve_lock(cell, releases, work=tmp_path)


def test_rocm_cell_has_no_lock(releases: Releases, tmp_path: Path) -> None:
    """For every release, before a lock is looked up."""
    cell = replace(CELL, platform="rocm:mi300x:1x1x4", devices=0)
    with pytest.raises(UsageError, match=r"rocm.mi300x.1x1x4: no release compiles for ROCm"):
        find_lock(cell, releases, folders=[MATRICES], cache=tmp_path)


def test_refusal_has_only_the_premises(
    releases: Releases, upstream: FakeIndex, tmp_path: Path
) -> None:
    """The conclusions of the resolver add nothing."""
    with pytest.raises(UsageError) as caught:
        resolve_lock(replace(CELL, pins=("numpy==1.0",)), releases, work=tmp_path)
    assert "there is no version of numpy==1.0" in str(caught.value)
    assert "conclude" not in str(caught.value)


def test_lock_of_another_format_is_rejected(tmp_path: Path, releases: Releases) -> None:
    """The message names the file, with the found and the expected header."""
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "jax0.6.0-py311.txt").write_text("jax==0.6.0\n")
    with pytest.raises(InfrastructureError, match=r"got 'jax==0.6.0', expected '# jax-conformance"):
        find_lock(CELL, releases, folders=[tmp_path], cache=tmp_path)


def test_lock_of_a_path_cell_lists_its_packages(
    releases: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An existing environment has a lock, too."""
    found = PathEnvironment(
        interpreter=Path(sys.executable), version="3.11.9", packages={"jax": "0.7.0.dev1"}
    )
    monkeypatch.setattr(
        "conformance.cells.lock_resolution.inspect_path_environment", lambda path: found
    )
    cell = Cell(release=f"path:{sys.executable}", python="3.11")
    lock = find_lock(cell, releases, folders=[], cache=tmp_path)
    assert lock.pins == {"jax": "0.7.0.dev1"}
    with pytest.raises(InfrastructureError, match=r"is python 3.11.9, the cell expects 3.12"):
        find_lock(replace(cell, python="3.12"), releases, folders=[], cache=tmp_path)


def test_host_is_system_and_machine() -> None:
    """As in the headers of locks."""
    assert re.fullmatch(r"(linux|macos)-(x86_64|aarch64|arm64)", get_host())


NIGHT = "0.8.3.dev20251120"


@pytest.fixture
def night(upstream: FakeIndex, nightly: FakeIndex) -> Releases:
    """Releases with a nightly that requires NumPy; both indexes have misleading packages."""
    tag = "cp311-cp311-manylinux2014_x86_64"
    nightly.add("jax", NIGHT, requires=f"jaxlib<={NIGHT},>=0.6")
    nightly.add("jaxlib", NIGHT, tag=tag, requires="numpy")
    upstream.add("jax", NIGHT)
    upstream.add("jaxlib", NIGHT, tag=tag)
    nightly.add("numpy", "2.3.0")
    upstream.add("numpy", "2.3.0", day="2025-11-19")
    upstream.add("numpy", "2.4.0.dev20251120", day="2025-11-19")
    upstream.add("flax", "0.3.0.dev1", day="2025-11-19")
    return nightlies_beside(replace(table("0.6.0"), packages=("flax",)))


def nightlies_beside(releases: Releases) -> Releases:
    """Return releases with the index of nightlies that the environment names."""
    return replace(releases, find_nightlies=lambda: NightlyIndex(lambda: "", releases.rows))


def night_cell(releases: Releases, **more: Any) -> Cell:
    """Return a cell of the nightly."""
    return Cell(release=NIGHT, python=releases.find_python(NIGHT), **more)


def test_only_nightlies_come_from_the_nightly_index(
    night: Releases, upstream: FakeIndex, nightly: FakeIndex, tmp_path: Path
) -> None:
    """Neither a NumPy of that index, nor a jax of that version from another."""
    lock = find_lock(night_cell(night), night, folders=[], cache=tmp_path)
    assert lock.pins == {"flax": "0.1.0", "jax": NIGHT, "jaxlib": NIGHT, "numpy": "2.3.0"}
    for name in ("jax", "jaxlib"):
        assert nightly.projects[name][0]["hashes"]["sha256"] in lock.text
        assert upstream.projects[name][-1]["hashes"]["sha256"] not in lock.text
    assert lock.nightlies == ("jax", "jaxlib")
    assert lock.nightly_index == nightly.url
    assert "://" not in lock.text
    assert lock.headers["exclude-newer"] == "2025-11-22T00:00:00Z"
    assert "/index/numpy/" not in nightly.requests


def test_other_pre_releases_are_not_installed_with_a_nightly(
    night: Releases, upstream: FakeIndex, nightly: FakeIndex, tmp_path: Path
) -> None:
    """Even if a package requires a version that only a nightly satisfies."""
    upstream.add("flax", "0.2.0", requires="jax>=0.8.3.dev0", day="2025-11-19")
    upstream.add("flax", "0.9.0.dev1", day="2025-11-19")
    lock = resolve_lock(night_cell(night), night, work=tmp_path)
    assert lock.pins["flax"] == "0.2.0"


def test_nightly_with_a_released_jaxlib(
    night: Releases, upstream: FakeIndex, nightly: FakeIndex, tmp_path: Path
) -> None:
    """The jaxlib comes from the package index."""
    nightly.projects.pop("jaxlib")
    lock = resolve_lock(night_cell(night), night, work=tmp_path)
    assert (lock.pins["jax"], lock.pins["jaxlib"]) == (NIGHT, "0.6.0")
    assert lock.nightlies == ("jax",)


def test_release_with_a_pinned_nightly_jaxlib(
    night: Releases, nightly: FakeIndex, tmp_path: Path
) -> None:
    """The nightly comes from its index."""
    cell = replace(CELL, pins=(f"jaxlib=={NIGHT}",))
    lock = resolve_lock(cell, night, work=tmp_path)
    assert (lock.pins["jax"], lock.pins["jaxlib"]) == ("0.6.0", NIGHT)
    assert lock.nightlies == ("jaxlib",)


@pytest.fixture
def plugins(upstream: FakeIndex, nightly: FakeIndex) -> None:
    """Plugins and libtpu, of the date of the nightly and of other dates."""
    for version in ("0.0.30.dev20251118", "0.0.30.dev20251121"):
        nightly.add("libtpu", version)
    for name in ("jax-cuda12-plugin", "jax-cuda12-pjrt"):
        nightly.add(name.replace("-", "_"), NIGHT, project=name)
    upstream.add("nvidia_cuda_nvcc_cu12", "12.9", project="nvidia-cuda-nvcc-cu12")


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("tpu:v5e:2x2", {"libtpu": "0.0.30.dev20251118"}),
        ("cuda:h100:1x1x4", {"jax-cuda12-plugin": NIGHT, "jax-cuda12-pjrt": NIGHT}),
        ("gpu", {"jax-cuda12-plugin": NIGHT, "jax-cuda12-pjrt": NIGHT}),
    ],
)
def test_platform_requirements_of_a_nightly(
    night: Releases, tmp_path: Path, platform: str, expected: dict[str, str]
) -> None:
    """Plugins of the same date; the newest libtpu of that date."""
    lock = resolve_lock(night_cell(night, platform=platform), night, work=tmp_path)
    assert set(lock.nightlies) == {"jax", "jaxlib", *expected}
    assert expected.items() <= lock.pins.items()


def test_locked_nightly_stays_usable(
    night: Releases, nightly: FakeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If its wheels are deleted, or the index does not answer or is not configured."""
    cell = night_cell(night)
    lock = find_lock(cell, night, folders=[], cache=tmp_path)
    nightly.projects["jax"].pop()
    nightly.add("jax", "0.8.3.dev20251121", requires="jaxlib")
    gone = nightlies_beside(night)
    assert find_lock(cell, gone, folders=[], cache=tmp_path).text == lock.text
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", "http://127.0.0.1:9/index/")
    silent = nightlies_beside(night)
    assert find_lock(cell, silent, folders=[], cache=tmp_path).text == lock.text
    monkeypatch.delenv("CONFORMANCE_NIGHTLY_INDEX")
    unset = nightlies_beside(night)
    assert find_lock(cell, unset, folders=[], cache=tmp_path).text == lock.text
    with pytest.raises(InfrastructureError, match="refused"):
        find_lock(
            replace(cell, x64=True, pins=("flax==0.1.0",)), silent, folders=[], cache=tmp_path
        )


def test_nightly_that_vanishes_before_resolution_has_no_lock(
    night: Releases, nightly: FakeIndex, tmp_path: Path
) -> None:
    """Between the lookup in the index and the resolution."""
    cell = night_cell(night)
    night.get(NIGHT)
    nightly.projects["jax"].clear()
    with pytest.raises(UsageError, match=f"no environment satisfies it: .*jax=={NIGHT}"):
        find_lock(cell, night, folders=[], cache=tmp_path)
