"""Stable ids of cells, which are the same in every nightly run."""

from __future__ import annotations

from conformance.cells.nightly import make_stable_cell_ids

EXACT = "jax0.6.2-py311-cpu8-x64"
OWN = "path-env-0123abcd-py311-cpu8"


def nightly(day: int, rest: str = "-cpu8", python: str = "py312") -> str:
    """Return the cell of a nightly."""
    return f"jax0.13.0.dev202605{day:02}-{python}{rest}"


def test_ids_of_releases_and_environments_are_stable() -> None:
    """Texts that are no cell ids are unchanged, too."""
    cells = [EXACT, OWN, "py311", "jax0.6.2.post1-py311-tpu.v5e.2x2"]
    assert make_stable_cell_ids(cells) == {cell: cell for cell in cells}


def test_stable_id_of_a_nightly_has_no_date_and_python() -> None:
    """Its options remain."""
    assert make_stable_cell_ids(
        [nightly(1), nightly(1, "-tpu.v5e.2x2"), nightly(1, "-cpu8-x64"), EXACT]
    ) == {
        nightly(1): "nightly-cpu8",
        nightly(1, "-tpu.v5e.2x2"): "nightly-tpu.v5e.2x2",
        nightly(1, "-cpu8-x64"): "nightly-cpu8-x64",
        EXACT: EXACT,
    }
    assert make_stable_cell_ids([nightly(2, python="py313")]) == {
        nightly(2, python="py313"): "nightly-cpu8"
    }


def test_unresolved_nightly_has_the_stable_id_of_a_resolved_one() -> None:
    """The id that it would have if it were resolved."""
    cells = ["jaxnightly-py312-cpu8", "jaxnightly-py312-tpu.v5e.2x2", "jaxnightly.3-py312-cpu8"]
    places = ["nightly-cpu8", "nightly-tpu.v5e.2x2", "nightly-1-cpu8"]
    assert make_stable_cell_ids(cells) == dict(zip(cells, places, strict=True))
    days = ["jaxnightly.2026.05.01-py312-cpu8", "jaxnightly.2026.05.02-py312-cpu8"]
    assert make_stable_cell_ids(days) == {days[1]: "nightly-cpu8", days[0]: "nightly-1-cpu8"}
    assert make_stable_cell_ids([nightly(3), cells[0]])[cells[0]] == "nightly-1-cpu8"


def test_several_nightlies_have_distinct_stable_ids() -> None:
    """By age, and by Python for the same date."""
    old = "jax0.13.0.dev20260430-py312-cpu8"
    cells = [old, nightly(2), nightly(2, python="py313"), nightly(2, "")]
    assert make_stable_cell_ids(cells) == {
        old: "nightly-1-cpu8",
        nightly(2): "nightly-py312-cpu8",
        nightly(2, python="py313"): "nightly-py313-cpu8",
        nightly(2, ""): "nightly",
    }
