"""The figures of `conformance --help`: how much a run covers."""

from __future__ import annotations

from conformance.cli.setting import here
from conformance.engine.plan import possible_jobs
from conformance.errors import ConformanceError
from conformance.wording import plural


def help_figures() -> dict[str, str]:
    """Return what a run without arguments covers, and the oldest release, for a text to name.

    A project whose cases or matrix cannot be read has no figures; its help is shown all the same.
    """
    try:
        setting = here()
        cells, _ = setting.cells(None, ())
        jobs = possible_jobs(setting.cases(()), cells)
        oldest = next(iter(setting.releases.versions))
    except ConformanceError:
        return {"scope": "every family", "since": ""}
    families = plural(len({job.case.family for job in jobs}), "family", "families")
    releases = plural(len({job.planned.cell.release for job in jobs}), "release")
    return {"scope": f"{families} on {releases}", "since": f" since {oldest}"}
