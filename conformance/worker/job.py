"""Jobs inside their process: setup, import of the case, observation; also several jobs in turn."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import json
import os
import shutil
import sys
import threading
import time
import types
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.kit.case import CaseError, Unsupported
from conformance.worker import frames, ranks
from conformance.worker.processes import list_children, take_standard_input

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator


CASES = "conformance_cases"


def run_job(request: dict[str, Any], fd: int) -> None:
    """Run one job, and write its events as frames.

    Args:
        request: The job: `file`, `family`, `name`, `kind`, `params`, `devices`, `processes`,
            `xla_flags`, `config`, `x64`, `same_as`, `cell`, `observation_mb`; `law` of a
            case with `given`; `measure` for a measurement in place of the observation; `rank` for
            one rank of several.
        fd: Descriptor to which frames are written.
    """
    if request["processes"] > 1 and "rank" not in request:
        ranks.launch(request, fd, run_job)
        return

    largest = int(request["observation_mb"]) * 2**20
    sent = 0

    def emit(header: dict[str, Any], body: bytes = b"") -> None:
        nonlocal sent
        # Here the error can name the artifact; the supervisor knows only the limit.
        if sent + len(body) > largest:
            raise CaseError(
                f"the observation has more than {largest >> 20} MiB with "
                f"{_describe_event(header)}; observe less, or raise observation_mb"
            )
        sent += len(body)
        frames.write(fd, header, body)

    start = time.perf_counter()
    emit({"stage": "import"})
    set_flags(request)
    # Imported here, not above: the flags must be in the environment before jax is.
    from conformance.kit import distributed, env
    from conformance.worker import laws, measuring, stages, variants

    try:
        update_config(request)
        if "rank" in request:
            distributed.join(request["rank"])
        fn = load_case(request["file"], request["family"], request["name"])
    except Unsupported as reason:
        emit({"unsupported": str(reason)})
        emit({"end": True})
        return
    except BaseException as error:  # any exception of an import is an observation
        described = stages.describe_error(error)
        described["where"] = described["where"] or find_import_site(error, request["file"])
        emit({"error": described})
        emit({"end": True})
        return
    emit({"seconds": ["import", time.perf_counter() - start]})
    place, params = env.Env(env.CellInfo(**request["cell"])), request["params"]
    if request.get("measure"):
        measurer = measuring.Measurer(fn, place, params, request["measure"])
        measuring.emit_measurements(measurer, request["kind"], emit)
        emit({"end": True})
        return
    observer = stages.Observer(emit, largest)
    # A job of another version of the orchestrator has no `law`.
    if request.get("law"):
        fn, ran = laws.observe_law(observer, fn, place, request, emit)
    else:
        ran = observer.observe(fn, request["kind"], place, params)
    if ran:
        variants.run_variants(request["same_as"], fn, place, params, emit, largest=largest)
    emit({"end": True})


def _describe_event(header: dict[str, Any]) -> str:
    """Describe the content of an event: `the artifact hlo`, `the value`."""
    return f"the artifact {header['artifact']}" if "artifact" in header else f"the {[*header][-1]}"


def set_flags(request: dict[str, Any]) -> None:
    """Put the job's XLA flags and device count into the environment."""
    flags = list(request["xla_flags"])
    flags.append(f"--xla_force_host_platform_device_count={request['devices']}")
    os.environ["XLA_FLAGS"] = " ".join(flags)


def update_config(request: dict[str, Any]) -> None:
    """Set the job's `jax.config` values.

    Raises:
        AttributeError: If jax has no such option.
    """
    import jax  # only the process of a job, or a warmed parent, has jax

    jax.config.update("jax_enable_x64", request["x64"])
    for name, value in request["config"].items():
        jax.config.update(name, value)


class CaseLoader(importlib.machinery.SourceFileLoader):
    """Compiles a case file at every import, and writes no bytecode.

    Bytecode is validated by a modification time in seconds: an edit within the same second would
    run the old code. No `__pycache__` is left next to the case either.
    """

    def get_code(self, fullname: str) -> types.CodeType:  # noqa: ARG002 - importlib's signature
        """Return the code of the current content of the file."""
        return compile(self.get_data(self.path), self.path, "exec", dont_inherit=True)


def name_case_module(file: str, family: str) -> str:
    """Return the name under which a case file is imported."""
    return f"{CASES}.{family}.{Path(file).stem}"


def load_case(file: str, family: str, name: str) -> Callable[..., Any]:
    """Import a case file, once, and return the case's function.

    The module is `conformance_cases.<family>.<stem>`, so that `from . import _helpers` works
    and no folder of the user is added to `sys.path`.

    Args:
        file: Path of the case file.
        family: Name of its folder.
        name: Name of the function.

    Returns:
        The function.

    Raises:
        Exception: If importing the file raises any exception.
    """
    path = Path(file)
    qualified = name_case_module(file, family)
    module = sys.modules.get(qualified)
    # Two projects may have a family and a file of the same name.
    if module is None or module.__file__ != str(path):
        _ensure_package(CASES, [])
        _ensure_package(f"{CASES}.{family}", [str(path.parent)])
        spec = importlib.util.spec_from_file_location(
            qualified, path, loader=CaseLoader(qualified, str(path))
        )
        assert spec is not None  # noqa: S101 - a path that ends in .py always has a spec
        assert spec.loader is not None  # noqa: S101
        module = importlib.util.module_from_spec(spec)
        sys.modules[qualified] = module
        try:
            with forbid_backend():
                spec.loader.exec_module(module)
        except BaseException:
            # A half initialised module must not satisfy the next import.
            del sys.modules[qualified]
            raise
    return getattr(module, name)  # type: ignore[no-any-return] # a case is a function


@contextmanager
def forbid_backend() -> Iterator[None]:
    """Make it an error to initialise a jax backend inside the context.

    A backend fixes the device count and starts threads, after which no fork is safe. jax raises at
    the call that would initialise it, so that the traceback names the line.
    """
    from jax._src import xla_bridge

    make = xla_bridge.backends

    def refuse(*_: Any, **__: Any) -> None:
        raise CaseError(
            "importing the case file makes a jax backend, expected none: "
            "create arrays and look at devices inside the case"
        )

    xla_bridge.backends = refuse
    try:
        yield
    finally:
        xla_bridge.backends = make


def _ensure_package(name: str, path: list[str]) -> None:
    package = sys.modules.get(name)
    if package is None or package.__path__ != path:
        # Another folder of the same name: its modules are not those of the first.
        for module in [module for module in sys.modules if module.startswith(f"{name}.")]:
            del sys.modules[module]
        package = types.ModuleType(name)
        package.__path__ = path
        sys.modules[name] = package


def find_import_site(error: BaseException, file: str) -> str:
    """Return the line of a case file at which its import failed, as `file:line`."""
    line = getattr(error, "lineno", 0) if isinstance(error, SyntaxError) else 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{file}:{line or 1}"


def describe_interpreter() -> dict[str, Any]:
    """Return the identity of the interpreter and its environment, without importing jax."""
    versions: dict[str, str] = {}
    for found in metadata.distributions():
        if found.metadata["Name"]:  # Python imports the first on the path
            versions.setdefault(_canonicalize_name(found.metadata["Name"]), found.version)
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "implementation": sys.implementation.name,
        "executable": sys.executable,
        "versions": dict(sorted(versions.items())),
    }


def _canonicalize_name(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


MOST_JOBS = 100
"""Jobs of one process, a limit on leaks."""


def make_share_key(request: dict[str, Any]) -> str:
    """Return the key of jobs that can share a process, empty for a job that runs alone.

    Args:
        request: Request with the job.
    """
    settings = [request["xla_flags"], request["config"], request["x64"]]
    if request.get("alone"):
        return ""
    if request["cell"]["topology"]:
        # Loading the compiler of an accelerator takes longer than compiling a small program, and
        # nothing is executed that could affect the next job.
        return json.dumps(settings, sort_keys=True)
    if not request.get("may_share") or request["processes"] > 1:
        return ""
    if request["cell"]["platform"] != "cpu":
        return ""  # an error of the device stays in its process
    return json.dumps([request["file"], request["devices"], *settings], sort_keys=True)


def run_jobs(first: dict[str, Any], fd: int) -> None:
    """Run jobs until a job changes the process, or `MOST_JOBS` is reached.

    `{"idle": True}` reports that a job has ended and the next one can be sent to standard input.

    Args:
        first: The first job.
        fd: Descriptor to which the jobs' frames are written.
    """
    requests = take_standard_input()
    folder = os.getcwd()  # restored afterwards
    # After the settings of the first job are applied: all jobs of the process have the same ones.
    before = _apply_settings(first)
    decoder = frames.Decoder()
    request: dict[str, Any] | None = first
    for number in range(MOST_JOBS):
        if request is None:
            return
        run_job(request, fd)
        if number + 1 == MOST_JOBS or _is_changed(before):
            return
        _reset(folder)
        frames.write(fd, {"idle": True})
        request = _receive_next(requests, decoder)


def _is_changed(settings: dict[str, Any]) -> bool:
    """Return whether the last job left other settings, or threads or processes that run."""
    if threading.active_count() > 1 or list_children(os.getpid()):
        return True
    return read_settings(settings) != settings


def _apply_settings(request: dict[str, Any]) -> dict[str, Any]:
    """Apply the settings of the jobs of this process, and return them."""
    set_flags(request)
    # jax is imported and configured before the settings are read, so that doing so is no change.
    with contextlib.suppress(Exception):  # the job itself reports the error
        update_config(request)
    return read_settings()


def _receive_next(requests: int, decoder: frames.Decoder) -> dict[str, Any] | None:
    """Return the next job, None at the end of the requests."""
    while data := os.read(requests, 1 << 18):
        for frame in decoder.feed(data):
            return frame.header
    return None


def _reset(folder: str) -> None:
    """Undo the effects of the last job: output buffers, files, working directory, caches of jax."""
    import jax  # only the process of a job has jax

    sys.stdout.flush()
    sys.stderr.flush()
    os.chdir(folder)
    for path in Path(folder).iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    jax.clear_caches()


def read_settings(among: Collection[str] = ()) -> dict[str, Any]:
    """Return the settings of the process: environment, import path, `jax.config`.

    Args:
        among: Names of the settings to return, empty for all: an import may define new options.

    Returns:
        The settings by name.
    """
    import jax  # only a warmed server has jax

    found = {f"jax.config.{name}": value for name, value in jax.config.values.items()}
    found |= {"os.environ": dict(os.environ), "sys.path": list(sys.path)}
    return {name: value for name, value in found.items() if not among or name in among}
