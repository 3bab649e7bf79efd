"""An exception as plain data: the user's frames, and whose code the others are."""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from conformance.worker import tracebacks
from conformance.worker.tracebacks import FRAMES, describe_chain, find_innermost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _forgets() -> Iterator[None]:
    """Clear the caches of owners: each test has separate folders."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] in {"mine", "theirs", "jax", "made"}:
            del sys.modules[name]
    for cached in (tracebacks._find_owner, tracebacks._has_dists, tracebacks._find_local_packages):
        cached.cache_clear()


def module(file: Path, text: str, name: str = "made") -> Any:
    """Return a module with a text."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def describe_raised(call: Callable[[], Any]) -> list[dict[str, Any]]:
    """Return the exception that a call raises, as data; without the frame of this very file."""
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - whatever it is
        described = describe_chain(error)
        for one in described:
            one["frames"] = [f for f in one["frames"] if f["file"] != __file__]
        return described
    raise AssertionError("nothing was raised")


def install_package(folder: Path, name: str, url: str = "") -> Path:
    """Return the folder of an installed package, with the metadata that an installer writes."""
    info = folder / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "RECORD").write_text(f"{name}/__init__.py,,\n{name}-1.dist-info/RECORD,,\n")
    if url:
        (info / "direct_url.json").write_text(json.dumps({"url": url}))
    sys.path.insert(0, str(folder))
    return folder / name


CALLS = "def f(g):\n    return g()\n"


def test_frames_of_the_user_and_of_a_library(tmp_path: Path) -> None:
    """The user's files have absolute paths, those of libraries relative ones."""
    theirs = module(install_package(tmp_path / "env", "theirs") / "sub.py", CALLS, "theirs.sub")
    own = module(tmp_path / "own.py", "def h(f):\n    return f(lambda: 1 / 0)\n")
    (one,) = describe_raised(lambda: own.h(theirs.f))
    assert (one["type"], one["message"], one["relation"]) == (
        "ZeroDivisionError", "division by zero", "",
    )  # fmt: skip
    outer, library, inner = one["frames"]
    assert outer == {
        "file": str(tmp_path / "own.py"), "line": 2, "function": outer["function"],
        "source": "return f(lambda: 1 / 0)", "library": "", "count": 1,
    }  # fmt: skip
    assert (library["file"], library["library"]) == ("theirs/sub.py", "theirs")
    assert library["source"] == "return g()"
    assert inner["library"] == ""
    assert find_innermost([one]) == f"{tmp_path / 'own.py'}:2"


@pytest.mark.parametrize(
    ("url", "library"),
    [("", "mine"), ("https://example.org/mine.whl", "mine"), ("file:///home/me/mine", "")],
)
def test_a_package_installed_from_a_folder_is_the_users(
    tmp_path: Path, url: str, library: str
) -> None:
    """As `--with ./mine` installs it; an index gives no such URL."""
    mine = module(install_package(tmp_path / "env", "mine", url) / "__init__.py", CALLS, "mine")
    (one,) = describe_raised(lambda: mine.f(lambda: 1 / 0))
    (frame,) = [f for f in one["frames"] if f["file"] == "mine/__init__.py"]
    assert frame["library"] == library


def test_a_source_tree_of_jax_is_a_library(tmp_path: Path) -> None:
    """It is in no folder of installed packages."""
    module(tmp_path / "src" / "jax" / "__init__.py", "", "jax")
    inner = module(tmp_path / "src" / "jax" / "_src" / "api.py", CALLS, "jax._src.api")
    (one,) = describe_raised(lambda: inner.f(lambda: json.loads("{")))
    found = [(frame["library"], frame["file"]) for frame in one["frames"]]
    assert found[0] == ("jax", "jax/_src/api.py")
    assert ("python", "json/decoder.py") in found


def test_the_harness_and_hidden_modules_have_no_frames(tmp_path: Path) -> None:
    """Nor do libraries above the first frame of the user's: they only lead there."""
    hidden = module(tmp_path / "hidden.py", f"__tracebackhide__ = True\n{CALLS}", "made")
    harness = module(tmp_path / "kit.py", CALLS, "made")
    harness.f.__globals__["__name__"] = "conformance.worker.stages"
    code = harness.f.__code__.replace(co_filename=f"{tracebacks._PACKAGE}/worker/stages.py")
    harness.f.__code__ = code
    theirs = module(install_package(tmp_path / "env", "theirs") / "sub.py", CALLS, "theirs.sub")
    own = module(tmp_path / "own.py", "def h():\n    return 1 / 0\n", "made")

    def call() -> None:
        theirs.f(lambda: harness.f(lambda: hidden.f(own.h)))

    with pytest.raises(ZeroDivisionError) as caught:
        call()
    # As the worker has it, whose own frames are all that is above.
    below = caught.tb.tb_next
    assert below is not None
    (one,) = describe_chain(caught.value.with_traceback(below.tb_next))
    named = [frame["file"] for frame in one["frames"] if frame["file"] != __file__]
    assert named == [str(tmp_path / "own.py")]


def test_a_recursion_is_one_frame(tmp_path: Path) -> None:
    """With how often it occurs."""
    own = module(tmp_path / "own.py", "def down(n):\n    return down(n - 1) if n else {}['x']\n")
    (one,) = describe_raised(lambda: own.down(50))
    (frame,) = one["frames"]
    assert (frame["count"], one["message"]) == (51, "'x'")


def test_a_deep_stack_is_cut_in_its_middle(tmp_path: Path) -> None:
    """Where it began and where it ended is kept, and how many frames are not."""
    text = "def even(n):\n    return odd(n - 1)\n\n"
    text += "def odd(n):\n    return even(n - 1) if n > 0 else 1 / 0\n"
    own = module(tmp_path / "own.py", text)
    (one,) = describe_raised(lambda: own.even(600))
    assert len(one["frames"]) <= FRAMES
    (gap,) = [frame for frame in one["frames"] if not frame["file"]]
    assert gap["count"] > 500
    assert one["frames"][-1]["source"].endswith("1 / 0")
    assert sum(frame["count"] for frame in one["frames"]) >= 601


def _cause() -> None:
    try:
        dict[str, int]()["x"]
    except KeyError as error:
        raise ValueError("outer") from error


def _context() -> None:
    try:
        dict[str, int]()["x"]
    except KeyError:
        raise ValueError("outer")  # noqa: B904 - the point of the test


def _neither() -> None:
    try:
        dict[str, int]()["x"]
    except KeyError:
        raise ValueError("outer") from None


def _group() -> None:
    members = [ValueError("one"), KeyError("two"), TypeError("three")]
    raise ExceptionGroup("many", members)  # noqa: F821 - the orchestrator has Python 3.11


@pytest.mark.parametrize(
    ("call", "chain"),
    [
        (_cause, [("", "ValueError"), ("cause", "KeyError")]),
        (_context, [("", "ValueError"), ("context", "KeyError")]),
        (_neither, [("", "ValueError")]),
        (_group, [("", "ExceptionGroup"), ("member", "ValueError"), ("member", "KeyError")]),
    ],
)
def test_causes_contexts_and_members_are_described(
    call: Callable[[], None], chain: list[Any]
) -> None:
    """The first members of a group only."""
    assert [(one["relation"], one["type"]) for one in describe_raised(call)] == chain


def test_a_chain_is_bounded(tmp_path: Path) -> None:
    """Also a cyclic one."""

    def loop() -> None:
        one, other = ValueError("one"), ValueError("other")
        one.__cause__, other.__cause__ = other, one
        raise one

    assert [one["message"] for one in describe_raised(loop)] == ["one", "other"]
    text = "".join(f"{' ' * 4 * n}try:\n" for n in range(8))
    body = f"{text}{' ' * 32}1 / 0\n"
    for n in reversed(range(8)):
        body += (
            f"{' ' * 4 * n}except Exception as e:\n{' ' * 4 * (n + 1)}raise KeyError({n}) from e\n"
        )
    code = "def f():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    assert len(describe_raised(module(tmp_path / "own.py", code).f)) == tracebacks.EXCEPTIONS


def test_texts_are_bounded_and_can_be_written() -> None:
    """A long message, half of a surrogate pair, a message that raises; jax's note on itself."""

    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def noted() -> None:
        error = OddError()
        error.add_note("For simplicity, JAX has removed its internal frames from the traceback")
        error.add_note("look there")
        raise error

    (one,) = describe_raised(noted)
    assert (one["message"], one["notes"]) == ("<its message raised RuntimeError>", ["look there"])

    def long() -> None:
        raise ValueError("\udcff" + "x" * 10_000)

    (one,) = describe_raised(long)
    assert one["message"].startswith("\\udcffx")
    assert len(one["message"]) == tracebacks.LONGEST
    json.dumps(one).encode()


def test_a_line_that_cannot_be_parsed_is_a_frame(tmp_path: Path) -> None:
    """It has no frame, but is the place to look."""
    (tmp_path / "bad.py").write_text("x = 1\ny = (\n")
    text = f"import runpy\n\ndef f():\n    runpy.run_path({str(tmp_path / 'bad.py')!r})\n"
    (one,) = describe_raised(module(tmp_path / "own.py", text).f)
    assert find_innermost([one]) == f"{tmp_path / 'bad.py'}:2"
    assert one["frames"][-1]["source"] == "y = ("


def test_generated_code_is_of_its_module(tmp_path: Path) -> None:
    """The `__init__` of a dataclass has no file."""
    text = (
        "import dataclasses\n\n@dataclasses.dataclass\nclass A:\n    x: int\n\n"
        "    def __post_init__(self):\n        1 / 0\n\ndef f():\n    A(1)\n"
    )
    (one,) = describe_raised(module(tmp_path / "own.py", text).f)
    assert [frame["library"] for frame in one["frames"]] == ["", "", ""]
    assert one["frames"][1]["file"] == "<string>"


def test_attributes_that_raise_do_not_end_the_description() -> None:
    """Exceptions described before are kept."""

    class OddError(Exception):
        __notes__ = 3  # type: ignore[assignment]

        @property
        def exceptions(self) -> None:
            raise RuntimeError

    def call() -> None:
        raise ValueError from OddError()

    assert [one["type"] for one in describe_raised(call)] == ["ValueError"]
