"""Cells in tracks: what differs in nothing but the release stands in one line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conformance.model.run import RunCell
from conformance.report.tracks import group_tracks
from tests.report.runs import cell_of


def names(*ids: str) -> dict[str, list[str]]:
    """Return the tracks of cells, each with its releases."""
    return {
        track.name: [c.release for c in track.cells] for track in group_tracks(map(cell_of, ids))
    }


def test_releases_are_in_the_order_of_their_versions() -> None:
    """0.10 comes after 0.9, whatever order the cells come in."""
    ids = [f"jax{release}-py311-cpu8" for release in ("0.10.2", "0.9.2", "0.4.30")]
    assert names(*ids) == {"cpu8": ["0.4.30", "0.9.2", "0.10.2"]}


def test_a_python_that_follows_from_the_release_makes_no_track() -> None:
    """Releases from 0.11 need Python 3.12; theirs is the same track."""
    assert names("jax0.10.2-py311-cpu8", "jax0.11.2-py312-cpu8") == {"cpu8": ["0.10.2", "0.11.2"]}


def test_pythons_of_one_release_are_tracks_of_their_own() -> None:
    """The Python is then what the cells differ in."""
    found = names("jax0.8.3-py311-cpu8", "jax0.8.3-py313-cpu8", "jax0.9.2-py311-cpu8")
    assert found == {"cpu8 py311": ["0.8.3", "0.9.2"], "cpu8 py313": ["0.8.3"]}


def test_platforms_are_spelled_as_they_are_asked_for() -> None:
    """CPUs first; options and processes stay in the name."""
    found = names(
        "jax0.8.3-py311-tpu.v5e.2x2",
        "jax0.8.3-py311-cpu8-mp2",
        "jax0.8.3-py311-cpu8",
        "jax0.8.3-py311-cuda.h100.1x1x4",
        "jax0.8.3-py311-cpu8-latest-x64",
    )
    assert list(found) == ["cpu8", "cpu8 latest x64", "cpu8 mp2", "tpu:v5e:2x2", "cuda:h100:1x1x4"]
    kinds = [track.kind for track in group_tracks([cell_of("jax0.8.3-py311-tpu.v5e.2x2")])]
    assert kinds == ["tpu"]


def test_an_environment_that_exists_already_is_named() -> None:
    """A `path:` cell has no release in its id: its packages say it."""
    cell = RunCell(id="path-dev-0a1b2c3d-py312-cpu8", versions={"jax": "0.13.0.dev1"})
    (track,) = group_tracks([cell])
    assert (track.name, track.kind) == ("cpu8 path dev", "cpu")


def test_an_environment_is_compared_with_its_release() -> None:
    """With the same, else the newest before it, on the same place; it is in both tracks."""
    path = RunCell(id="path-dev-0a1b2c3d-py311-cpu8", versions={"jax": "0.8.4"})
    ids = ("jax0.8.3-py311-cpu8", "jax0.8.3-py312-cpu8", "jax0.8.3-py311-cpu4",
           "jax0.9.0-py311-cpu8", "jax0.5.3-py311-cpu8")  # fmt: skip
    found = {track.name: track for track in group_tracks([path, *map(cell_of, ids)])}
    track = found["cpu8 path dev"]
    assert [cell.id for cell in track.cells] == [path.id]
    assert [cell.id for cell in track.compared_cells] == ["jax0.8.3-py311-cpu8", path.id]
    assert track.labels == ("0.8.3 (release)", "0.8.4")
    assert all(other.baseline is None for other in found.values() if other is not track)
    newer = RunCell(id=path.id, versions={"jax": "0.8.2"})
    (alone,) = (t for t in group_tracks([newer, cell_of(ids[0])]) if "path" in t.name)
    assert alone.baseline is None


def test_an_id_of_another_make_is_a_track_of_its_own() -> None:
    """A run of a newer release of this project is still shown."""
    (track,) = group_tracks([RunCell(id="something else")])
    assert (track.name, track.kind, track.cells[0].release) == ("something else", "", "")


IDS = [f"jax{r}-py311-{p}" for r in ("0.6.2", "0.8.3") for p in ("cpu8", "tpu.v5e.2x2")]


@given(st.permutations(IDS))
def test_the_order_of_cells_does_not_matter(ids: list[str]) -> None:
    """Runs of many hosts come in any order."""
    assert names(*ids) == names(*IDS)
