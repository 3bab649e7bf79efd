"""obstore is an optional extra: commands without a shared cache import nothing of it."""

from __future__ import annotations

import subprocess
import sys

from tests.projects import ROOT


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
    assert "conformance.engine.blobs" in loaded
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
