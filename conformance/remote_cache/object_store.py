"""An object store behind retries, deadlines and a circuit breaker. It never raises."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
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
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
    from concurrent.futures import Future
    from datetime import datetime

T = TypeVar("T")
_LOG: Final = logging.getLogger("conformance.cache")
SLOWEST: Final = 2**20
"""Bytes per second below which an upload counts as hanging."""
_CHUNK: Final = 2**20
_CLIENT: Final = {"connect_timeout": timedelta(seconds=2), "timeout": timedelta(minutes=2)}
_ALLOW_HTTP: Final = ("AWS_ALLOW_HTTP", "AZURE_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP")
"""Variables of object_store for servers without TLS, e.g. on the same machine."""
# Of server errors and lost connections. The deadline of a request is `PATIENCE`, retries included.
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
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._store: Any = None
        try:
            self._store = _open(url, write=write)
        except OSError as error:
            self.breaker.open(_describe(error))
        except (obstore.exceptions.BaseError, ValueError) as error:
            raise UsageError(f"cache {url}: cannot be opened: {_describe(error)}") from None

    def get_all(
        self, paths: Sequence[str], largest: int
    ) -> Iterator[tuple[str, bytes | Oversized]]:
        """Yield the objects that exist, in any order.

        Args:
            paths: Paths of the objects.
            largest: Bytes that an object may have.
        """
        size = CONCURRENCY * 8
        parts = [paths[start : start + size] for start in range(0, len(paths), size)]
        # The next part is on its way while the caller works on this one.
        futures = [self._submit(self._get_part(part, largest)) for part in parts[:1]]
        for number in range(len(parts)):
            if number + 1 < len(parts):
                futures.append(self._submit(self._get_part(parts[number + 1], largest)))
            yield from futures[number].result()
            futures[number].cancel()  # drops the reference to its objects

    async def _get_part(
        self, paths: Sequence[str], largest: int
    ) -> list[tuple[str, bytes | Oversized]]:
        found = await asyncio.gather(*(self.get(path, largest) for path in paths))
        return [(p, data) for p, data in zip(paths, found, strict=True) if data is not None]

    async def get(self, path: str, largest: int) -> bytes | Oversized | None:
        """Return an object, None if it does not exist or cannot be read.

        Args:
            path: Path of the object.
            largest: Bytes that it may have.
        """

        async def read(deadline: asyncio.Timeout) -> bytes | Oversized | None:
            try:
                answer = await obstore.get_async(self._store, path)
            except FileNotFoundError as error:
                # A wrong bucket would look like an empty cache.
                if "NoSuchBucket" in str(error):
                    self.breaker.open("no such bucket")
                return None
            size = answer.meta["size"]
            if size > largest:
                return Oversized(size)
            if size <= _CHUNK:
                return bytes(await answer.bytes_async())
            content = bytearray()
            async for chunk in answer.stream(min_chunk_size=_CHUNK):
                content += chunk
                # A large object may take long, a pause may not.
                deadline.reschedule(asyncio.get_running_loop().time() + PATIENCE)
                if len(content) > largest:
                    return Oversized(len(content))
            return bytes(content)

        return await self._guard(read, PATIENCE)

    async def put(self, path: str, data: bytes, *, overwrite: bool = False) -> bool:
        """Store an object; return whether it exists.

        Args:
            path: Path of the object.
            data: Its content.
            overwrite: Whether to replace an existing object.
        """

        async def write(_: asyncio.Timeout) -> bool:
            mode: Any = "overwrite" if overwrite else "create"
            try:
                # In one request: parts of an upload that was cut short would stay in the bucket.
                await obstore.put_async(self._store, path, data, mode=mode, use_multipart=False)
            except obstore.exceptions.AlreadyExistsError:
                pass  # another writer was faster, with the same content
            except _REFUSALS as error:
                # Of writing alone: the credentials may allow to read.
                self.refuse_writes(_describe(error))
                return False
            except FileNotFoundError as error:
                raise OSError(_describe(error)) from None  # no such bucket
            return True

        if self.write_failure:
            return False
        return bool(await self._guard(write, PATIENCE + len(data) / SLOWEST))

    def refuse_writes(self, reason: str) -> None:
        """Write nothing any more."""
        if not self.write_failure:
            self.write_failure = reason
            _LOG.warning("note: shared cache %s: cannot be written: %s", self.url, reason)

    async def delete(self, paths: Sequence[str]) -> bool:
        """Delete objects; return whether they are gone."""

        async def remove(_: asyncio.Timeout) -> bool:
            await obstore.delete_async(self._store, list(paths))
            return True

        return bool(await self._guard(remove, PATIENCE + len(paths) / 100))

    async def list(self, prefix: str) -> list[StoredObject] | None:
        """Return the objects below a prefix, None if they cannot be listed.

        Args:
            prefix: Folder, without a final slash.
        """

        async def read(deadline: asyncio.Timeout) -> list[StoredObject]:
            found: list[StoredObject] = []
            async for page in obstore.list(self._store, prefix):
                found += (StoredObject(o["path"], o["size"], o["last_modified"]) for o in page)
                deadline.reschedule(asyncio.get_running_loop().time() + 2 * PATIENCE)
            return found

        return await self._guard(read, 2 * PATIENCE)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine of this store, from any thread."""
        return self._submit(work).result()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine of this store, from any thread."""
        return self._submit(work)

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, _start_loop(os.getpid()))

    async def _guard(
        self, request: Callable[[asyncio.Timeout], Awaitable[T]], seconds: float
    ) -> T | None:
        """Return the answer to a request, None if it failed or the breaker is open."""
        async with self._slots:
            if self.breaker.is_open:
                return None
            clock = asyncio.get_running_loop().time
            start = clock()
            try:
                async with asyncio.timeout(seconds) as deadline:
                    answer = await request(deadline)
            except _FAILURES as error:
                self.breaker.report_failure(_describe(error), start, clock())
                return None
            self.breaker.report_success(clock())
            return answer


@cache
def _start_loop(pid: int) -> asyncio.AbstractEventLoop:
    """Return the event loop of this process, in a thread of its own.

    Args:
        pid: Id of the process: a forked one has no threads, and needs another loop.
    """
    loop = asyncio.new_event_loop()
    # A daemon: a request that hangs must not keep the process from ending.
    threading.Thread(target=loop.run_forever, name=f"shared-cache-{pid}", daemon=True).start()
    return loop


@cache
def _get_breaker(_pid: int, url: str) -> CircuitBreaker:
    return CircuitBreaker(url)


@cache
def _open_memory(_url: str) -> Any:
    # Of the process, not of the object: tests read what another object has written.
    return obstore.store.MemoryStore()


def _open(url: str, *, write: bool) -> Any:
    """Open a store.

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
    client = {**_CLIENT, "allow_http": allow_http}
    settings: dict[str, Any] = {"client_options": client, "retry_config": _RETRIES}
    return obstore.store.from_url(url, **settings)


def _describe(error: BaseException) -> str:
    """Return the first line of an error in lower case, without the addresses of a request."""
    if isinstance(error, TimeoutError) and not str(error):
        return f"no answer within {PATIENCE:g} s"
    text = next(iter(str(error).splitlines()), "") or type(error).__name__
    status = re.search(r"status code: (\d{3}[^:<]*)", text)
    if status:
        return f"the server answers {status[1].strip()}"
    # The addresses of the request may be signed.
    text = re.sub(r"https?://\S+", "the server", text)
    return (text[:1].lower() + text[1:])[:_LONGEST_REASON]
