"""A package index served from this process: PEP 691 JSON or plain HTML, and the wheels."""

from __future__ import annotations

import contextlib
import json
import threading
import zipfile
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from .builders import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

JSON = "application/vnd.pypi.simple.v1+json"


@dataclass(kw_only=True)
class FakeIndex:
    """Projects with their files; how the index answers is chosen by the options.

    `html` is a plain page with the wheels alone, `upload_times` and `requires_python` are what
    it may leave out.
    """

    folder: Path
    html: bool = False
    upload_times: bool = True
    requires_python: bool = True
    projects: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    url: str = ""

    def add(
        self,
        name: str,
        version: str,
        *,
        day: str = "2025-01-31",
        requires: str = "",
        tag: str = "py3-none-any",
        yanked: str = "",
        project: str = "",
        files: Mapping[str, str] | None = None,
    ) -> str:
        """Add a wheel uploaded on a day, to a project of another spelling maybe; its SHA-256."""
        sha = make_wheel(self.folder, name, version, requires, tag, files=files)
        self.projects.setdefault(project or name, []).append(
            {
                "filename": f"{name}-{version}-{tag}.whl",
                "url": f"{self.url.removesuffix('/index/')}/files/{name}-{version}-{tag}.whl",
                "hashes": {"sha256": sha},
                "requires-python": ">=3.9",
                "yanked": yanked or False,
                "core-metadata": True,
                "upload-time": f"{day}T12:00:00Z",
            }
        )
        return sha

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Return content type and body of a request, None when there is no such page."""
        self.requests.append(path)
        kind, _, name = path.strip("/").partition("/")
        wheel = self.folder / name.removesuffix(".metadata")
        if kind == "files" and wheel.suffix == ".whl" and wheel.name != name and not self.html:
            return "text/plain", _metadata(wheel)
        if kind == "files" and (self.folder / name).is_file():
            return "application/octet-stream", (self.folder / name).read_bytes()
        if kind != "index" or name not in self.projects:
            return None
        files = self.projects[name]
        if self.html:
            return "text/html", "".join(map(self._link, files)).encode()
        if not self.upload_times:
            files = [{k: v for k, v in f.items() if k != "upload-time"} for f in files]
        page = {"meta": {"api-version": "1.1"}, "name": name, "versions": [], "files": files}
        return JSON, json.dumps(page).encode()

    def _link(self, file: dict[str, Any]) -> str:
        attributes = f'href="{file["url"]}#sha256={file["hashes"]["sha256"]}"'
        if self.upload_times:
            attributes += f' data-upload-time="{file["upload-time"]}"'
        if file["yanked"]:
            attributes += f' data-yanked="{file["yanked"]}"'
        if self.requires_python:
            attributes += f' data-requires-python="{escape(file["requires-python"])}"'
        return f"<a {attributes}>{file['filename']}</a>"


def _metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as file:
        return file.read(next(name for name in file.namelist() if name.endswith("/METADATA")))


def serve(index: FakeIndex) -> ThreadingHTTPServer:
    """Serve an index on a free local port, in a thread, and set its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = index.answer(self.path)
            self.send_response(200 if found else 404)
            kind, body = found or ("text/plain", b"")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  (as inherited)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (as inherited)
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.url = f"http://127.0.0.1:{server.server_port}/index/"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


@contextlib.contextmanager
def serving(status: int, kind: str, body: bytes, *, late: bool = False) -> Iterator[str]:
    """Give the same answer to every request, optionally late; the URL contains a secret."""
    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if late:
                released.wait(10)
                return
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (as inherited)
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://user:secret@127.0.0.1:{server.server_port}/index/"
    finally:
        released.set()
        server.shutdown()
        server.server_close()
