"""The fork server: imports jax and the case files once, then forks a child for each job.

Requests come as frames on stdin, replies go as frames to the descriptor named on the command
line. The server ends, with all its children, when its stdin does: an orchestrator that is
killed leaves nothing behind.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.worker import frames, scout
from conformance.worker.imports import ImportGraph, read_words
from conformance.worker.job import (
    describe_interpreter,
    load_case,
    make_share_key,
    name_case_module,
    run_job,
    run_jobs,
)
from conformance.worker.job_process import SCRATCH
from conformance.worker.request_loop import RequestLoop

REQUEST = "request.json"
ENTRY = Path(__file__).with_name("main.py")


@dataclass
class CaseFileState:
    """The state of one case file in the server.

    Attributes:
        state: `scouting`, `loaded` (in the server), `in_child` (each job imports it), `failed`.
        parked: Requests that wait for the scout.
        replay: Frames of the scout, sent again for each job of a failed file.
        scouted: Effects of the import on the scout's process, empty if it ended earlier.
    """

    state: str = "scouting"
    parked: list[dict[str, Any]] = field(default_factory=list)
    replay: list[tuple[dict[str, Any], bytes]] = field(default_factory=list)
    scouted: dict[str, Any] = field(default_factory=dict)


class Server(RequestLoop):
    """The fork server for the cases of a cell.

    Args:
        requests: Descriptor from which requests are read.
        replies: Descriptor to which frames are written.
        spawn: Whether each job gets a fresh interpreter instead of a fork of this process.
    """

    def __init__(self, requests: int, replies: int, *, spawn: bool) -> None:
        super().__init__(requests, replies, self._main)
        self._spawn = spawn
        self._files: dict[str, CaseFileState] = {}

    def serve(self) -> None:
        """Send the hello frame, then serve requests until the orchestrator closes the channel."""
        hello = describe_interpreter()
        start = time.perf_counter()
        try:
            reason = "asked for" if self._spawn else self._prepare()
            self._spawn = self._spawn or bool(reason)
            seconds = time.perf_counter() - start
            self._send({"kind": "hello", **hello, "spawn": reason, "seconds": seconds})
            while self._handle_events():
                pass
        finally:
            self._supervisor.stop()
            if SCRATCH in os.environ:  # the orchestrator may be gone
                shutil.rmtree(os.environ[SCRATCH], ignore_errors=True)

    def _prepare(self) -> str:
        """Warm the server; return why it cannot fork, empty if it can."""
        gc.disable()  # the many objects that these imports make stay alive
        self._imports = ImportGraph()
        with self._imports.record():
            scout.warm()
        reason = scout.find_fork_hazard()
        if not reason:
            # In a child: a program that is compiled here would start threads of XLA, and a process
            # with threads cannot be forked safely. Its modules are imported here afterwards.
            self._start(_make_warm_request())
            while self._supervisor.busy:
                if not self._handle_events():
                    raise SystemExit  # the orchestrator is gone
            reason = scout.find_fork_hazard()
        self._freeze()
        gc.enable()
        return reason

    def _freeze(self) -> None:
        """Freeze loaded objects, so that no collection in a fork writes to shared pages."""
        scout.rebuild_caches()
        gc.freeze()

    def _accept(self, request: dict[str, Any]) -> None:
        if self._spawn:
            self._start(request)
            return
        known = self._files.get(request["file"])
        if known is None:
            # The first request waits for the scout: the server must not import an unknown file.
            self._files[request["file"]] = CaseFileState(parked=[request])
            self._start({**request, "id": f"scout:{request['file']}", "scout": request["file"]})
        elif known.state == "scouting":
            known.parked.append(request)
        elif known.state == "failed":
            self._replay(known, request)
        else:
            self._start(request)

    def _start(self, request: dict[str, Any], share: str = "") -> None:
        known = self._files.get(request["file"])
        if request["file"] and not self._spawn:
            read_words(Path(request["file"]))  # once, for all children
        # A file with side effects is imported by each of its jobs, and must not affect others.
        share = make_share_key(request) if known is not None and known.state == "loaded" else share
        super()._start({**request, "share": share}, share)

    def _main(self, request: dict[str, Any], fd: int) -> None:
        """Run in the child."""
        if self._spawn:
            _exec(request, fd)
        if request["file"]:
            name = name_case_module(request["file"], request["family"])
            self._imports.hide_others(name, read_words(Path(request["file"])))
        if "scout" in request:
            scout.scout(request, fd)
        elif request["share"]:
            run_jobs(request, fd)
        else:
            run_job(request, fd)

    def _route(self, header: dict[str, Any], body: bytes) -> None:
        """Route a frame of a child: to the server from a scout, to the orchestrator from a job."""
        if not header["job"].startswith("scout:"):
            self._send(header, body)
            return
        file = header["job"].removeprefix("scout:")
        if not file:
            if "scouted" in header:
                with self._imports.record():
                    scout.preload(header["scouted"]["modules"])
            return
        case_file = self._files[file]
        if "scouted" in header:
            case_file.scouted = header["scouted"]
            return
        case_file.replay.append((header, body))
        if header["kind"] == "done":
            self._finish_scouting(file, case_file)

    def _finish_scouting(self, file: str, case_file: CaseFileState) -> None:
        case_file.state = self._load(file, case_file)
        parked, case_file.parked = case_file.parked, []
        for request in parked:
            if case_file.state == "failed":
                self._replay(case_file, request)
            else:
                self._start(request)

    def _load(self, file: str, case_file: CaseFileState) -> str:
        """Import a scouted file in the server if that is safe; return its state."""
        keys = {key for header, _ in case_file.replay for key in header}
        if "error" in keys or "end" not in keys:
            return "failed"
        if case_file.scouted["threads"] > 1 or case_file.scouted["sets"]:
            return "in_child"
        request = case_file.parked[0]
        try:
            with self._imports.record(name_case_module(file, request["family"])):
                load_case(file, request["family"], request["name"])
        except BaseException:  # an import that fails the second time: jobs do it themselves
            return "in_child"
        gc.collect()  # garbage would be frozen, too
        self._freeze()
        return "loaded"

    def _replay(self, case_file: CaseFileState, request: dict[str, Any]) -> None:
        for header, body in case_file.replay:
            self._send({**header, "job": request["id"]}, body)


def _make_warm_request() -> dict[str, Any]:
    return {
        "id": "scout:", "scout": "", "file": "", "devices": 1, "processes": 1, "xla_flags": [],
        "timeout": 60, "memory": 4096, "observation_mb": 256,
    }  # fmt: skip


def _exec(request: dict[str, Any], fd: int) -> None:
    """Replace this process by a fresh interpreter that runs the job."""
    # In a file: the arguments of a process are limited, and its standard input must be empty.
    Path(REQUEST).write_bytes(frames.encode(request))
    os.set_inheritable(fd, True)
    os.execv(sys.executable, [sys.executable, "-s", str(ENTRY), "job", str(fd)])


def run_spawned_job(fd: int) -> None:
    """Run the job whose request is in the working directory."""
    (frame,) = frames.Decoder().feed(Path(REQUEST).read_bytes())
    Path(REQUEST).unlink()  # a case starts in an empty folder
    run_job(frame.header, fd)
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the exit handlers of jax and plugins, as in a fork.
    os._exit(0)
