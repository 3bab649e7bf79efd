"""The client of an example server, inside a job."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

from conformance.kit.case import CaseError, Unsupported
from conformance.kit.laws import RejectedExample
from conformance.worker.example_codec import decode, encode
from conformance.worker.stages import FALSIFYING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    Check = Callable[[dict[str, Any]], None]

HOLDS, REJECTED = "holds", "rejected"
LONGEST_OUTPUT = 2000
"""Characters that are shown of the output of a server that failed."""


class ExampleClient:
    """Draws the examples of one law from an example server.

    The server depends on its first message and on the replies alone, and takes half a second to
    start. So a conversation is stored, and later jobs, e.g. on other releases, take the examples
    from there as long as they reply the same.

    Args:
        law: Settings of the law, with the `command` of the server and the folder `conversations`.
        given: Strategies by parameter.

    Attributes:
        text: An example as Python code: the first one, or the shrunk one for which the law does
            not hold.
        artifact: Name of the artifact with that text: `example` or `falsifying`.

    Raises:
        CaseError: If an argument of a strategy cannot be sent.
    """

    def __init__(self, law: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        self._command = law["command"]
        strategies = {name: _encode_strategy(name, one) for name, one in given.items()}
        self._request = {"given": strategies, "seed": law["seed"], "examples": law["examples"]}
        facts = json.dumps([self._request, law["hypothesis"], law["server"]])
        name = f"{hashlib.sha256(facts.encode()).hexdigest()[:32]}.json"
        self._file = os.path.join(law["conversations"], name)
        self._stored = _load_conversation(self._file)
        self._heard: list[dict[str, Any]] = []
        self._replies: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._last: dict[str, Any] | None = None
        self.text = ""
        self.artifact = "example"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        # The server ends when its input does.
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        self._process.wait()

    @functools.cached_property
    def first(self) -> Any:
        """The first example as JSON data, which is the simplest one; it stays to be checked.

        Raises:
            CaseError: If there is none.
        """
        self._last = self._receive()
        if "example" not in self._last:
            raise CaseError(str(self._last.get("wrong", "given draws no example")))
        self.text = str(self._last["text"])
        return self._last["example"]

    def check(self, check: Check) -> int:
        """Check a law on all examples.

        Args:
            check: Raises if the law does not hold for an example, `RejectedExample` if it says
                nothing about it.

        Returns:
            The number of examples for which the law holds.

        Raises:
            BaseException: The error of the law for the shrunk example, which it has as an
                attribute `FALSIFYING`.
            CaseError: If the strategies are wrong.
            Unsupported: If the cell cannot express the law.
        """
        failure: BaseException | None = None
        while True:
            message = self._last or self._receive()
            self._last = None
            if "example" not in message:
                break
            self.text = self.text or message["text"]
            reply, raised = _reply(check, decode(message["example"]))
            failure = raised or failure
            self._send_reply(reply)
        if self._process is not None:
            _store_conversation(self._file, self._heard, self._replies)
        if "falsified" in message and failure is not None:
            self.text, self.artifact = message["falsified"], "falsifying"
            with contextlib.suppress(AttributeError, TypeError):  # an exception with slots
                setattr(failure, FALSIFYING, message["falsified"])
            raise failure
        if not message.get(HOLDS):
            raise CaseError(str(message.get("wrong", "no example of given was accepted")))
        return int(message[HOLDS])

    def _receive(self) -> dict[str, Any]:
        """Return the next message, of the stored conversation or of the server."""
        messages, replies = self._stored
        count = len(self._replies)
        if self._process is None:
            if count < len(messages) and self._replies == replies[:count]:
                self._heard.append(messages[count])
                return messages[count]
            self._start()
        self._heard.append(self._read())
        return self._heard[-1]

    def _send_reply(self, reply: str) -> None:
        self._replies.append(reply)
        if self._process is not None:
            self._write({"reply": reply})

    def _start(self) -> None:
        """Start the server, and repeat the conversation so far."""
        # Variables of a development build in the cell are not for the Python of the harness.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._process = subprocess.Popen(
            self._command, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._write(self._request)
        for reply in self._replies:
            self._read()
            self._write({"reply": reply})

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process is not None  # noqa: S101 - started
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        with contextlib.suppress(BrokenPipeError):  # the end of the answers is reported
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process is not None  # noqa: S101 - started
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr is not None  # noqa: S101 - a pipe
            output = self._process.stderr.read()[-LONGEST_OUTPUT:]
            raise CaseError(f"the example server ended with {output or 'no output'}")
        return dict(json.loads(line))


def _load_conversation(file: str) -> tuple[list[dict[str, Any]], list[str]]:
    try:
        with open(file, encoding="utf-8") as stream:
            messages, replies = json.load(stream)
    except (OSError, ValueError):
        return [], []
    return messages, replies


def _store_conversation(file: str, messages: list[dict[str, Any]], replies: list[str]) -> None:
    part = f"{file}.{os.getpid()}"
    with contextlib.suppress(OSError):  # without it, later jobs only take longer
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(part, "w", encoding="utf-8") as stream:
            json.dump([messages, replies], stream)
        os.replace(part, file)


def _encode_strategy(name: str, strategy: Any) -> Any:
    try:
        return encode(strategy)
    except TypeError as error:
        raise CaseError(
            f"given, {name}: {error}; Hypothesis draws outside of the cell, where functions of the "
            "case are unknown"
        ) from None


def _reply(check: Check, example: dict[str, Any]) -> tuple[str, BaseException | None]:
    try:
        check(example)
    except RejectedExample:
        return REJECTED, None
    except (CaseError, Unsupported):
        raise
    except BaseException as error:  # any exception of a case is its observation
        return type(error).__name__, error
    return HOLDS, None
