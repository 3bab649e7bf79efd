"""S3 servers over the wire: moto's, and some that misbehave."""

from __future__ import annotations

import http.client
import http.server
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

BUCKET = "conformance"


def use_endpoint(patch: pytest.MonkeyPatch, port: int) -> None:
    """Let S3 clients of this process talk to a port of this machine."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true",
    }.items():  # fmt: skip
        patch.setenv(name, value)


@contextmanager
def serve_s3() -> Iterator[int]:
    """Yield the port of moto's S3 server, which has an empty bucket."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - it takes a second

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("PUT", f"/{BUCKET}")
        assert connection.getresponse().status == http.HTTPStatus.OK
        connection.close()
        yield port
    finally:
        server.stop()


@contextmanager
def serve_status(status: int) -> Iterator[int]:
    """Yield the port of a server that answers everything with a status."""

    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers with the status."""

        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            """Read the request and answer."""
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_PUT = do_POST = do_HEAD = answer  # noqa: N815 - names of the library

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base has it
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def serve_nothing() -> Iterator[int]:
    """Yield the port of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        yield listening.getsockname()[1]


def find_closed_port() -> int:
    """Return a port that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
