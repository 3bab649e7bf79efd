"""Case files that cannot be imported, or whose import has effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.model.outcome import Outcome, Stage
from tests.workbench import leaf_of, source_of, write_case

if TYPE_CHECKING:
    from tests.workbench import Bench

pytestmark = pytest.mark.cell


def test_an_import_that_raises_ends_every_job_of_the_file(bench: Bench) -> None:
    """Each error has the exception and the line of the case file."""
    jobs = bench.jobs(
        "from conformance.kit import probe\nimport no_such_package\n"
        "@probe()\ndef one(env): return 1\n@probe()\ndef two(env): return 2\n"
    )
    for finished in map(bench.worker.run, jobs):
        assert finished.error is not None
        assert (finished.outcome, finished.stage) == (Outcome.RAISED, Stage.IMPORT)
        assert finished.error.type == "ModuleNotFoundError"
        assert finished.error.where.endswith("family/topic.py:2")


def test_a_file_the_cells_python_cannot_parse_names_the_line(bench: Bench) -> None:
    """Syntax of a newer Python is an error in that cell."""
    job = bench.job("return 1")
    write_case(bench.folder, source_of("return 1") + "\ndef broken(:\n")
    finished = bench.worker.run(job)
    assert finished.error is not None
    assert finished.error.type == "SyntaxError"
    assert finished.error.where.endswith("family/topic.py:9")


@pytest.mark.parametrize(
    ("top", "outcome", "type_"),
    [
        ("time.sleep(60)", "timed_out", "timeout"),
        ("os.abort()", "crashed", "SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", "crashed", "SIGSEGV"),
        ("sys.exit(2)", "raised", "SystemExit"),
        ("os._exit(0)", "crashed", "exit"),
    ],
)
def test_an_import_that_ends_the_process_ends_the_scout_only(
    bench: Bench, top: str, outcome: str, type_: str
) -> None:
    """The next file is unharmed."""
    finished = bench.run("return 1", "probe(timeout=1)", top)
    assert finished.error is not None
    assert (finished.outcome, finished.error.type) == (outcome, type_)
    assert finished.stage is Stage.IMPORT
    assert bench.run("return 1", topic="next").outcome is Outcome.OK


@pytest.mark.parametrize(
    "line",
    ["X = jnp.zeros(3)", "X = jax.devices()", "X = jax.random.key(0)", "jax.jit(jnp.sin)(1.0)"],
)
def test_an_import_that_makes_a_backend_names_its_line(bench: Bench, line: str) -> None:
    """The error names the line and a remedy."""
    finished = bench.run("return 1", top=f"import jax, jax.numpy as jnp\n{line}\n")
    assert finished.error is not None
    assert finished.error.type == "CaseError"
    assert "makes a jax backend" in finished.error.message
    assert "inside the case" in finished.error.message
    assert finished.error.where.endswith("family/topic.py:5")
    assert "reason to fork" not in bench.worker.output()


def test_a_file_that_starts_a_thread_is_imported_in_each_job(bench: Bench) -> None:
    """The server stays with one thread, so that later forks are safe."""
    top = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    assert leaf_of(bench.run("return threading.active_count()", top=top)).data == b"2"
    assert leaf_of(bench.run("return threading.active_count()", topic="next")).data == b"1"


@pytest.mark.parametrize(
    ("top", "look"),
    [
        ("os.environ['HARM'] = 'done'", "'HARM' in os.environ"),
        (
            "import jax; jax.config.update('jax_numpy_rank_promotion', 'raise')",
            "sys.modules['jax'].config.jax_numpy_rank_promotion == 'raise'",
        ),
        ("sys.path.insert(0, '/harm')", "'/harm' in sys.path"),
    ],
)
def test_settings_of_an_import_affect_its_own_file_only(bench: Bench, top: str, look: str) -> None:
    """Cases of the file see them; those of another file do not."""
    assert leaf_of(bench.run(f"return {look}", top=top)).data == b"True"
    assert leaf_of(bench.run(f"return {look}", topic="next")).data == b"False"


def test_an_import_that_fails_the_second_time(bench: Bench) -> None:
    """It fails the jobs of its file, not the server."""
    top = f"open({str(bench.folder / 'once')!r}, 'x').close()"
    pid = bench.pid
    finished = bench.run("return 1", top=top)
    assert finished.error is not None
    assert finished.error.type == "FileExistsError"
    assert bench.run("return os.getppid()", topic="next").outcome is Outcome.OK
    assert bench.pid == pid


def test_helpers_are_imported_relatively(bench: Bench) -> None:
    """`from . import _helpers` works, and no folder of the user is on the path."""
    write_case(bench.folder, "ANSWER = 42\n", topic="_helpers")
    finished = bench.run("return _helpers.ANSWER", top="from . import _helpers")
    assert leaf_of(finished).data == b"42"


def test_families_of_one_name_have_separate_helpers(bench: Bench) -> None:
    """Two folders of the same name, each with its own `_helpers`."""
    found = []
    for folder in ("a", "b", "a"):
        place = bench.at(bench.folder / folder)
        write_case(place.folder, f"ANSWER = {folder!r}\n", topic="_helpers")
        finished = place.run("return _helpers.ANSWER", top="from . import _helpers")
        found.append(leaf_of(finished).data.decode().strip("'"))
    assert found == ["a", "b", "a"]


def test_a_case_file_leaves_no_bytecode(bench: Bench) -> None:
    """Bytecode would hide an edit of the same size within the same second."""
    assert bench.run("return 1").outcome is Outcome.OK
    assert [path.name for path in (bench.folder / "family").iterdir()] == ["topic.py"]


def test_a_job_sees_the_modules_of_jax_that_its_own_file_imports(bench: Bench) -> None:
    """What another file imported before is no attribute, until the job imports it itself."""
    sees = "import jax; return int(hasattr(jax, 'ad_checkpoint'))"
    (bench.folder / "imports_for_others.py").write_text("import jax.ad_checkpoint\n")
    by_another = f"sys.path.insert(0, {str(bench.folder)!r}); import imports_for_others"
    tops = {
        "itself": "import jax.ad_checkpoint",
        "by_name": "import importlib; importlib.import_module('jax.ad_checkpoint')",
        "by_another": by_another,
        "nothing": "",
    }
    for _ in range(2):
        seen = {name: leaf_of(bench.run(sees, top=top, topic=name)) for name, top in tops.items()}
        assert {name: leaf.data == b"1" for name, leaf in seen.items()} == {
            "itself": True,
            "by_name": True,
            "by_another": True,
            "nothing": False,
        }
    function = "from jax.ad_checkpoint import checkpoint_name; import jax; import jax.ad_checkpoint"
    imported = bench.run(
        f"{function}; return int(jax.ad_checkpoint.checkpoint_name is checkpoint_name)"
    )
    assert leaf_of(imported).data == b"1"


def test_what_a_job_imports_has_its_modules_of_jax(bench: Bench) -> None:
    """A helper, or a library, that the file of another job imported before."""
    (bench.folder / "family").mkdir()
    (bench.folder / "family" / "_saved.py").write_text(
        "import jax.ad_checkpoint\n"
        "def look():\n"
        "    import jax\n"
        "    return int(hasattr(jax, 'ad_checkpoint'))\n"
    )
    files = {
        "at_the_top": ("from . import _saved", "return _saved.look()"),
        "in_the_job": ("", "from . import _saved; return _saved.look()"),
        "by_name": (
            "import importlib",
            "return importlib.import_module('._saved', __package__).look()",
        ),
        "not_at_all": ("import jax", "return int(hasattr(jax, 'ad_checkpoint'))"),
    }
    for _ in range(2):
        seen = {name: bench.run(body, top=top, topic=name) for name, (top, body) in files.items()}
        assert {name: leaf_of(finished).data == b"1" for name, finished in seen.items()} == {
            "at_the_top": True,
            "in_the_job": True,
            "by_name": True,
            "not_at_all": False,
        }
