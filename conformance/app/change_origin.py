"""The origin of a change between two releases: the layer, and the commit of jax or jaxlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.app.commits import find_commit
from conformance.app.layers import find_layer_of_change

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.app.bisect import BisectResult
    from conformance.app.context import ProjectContext
    from conformance.app.search_options import SearchOptions
    from conformance.app.target import Target
    from conformance.triage.commits.render import PackageCulprit
    from conformance.triage.layers.answer import LayerAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOrigin:
    """The origin of a change.

    Attributes:
        layer: The layer, with the pass of XLA; None if it was not searched for.
        culprit: The commit, None if it was not searched for.
    """

    layer: LayerAnswer | None = None
    culprit: PackageCulprit | None = None


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
) -> ChangeOrigin:
    """Find the origin of the change that a bisection of releases has found.

    Where no commit of jax explains it, jaxlib does, and only the layer says which part of it.

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
    if location and culprit is None:
        culprit = find_commit(context, target, options, found, location=location, say=say)
    layer = None
    if layers or (culprit is not None and culprit.is_in_jaxlib):
        layer = find_layer_of_change(context, target, options, found)
    return ChangeOrigin(layer=layer, culprit=culprit)
