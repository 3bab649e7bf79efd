"""The network is lost in the middle of a download: infra for that cell, and nothing half made."""

from __future__ import annotations

import hashlib
import io
import re
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.faults.conftest import OTHER
from tests.projects import ENVIRONMENT, GOOD, RELEASE, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.conftest import MakeProject

pytestmark = pytest.mark.cell
LOCK = ROOT / "matrix" / "locks" / f"jax{OTHER}-py311.txt"
SENT = 100_000
"""Bytes of a wheel that come through."""


def wheel() -> bytes:
    """Return a wheel of some size; its packages are not looked into."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("package/data", b"x" * 10 * SENT)
    return data.getvalue()


class Vanishing(BaseHTTPRequestHandler):
    """An index that has every package of the lock, and goes away while it sends one."""

    downloads: int

    def do_GET(self) -> None:
        """Answer with the page of a package, or with the beginning of a wheel."""
        kind, name = self.path.strip("/").split("/", 1)
        if kind == "index":
            page = self._page(name.strip("/"))
            self._begin("text/html", len(page))
            self.wfile.write(page)
            return
        content = wheel()
        self._begin("application/octet-stream", len(content))
        self.wfile.write(content[:SENT])
        type(self).downloads += 1
        self.close_connection = True

    def _page(self, name: str) -> bytes:
        found = re.search(
            rf"^{name}==(\S+) \\\n    --hash=sha256:(\w+)", LOCK.read_text(), re.MULTILINE
        )
        assert found is not None
        file = f"{name.replace('-', '_')}-{found[1]}-py3-none-any.whl"
        return f'<a href="/files/{file}#sha256={found[2]}">{file}</a>'.encode()

    def _begin(self, kind: str, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as inherited
        """Say nothing."""


@pytest.fixture
def index() -> Iterator[str]:
    """URL of the index."""
    Vanishing.downloads = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Vanishing)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/index/"
    server.shutdown()
    server.server_close()


@pytest.mark.long
def test_one_cell_is_infra_and_the_others_run(
    new_project: MakeProject,
    index: str,
    envs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once the network is there again the run is resumed, and all is as it should be."""
    project = new_project({"cases/fam/topic.py": GOOD})
    assert project.run("run", "--cell", RELEASE).code == 0  # so that one environment is there
    lock = (project.path / "matrix" / "locks" / f"{ENVIRONMENT}.txt").read_bytes()
    there = envs / f"{ENVIRONMENT}-{hashlib.sha256(lock).hexdigest()[:12]}"
    made = tmp_path / "empty" / "envs"
    made.mkdir(parents=True)
    (made / there.name).symlink_to(there)
    monkeypatch.setenv("CONFORMANCE_CACHE", str(made.parent))
    with monkeypatch.context() as lost:
        for name in ("CONFORMANCE_INDEX_URL", "UV_FIND_LINKS"):
            lost.delenv(name, raising=False)
        lost.setenv("UV_DEFAULT_INDEX", index)
        lost.setenv("UV_HTTP_RETRIES", "0")
        lost.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
        code, _ = project.results("--cell", RELEASE, "--cell", OTHER)
    assert code == 4
    assert Vanishing.downloads > 0
    records = project.newest.read_records()
    ended = {(record.case, record.cell.partition("-")[0]): record for record in records}
    assert len(ended) == 4
    assert {str(ended[case, f"jax{RELEASE}"].verdict) for case in ("fam/one", "fam/two")} == {"new"}
    for case in ("fam/one", "fam/two"):
        lost_one = ended[case, f"jax{OTHER}"]
        assert lost_one.verdict == "infra"
        assert f"jax{OTHER}-py311-" in lost_one.reasons[0]
        assert "cannot set up" in lost_one.reasons[0]
    assert not [path for path in made.glob(f"jax{OTHER}-*") if path.is_dir()]
    resumed = project.run("run", "--resume", "--json", "-")
    assert (resumed.code, resumed.json["counts"]) == (0, {"new": 4})
    assert len(project.runs) == 2
