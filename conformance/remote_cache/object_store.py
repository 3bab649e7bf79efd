"""An object store behind retries, deadlines and a circuit breaker. It never raises."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeVar
from urllib.parse import urlsplit

from conformance.errors import UsageError
from conformance.remote_cache.circuit_breaker import CONCURRENCY, PATIENCE, CircuitBreaker

try:
    import obstore
    import obstore.exceptions
    import obstore.store
except ImportError:
    raise UsageError("a shared cache needs obstore; pip install 'jax-conformance[cache]'") from None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future
    from datetime import datetime

P = ParamSpec("P")
T = TypeVar("T")
_LOG: Final = logging.getLogger("conformance.cache")
WRITE_PATIENCE: Final = 5.0
"""Seconds for an upload, during which the server sends nothing."""
CONNECT_PATIENCE: Final = 2.0
LONGEST_REQUEST: Final = 60.0
"""Seconds for a large object that comes slowly."""
_ALLOW_HTTP: Final = ("AWS_ALLOW_HTTP", "AZURE_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP")
"""Variables of object_store for servers without TLS, e.g. on the same machine."""
# Of server errors and lost connections. No retry begins after `PATIENCE`.
_RETRIES: Final = {
    "max_retries": 3,
    "retry_timeout": timedelta(seconds=PATIENCE),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=1),
        "base": 2,
    },
}
_FAILURES: Final = (obstore.exceptions.BaseError, OSError, ValueError, TimeoutError)
_REFUSALS: Final = (
    obstore.exceptions.PermissionDeniedError,
    obstore.exceptions.UnauthenticatedError,
)
_LONGEST_REASON: Final = 160


class StoredObject(NamedTuple):
    """An object of a store.

    Attributes:
        path: Path below the URL of the store.
        size: Size in bytes.
        modified: Time of the last write.
    """

    path: str
    size: int
    modified: datetime


class Oversized(NamedTuple):
    """Takes the place of an object that is larger than expected.

    Attributes:
        size: Size in bytes.
    """

    size: int


class ObjectStore:
    """Objects by path below a URL. A failure is a missing object, and counts for the breaker.

    Args:
        url: URL as `parse_cache_url` returns it.
        write: Whether a missing local folder is created.

    Raises:
        UsageError: If the environment lacks settings that the provider needs.
    """

    def __init__(self, url: str, *, write: bool = False) -> None:
        self.url = url
        # Of the process: a second object for the same dead cache must not wait for it again.
        self.breaker = _get_breaker(os.getpid(), url)
        self.write_failure = ""
        """Why the server refuses writes, empty if it does not."""
        # Threads, not the coroutines of obstore: its own threads complete these, and would touch
        # Python objects when the interpreter ends, which aborts the process.
        self._pool = ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="shared-cache")
        self._store: Any = None
        self._writer: Any = None
        try:
            self._store = _open(url, write=write)
            self._writer = _open(url, write=write, patience=WRITE_PATIENCE)
        except OSError as error:
            self.breaker.open(_describe(error))
        except (obstore.exceptions.BaseError, ValueError) as error:
            raise UsageError(f"cache {url}: cannot be opened: {_describe(error)}") from None

    def get_all(
        self, paths: Sequence[str], largest: int
    ) -> Iterator[tuple[str, bytes | Oversized]]:
        """Yield the objects that exist, in the order of their paths.

        Args:
            paths: Paths of the objects.
            largest: Bytes that an object may have.
        """
        waiting: deque[Future[bytes | Oversized | None]] = deque()
        ahead = iter(paths)
        # Objects are fetched ahead of the caller, but no more than fit in memory.
        for path in paths:
            for coming in islice(ahead, CONCURRENCY * 4 - len(waiting)):
                waiting.append(self.submit(self.get, coming, largest))
            found = waiting.popleft().result()
            if found is not None:
                yield path, found

    def get(self, path: str, largest: int) -> bytes | Oversized | None:
        """Return an object, None if it does not exist or cannot be read.

        Args:
            path: Path of the object.
            largest: Bytes that it may have.
        """

        def read() -> bytes | Oversized | None:
            try:
                answer = obstore.get(self._store, path)
            except FileNotFoundError as error:
                # A wrong bucket would look like an empty cache.
                if "NoSuchBucket" in str(error):
                    self.breaker.open("no such bucket")
                return None
            size = answer.meta["size"]
            return Oversized(size) if size > largest else bytes(answer.bytes())

        return self._guard(read)

    def put(self, path: str, data: bytes, *, overwrite: bool = False) -> bool:
        """Store an object; return whether it exists.

        Args:
            path: Path of the object.
            data: Its content.
            overwrite: Whether to replace an existing object.
        """

        def write() -> bool:
            mode: Any = "overwrite" if overwrite else "create"
            try:
                # In one request: parts of an upload that was cut short would stay in the bucket.
                obstore.put(self._writer, path, data, mode=mode, use_multipart=False)
            except obstore.exceptions.AlreadyExistsError:
                pass  # another writer was faster, with the same content
            except _REFUSALS as error:
                # Of writing alone: the credentials may allow to read.
                self._refuse_writes(_describe(error))
                return False
            except FileNotFoundError as error:
                raise OSError(_describe(error)) from None  # no such bucket
            return True

        return not self.write_failure and bool(self._guard(write))

    def _refuse_writes(self, reason: str) -> None:
        if not self.write_failure:
            self.write_failure = reason
            _LOG.warning("note: shared cache %s: cannot be written: %s", self.url, reason)

    def delete(self, paths: Sequence[str]) -> bool:
        """Delete objects; return whether they are gone."""

        def remove() -> bool:
            with contextlib.suppress(FileNotFoundError):
                obstore.delete(self._writer, list(paths))
            return True

        return bool(self._guard(remove))

    def list(self, prefix: str) -> list[StoredObject] | None:
        """Return the objects below a prefix, None if they cannot be listed.

        Args:
            prefix: Folder, without a final slash.
        """

        def read() -> list[StoredObject]:
            pages = obstore.list(self._store, prefix)
            return [
                StoredObject(one["path"], one["size"], one["last_modified"])
                for page in pages
                for one in page
            ]

        return self._guard(read)

    def submit(self, work: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> Future[T]:
        """Call a function in a thread of this store."""
        return self._pool.submit(work, *arguments, **more)

    def _guard(self, request: Callable[[], T]) -> T | None:
        """Return the answer to a request, None if it failed or the breaker is open."""
        if self.breaker.is_open:
            return None
        start = time.monotonic()
        try:
            answer = request()
        except _FAILURES as error:
            self.breaker.report_failure(_describe(error), start, time.monotonic())
            return None
        self.breaker.report_success(time.monotonic())
        return answer


@cache
def _get_breaker(_pid: int, url: str) -> CircuitBreaker:
    return CircuitBreaker(url)


@cache
def _open_memory(_url: str) -> Any:
    # Of the process, not of the object: tests read what another object has written.
    return obstore.store.MemoryStore()


def _open(url: str, *, write: bool, patience: float = PATIENCE) -> Any:
    """Open a store.

    Args:
        url: Its URL.
        write: Whether a missing local folder is created.
        patience: Seconds without a byte of an answer after which a request fails.

    Raises:
        OSError: If a local folder does not exist.
        BaseError: If the environment lacks a setting of the provider.
    """
    parts = urlsplit(url)
    if parts.scheme == "memory":
        return _open_memory(url)
    if parts.scheme == "file":
        folder = Path(parts.path)
        if not write and not folder.is_dir():
            raise FileNotFoundError(f"{folder}: no such folder")
        return obstore.store.LocalStore(folder, mkdir=True)
    # Client options in a call replace those of the environment: this one has to be passed on.
    allow_http = any(os.environ.get(name, "").lower() in {"1", "true"} for name in _ALLOW_HTTP)
    client = {
        "connect_timeout": timedelta(seconds=CONNECT_PATIENCE),
        "read_timeout": timedelta(seconds=patience),
        "timeout": timedelta(seconds=LONGEST_REQUEST),
        "allow_http": allow_http,
    }
    settings: dict[str, Any] = {"client_options": client, "retry_config": _RETRIES}
    return obstore.store.from_url(url, **settings)


def _describe(error: BaseException) -> str:
    """Return the first line of an error in lower case, without the addresses of a request."""
    text = next(iter(str(error).splitlines()), "") or type(error).__name__
    status = re.search(r"status code: (\d{3}[^:<]*)", text)
    if status:
        return f"the server answers {status[1].strip()}"
    # The addresses of the request may be signed.
    text = re.sub(r"https?://\S+", "the server", text)
    return (text[:1].lower() + text[1:])[:_LONGEST_REASON]
