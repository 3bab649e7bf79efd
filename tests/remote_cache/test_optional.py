"""obstore is an optional extra: commands without a shared cache import nothing of it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from conformance.remote_cache.cache import RemoteCache
from tests.projects import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def run_python(code: str) -> str:
    """Return the output of a fresh interpreter."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_a_run_without_a_shared_cache_imports_nothing_of_it() -> None:
    """Neither the library nor this package."""
    names = run_python(
        "import sys, conformance.cli.run, conformance.app.session; print(*sys.modules)"
    )
    loaded = names.split()
    assert "conformance.engine.cache.blobs" in loaded
    assert [one for one in loaded if "obstore" in one or "remote" in one] == []


def test_a_missing_library_is_one_clear_error() -> None:
    """It names the extra."""
    code = (
        "import sys; sys.modules['obstore'] = None\n"
        "from conformance.errors import UsageError\n"
        "try: import conformance.remote_cache.cache\n"
        "except UsageError as error: print(error)"
    )
    expected = "a shared cache needs obstore; pip install 'jax-conformance[cache]'\n"
    assert run_python(code) == expected


def test_a_process_that_used_the_cache_ends_well(tmp_path: Path) -> None:
    """Threads of the library that outlive the interpreter would abort it, now and then."""
    code = (
        "from conformance.remote_cache.cache import RemoteCache\n"
        f"cache = RemoteCache('file://{tmp_path}/shared', write=True)\n"
        "cache.upload('jobs/a/b', b'record', [], lambda name: b'')\n"
        "assert dict(cache.get_actions(f'jobs/{n}' for n in range(60))) == {}\n"
    )
    for _ in range(4):
        run_python(code)
    # What was uploaded in the background is there, although nothing waited for it.
    assert RemoteCache(f"file://{tmp_path}/shared").get_action("jobs/a/b") == b"record"
