"""A canary secret in each of 20 places: does any reach a file or a message?

`python benchmarks/attack/canary.py`. Makes a project whose cases, script and tests print their
environment and that of their ancestors, runs each command that writes files there, and searches all
output and all files. Exit status 1 if a canary is found.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from conformance.cache_folder import cache_root
from tests.faults.canary import FILES, OTHER, PLACES, Campaign
from tests.projects import ROOT, write_project


def main() -> int:
    """Run the campaign, print each leak and a summary."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="canary-") as temporary:
        project, folder, cache = (Path(temporary) / name for name in ("project", "folder", "cache"))
        write_project(project, FILES)
        lock = f"jax{OTHER}-py311.txt"
        (project / "matrix" / "locks" / lock).write_bytes(
            (ROOT / "matrix" / "locks" / lock).read_bytes()
        )
        folder.mkdir()
        cache.mkdir()
        (cache_root() / "envs").mkdir(exist_ok=True)
        (cache / "envs").symlink_to(cache_root() / "envs")
        campaign = Campaign(project=project, folder=folder, cache=cache)
        campaign.go()
        leaks = list(campaign.leaks())
        files = sum(path.is_file() for path in Path(temporary).rglob("*"))
    print(*leaks, sep="\n", end="\n" if leaks else "")
    print(
        f"{len(PLACES)} places, {len(campaign.printed)} commands, {files} files: "
        f"{len(leaks)} leaks, {time.monotonic() - begin:.0f} s"
    )
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main())
