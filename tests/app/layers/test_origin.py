"""The origin of a change: what one search has found is kept where the next fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformance.app.layers import origin
from conformance.errors import InfrastructureError

LAYER = "a layer"


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Searches that find a layer, and a culprit if there is one."""
    known = SimpleNamespace(culprit=None)

    def find_commit(*_: Any, **__: Any) -> Any:
        if known.culprit is None:
            raise InfrastructureError("no clone")
        return known.culprit

    monkeypatch.setattr(origin, "find_layer_of_change", lambda *_: LAYER)
    monkeypatch.setattr(origin, "find_commit", find_commit)
    return known


def find(*, layers: bool, location: str) -> Any:
    """Return the parts of the origin, one at a time."""
    nothing: Any = None
    return origin.find_origin(
        nothing, nothing, nothing, nothing, layers=layers, location=location, say=print
    )


@pytest.mark.usefixtures("searches")
def test_layer_is_there_before_the_search_for_the_commit_fails() -> None:
    """A clone that cannot be reached takes nothing away."""
    parts = find(layers=True, location="CLONE")
    assert next(parts) == LAYER
    with pytest.raises(InfrastructureError, match="no clone"):
        next(parts)


@pytest.mark.parametrize(
    ("layers", "is_in_jaxlib", "layers_found"),
    [(True, True, 1), (False, True, 1), (False, False, 0)],
)
def test_layer_is_searched_for_once(
    searches: SimpleNamespace, layers: bool, is_in_jaxlib: bool, layers_found: int
) -> None:
    """On request, or where jaxlib is the culprit."""
    searches.culprit = SimpleNamespace(is_in_jaxlib=is_in_jaxlib)
    found = list(find(layers=layers, location="CLONE"))
    assert found.count(LAYER) == layers_found
    assert searches.culprit in found


@pytest.mark.usefixtures("searches")
def test_nothing_is_searched_for_unasked() -> None:
    """Neither layer nor commit."""
    assert list(find(layers=False, location="")) == []
