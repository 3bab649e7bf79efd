"""What stands on top of a file of its own."""

from __future__ import annotations

import pytest

from conformance.triage.repro.header import of_nightlies

NIGHT = "0.8.3.dev20251120"


@pytest.mark.parametrize(
    ("versions", "begins"),
    [
        ({"jax": NIGHT, "jaxlib": NIGHT, "numpy": "2.0.0"}, "jax and jaxlib are nightlies: name"),
        ({"jax": NIGHT, "jaxlib": "0.8.2"}, "jax is a nightly: name the index that has such"),
    ],
)
def test_nightlies_are_in_no_usual_index(versions: dict[str, str], begins: str) -> None:
    """So that whoever runs the file is told."""
    assert of_nightlies(versions).startswith(begins)


def test_of_releases_nothing_is_said() -> None:
    """They are where they always are."""
    assert of_nightlies({"jax": "0.8.3", "jaxlib": "0.8.2"}) == ""
