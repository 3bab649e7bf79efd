"""The origin of a change between two releases: the layer, and the commit of jax or jaxlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.app.layers.find import find_layer_of_change
from conformance.app.search.commits import find_commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.app.context import ProjectContext
    from conformance.app.search.bisect import BisectResult
    from conformance.app.search.options import SearchOptions
    from conformance.app.target import Target
    from conformance.triage.commits.render import PackageCulprit
    from conformance.triage.layers.answer import LayerAnswer


def find_origin(
    context: ProjectContext,
    target: Target,
    options: SearchOptions,
    found: BisectResult,
    *,
    layers: bool,
    location: str,
    say: Callable[[str], None],
    culprit: PackageCulprit | None = None,
) -> Iterator[LayerAnswer | PackageCulprit]:
    """Yield the layer and the commit behind the change that a bisection of releases has found.

    Each is yielded as soon as it is found: an error of the next search leaves it. Where no commit
    of jax explains the change, jaxlib does, and only the layer says which part of it.

    Args:
        context: The project.
        target: The target of the bisection.
        options: Its options.
        found: Its result.
        layers: Whether to search for the layer in any case.
        location: Path or URL of the repository of the package, empty for no search for a commit.
        say: Called with a line for each trial.
        culprit: The commit, if it is known already.

    Raises:
        UsageError: If the axis has no commits, or the repository lacks a release.
        InfrastructureError: If the repository cannot be read, an environment cannot be provided,
            or the disk refuses.
    """
    if layers:
        yield find_layer_of_change(context, target, options, found)
    if not location:
        return
    if culprit is None:
        culprit = find_commit(context, target, options, found, location=location, say=say)
    yield culprit
    if culprit.is_in_jaxlib and not layers:
        yield find_layer_of_change(context, target, options, found)
