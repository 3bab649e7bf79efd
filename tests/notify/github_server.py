"""A server on this host that speaks as much of GitHub's REST as issues need."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REPOSITORY = "owner/repo"
TOKEN = "ghp_made_up_0123456789"  # noqa: S105 - made up
LONGEST = 65_536


@dataclass
class Fault:
    """An answer that stands in for the right one.

    Attributes:
        method: Of the requests that get it.
        path: Pattern of their path.
        status: Status; 0 closes the connection without any answer.
        body: What is answered.
        headers: More headers.
        times: How often.
        after: How many requests are answered rightly before.
        done: Whether what was asked for is done nevertheless.
    """

    method: str
    path: str
    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    after: int = 0
    done: bool = False


class RefusalError(Exception):
    """What cannot be done, as GitHub says it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class GithubServer(ThreadingHTTPServer):
    """The server, with one repository."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.issues: dict[int, dict[str, Any]] = {}
        self.comments: dict[int, list[str]] = {}
        self.labels: set[str] = set()
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str]] = []
        self.enabled, self.public, self.may_label = True, True, True
        self.now = datetime(2026, 5, 1, tzinfo=UTC)

    @property
    def url(self) -> str:
        """Address of the API."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def writes(self) -> list[tuple[str, str]]:
        """Requests that were to change something."""
        return [one for one in self.requests if one[0] != "GET"]

    def add(self, title: str, body: str, *labels: str) -> dict[str, Any]:
        """Add an issue."""
        number = len(self.issues) + 1
        page = f"https://github.example/{REPOSITORY}/issues/{number}"
        self.issues[number] = {
            "number": number, "id": number, "title": title, "body": body, "state": "open",
            "state_reason": None, "closed_at": None, "html_url": page,
            "url": f"{self.url}/repos/{REPOSITORY}/issues/{number}",
            "labels": [{"name": name} for name in labels],
        }  # fmt: skip
        self.comments[number] = []
        return self.issues[number]

    def edit(self, number: int, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Change an issue."""
        issue = self.issues[number]
        issue.update(fields)
        if fields.get("state") == "closed":
            issue["closed_at"] = self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        elif fields.get("state") == "open":
            issue["closed_at"] = None
        return issue

    def answer(
        self, method: str, path: str, query: Mapping[str, str], body: Any
    ) -> tuple[int, Any, dict[str, str]]:
        """Do what is asked, and return status, content and headers."""
        below = path.removeprefix(f"/repos/{REPOSITORY}")
        if below == path:
            raise RefusalError(404, "Not Found")
        if below.startswith("/issues") and not self.enabled:
            raise RefusalError(410, "Issues are disabled for this repo")
        if not below:
            return 200, {"full_name": REPOSITORY, "url": f"{self.url}{path}"}, {}
        if (method, below) == ("GET", "/issues"):
            return self._page(query)
        if (method, below) == ("POST", "/issues"):
            _check_body(body["body"])
            self.labels.update(body["labels"])
            return 201, self.add(body["title"], body["body"], *body["labels"]), {}
        if match := re.fullmatch(r"/issues/(\d+)(/comments)?", below):
            return self._issue(method, int(match[1]), body, comments=bool(match[2]))
        return self._label(method, below, body)

    def _page(self, query: Mapping[str, str]) -> tuple[int, Any, dict[str, str]]:
        wanted = set(query["labels"].split(","))
        found = [
            one
            for one in self.issues.values()
            if wanted <= {label["name"] for label in one["labels"]}
            and query["state"] in {"all", one["state"]}
        ]
        size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
        links = {}
        if page * size < len(found):
            following = urlencode({**query, "page": page + 1})
            address = f"{self.url}/repos/{REPOSITORY}/issues?{following}"
            links["Link"] = f'<{address}>; rel="next"'
        return 200, found[(page - 1) * size : page * size], links

    def _issue(
        self, method: str, number: int, body: Any, *, comments: bool
    ) -> tuple[int, Any, dict[str, str]]:
        if number not in self.issues:
            raise RefusalError(404, "Not Found")
        if comments:
            _check_body(body["body"])
            self.comments[number].append(body["body"])
            return 201, {"id": len(self.comments[number]), "body": body["body"]}, {}
        if method == "PATCH":
            _check_body(body.get("body", ""))
            return 200, self.edit(number, body), {}
        return 200, self.issues[number], {}

    def _label(self, method: str, below: str, body: Any) -> tuple[int, Any, dict[str, str]]:
        if method == "POST":
            if not self.may_label:
                raise RefusalError(403, "Resource not accessible by integration")
            self.labels.add(body["name"])
            return 201, body, {}
        name = unquote(below.removeprefix("/labels/"))
        if name not in self.labels:
            raise RefusalError(404, "Not Found")
        return 200, {"name": name, "url": f"{self.url}{below}"}, {}


def _check_body(text: str) -> None:
    if len(text) > LONGEST:
        raise RefusalError(422, "Validation Failed: body is too long")


class _Handler(BaseHTTPRequestHandler):
    server: GithubServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a request."""
        parts = urlsplit(self.path)
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        self.server.requests.append((self.command, parts.path))
        fault = self._fault(parts.path)
        if fault is not None and not fault.done:
            self._send(fault.status, fault.body, fault.headers)
            return
        try:
            self._authorise()
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            status, said, headers = self.server.answer(self.command, parts.path, query, body)
        except RefusalError as refusal:
            status, said, headers = refusal.status, {"message": str(refusal)}, {}
        if fault is not None:
            status, said, headers = fault.status, fault.body, fault.headers
        self._send(status, said, headers)

    do_POST = do_PATCH = do_GET  # noqa: N815 - as the library calls them

    def _fault(self, path: str) -> Fault | None:
        for fault in self.server.faults:
            if fault.times and fault.method == self.command and re.search(fault.path, path):
                if fault.after:
                    fault.after -= 1
                    continue
                fault.times -= 1
                return fault
        return None

    def _authorise(self) -> None:
        given = self.headers.get("Authorization")
        if given is not None and given != f"token {TOKEN}":
            raise RefusalError(401, "Bad credentials")
        if given is None and (self.command != "GET" or not self.server.public):
            raise RefusalError(401, "Requires authentication")

    def _send(self, status: int, said: Any, headers: Mapping[str, str]) -> None:
        if not status:
            self.close_connection = True
            self.connection.shutdown(2)
            return
        content = said.encode() if isinstance(said, str) else json.dumps(said).encode()
        self.send_response(status)
        kind = "text/html" if isinstance(said, str) else "application/json"
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep silent."""


def served() -> Iterator[GithubServer]:
    """Yield a server that answers."""
    server = GithubServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
