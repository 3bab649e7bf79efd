"""`conformance report --goldens`: the state of JAX as the goldens of the project have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.cli.preparing import prepare_in
from conformance.engine.plan import make_plan
from conformance.engine.recorded import recorded_endings
from conformance.errors import ConformanceError
from conformance.files import write_atomically
from conformance.report.state import Recorded, State, state_markdown

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.cli.setting import Setting

MATRICES: Final = ("releases", "platforms")


class StaleStateError(ConformanceError):
    """The committed page does not say what the goldens have."""

    exit_code = 1


def write_state(setting: Setting, file: Path, *, check: bool) -> None:
    """Write the page, or see whether it is current.

    Args:
        setting: The project.
        file: The page.
        check: Whether it is only compared.

    Raises:
        StaleStateError: If it is compared, and is not what would be written.
    """
    text = f"{_state(setting)}\n".encode()
    if not check:
        write_atomically(file, text)
        return
    if not file.exists() or file.read_bytes() != text:
        raise StaleStateError(
            f"{file}: is not what the goldens have; make it anew: conformance report --goldens"
        )


def _state(setting: Setting) -> str:
    cells = [cell for name in MATRICES for cell in setting.cells(name, ())[0]]
    preparation = prepare_in(setting, cells)
    plan = make_plan(setting.cases(()), preparation.cells)
    recorded = {job.id: Recorded.of(job, ending) for job, ending in recorded_endings(plan)}
    dates = {release.version: f"{release.date:%Y-%m-%d}" for release in setting.releases.rows}
    root = setting.project.root
    return state_markdown(State(plan=plan, recorded=recorded, dates=dates, root=root))
