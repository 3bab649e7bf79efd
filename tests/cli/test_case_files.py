"""Errors in case files: one clear line, or an outcome of that case alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects import GOOD, HEAD, ONE, TWO, case

if TYPE_CHECKING:
    from .conftest import MakeProject


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("def broken(:\n", 1, "syntax error: invalid syntax"),
        ("x = 1\n  y = 2\n", 2, "syntax error: unexpected indent"),
        ("x = '\n", 1, "syntax error: unterminated string literal"),
        (f"{ONE}\n\n\n{ONE}", 7, "the id fam/one is also that of {file}:2; rename one"),
        (
            "N = 2 * 2\n@probe(devices=N)\ndef case(env): ...\n",
            1,
            "`devices` is `2 * 2`, expected a literal or a constant that this file assigns once",
        ),
        (
            "@probe(device=4)\ndef case(env): ...\n",
            1,
            "probe: unknown keyword `device`; did you mean `devices`?",
        ),
        (
            "@probe(zebra=4)\ndef case(env): ...\n",
            1,
            "probe: unknown keyword `zebra`; expected one of source, params, given",
        ),
        ("@probe\ndef case(env): ...\n", 1, "write @probe() with parentheses"),
        ("@probe(4)\ndef case(env): ...\n", 1, "@probe takes keywords only, got a positional"),
        ("@probe(**more)\ndef case(env): ...\n", 1, "probe: keywords must be literal, got **"),
        ("@probe(devices=0)\ndef case(env): ...\n", 1, "@probe: expected `int` >= 1"),
        ("@probe(timeout='2')\ndef case(env): ...\n", 1, "@probe: expected `float`, got `str`"),
        ("@probe(facts={})\ndef case(env): ...\n", 1, "@probe has no `facts`: only a program"),
        ("@probe(params={})\ndef case(env): ...\n", 1, "`params` is empty, expected at least one"),
        (
            "@probe(requires=['a b'])\ndef case(env): ...\n",
            1,
            "`requires` has `a b`, expected a package",
        ),
        (
            "@probe(releases='=>0.6')\ndef case(env): ...\n",
            1,
            "`=>0.6` is not a specifier of jax releases, expected e.g. `>=0.5,<0.6`",
        ),
        (
            "@probe(params={'a': {}}, deviations=[deviation(params=['b'])])\ndef case(env): ...\n",
            1,
            "deviation names the parameter ['b'], the case has ['a']",
        ),
        (
            "@probe(deviations=[deviation(outcome='raises')])\ndef case(env): ...\n",
            1,
            "deviation outcome `raises`, expected ok, raised, crashed, timed_out, out_of_memory",
        ),
        (
            "@probe(deviations=[deviation(match='(')])\ndef case(env): ...\n",
            1,
            "deviation match `(` is not a regular expression: ",
        ),
        (
            "@probe(deviations=deviation('<0.6'))\ndef case(env): ...\n",
            1,
            "`deviations` is `deviation('<0.6')`, expected a list of deviation(...)",
        ),
        ("@probe()\nasync def case(env): ...\n", 2, "case is an async function, expected a plain"),
        ("if 1:\n    @probe()\n    def case(env): ...\n", 3, "case is not at the top level"),
        (
            "@probe(params={'a': {}, 'a': {}})\ndef f(env): ...\n",
            1,
            "`params` has the key 'a' twice",
        ),
    ],
)
def test_invalid_case_file_is_reported_in_one_line(
    new_project: MakeProject, source: str, line: int, message: str
) -> None:
    """File, line, problem and remedy; nothing runs."""
    project = new_project({"cases/fam/topic.py": source, "cases/fam/good.py": GOOD})
    file = project.path / "cases/fam/topic.py"
    ending = project.run("list")
    if "fam/one" in message:
        (project.path / "cases/fam/good.py").unlink()
        ending = project.run("list")
    assert ending.code == 2
    assert ending.error.startswith(f"{file}:{line}: {message.format(file=file)}")
    assert not ending.error.endswith(".")


def test_all_broken_case_files_are_reported_at_once(new_project: MakeProject) -> None:
    """One line for each file, so that all can be repaired before the next run."""
    project = new_project(
        {"cases/fam/a.py": "def (", "cases/fam/b.py": "@probe\ndef f(env): ...\n"}
    )
    ending = project.run("run")
    assert ending.code == 2
    assert [line.rpartition("/")[2][:6] for line in ending.err.splitlines()] == ["a.py:1", "b.py:1"]
    assert not (project.path / "reports").exists()


def test_broken_file_of_another_family_does_not_matter(new_project: MakeProject) -> None:
    """Selecting a family reads only that family."""
    project = new_project({"cases/fam/a.py": GOOD, "cases/other/b.py": "def ("})
    assert project.run("list", "fam").code == 0
    assert project.run("list").code == 2


def test_two_selects_with_the_same_case_id_are_refused(new_project: MakeProject) -> None:
    """Results are stored by id: one of the two would be lost."""
    project = new_project({"cases/fam/a.py": GOOD, "mine/fam/a.py": GOOD})
    ending = project.run("list", "fam", "mine")
    assert ending.code == 2
    assert "the id fam/one is also that of" in ending.err
    assert project.run("list", "mine", "mine/fam/a.py", "./mine/fam").code == 0


@pytest.mark.parametrize(
    ("select", "code", "message"),
    [
        ("fan", 3, "no case matches fan: did you mean fam?"),
        ("fam/on", 3, "no case matches fam/on: did you mean fam/one?"),
        ("zzz", 3, "no case matches zzz: `conformance list` lists the cases"),
        ("./nowhere", 2, "nowhere does not exist, expected a case file or a folder of cases"),
        ("nowhere.py", 2, "nowhere.py does not exist, expected a case file or a folder of cases"),
        ("./empty", 3, "empty holds no case files, expected *.py with cases"),
        ("./plain.py", 3, "plain.py: no function is marked with @program or @probe"),
    ],
)
def test_select_without_a_match_is_refused(
    new_project: MakeProject, select: str, code: int, message: str
) -> None:
    """The message proposes the nearest name, or the kind of path that was expected."""
    project = new_project(
        {"cases/fam/topic.py": GOOD, "empty/readme.txt": "", "plain.py": "x = 1\n"}
    )
    for command in ("list", "run"):
        ending = project.run(command, select)
        assert (ending.code, ending.error) == (code, message)


def test_project_without_cases_exits_3(new_project: MakeProject) -> None:
    """The message names the empty folder."""
    ending = new_project({}).run("run")
    assert ending.code == 3
    assert ending.error.endswith("cases holds no cases")


IN_THE_CELL = {
    "cases/fam/good.py": GOOD,
    "cases/fam/imports.py": case("return 1", name="alone").replace(
        "\n\n\n", "\nimport nowhere_to_be_found\n\n\n"
    ),
    "cases/fam/backend.py": case("return np.float32(1)", name="top").replace(
        "\n\n\n", "\nimport jax\n\nx = jax.numpy.ones(3)\n\n\n"
    ),
    "cases/fam/shape.py": case(
        "return Observed(np.float32([1, 2]), reference=np.float32([1, 2, 3]))", name="shape"
    ),
    "cases/fam/nothing.py": case("return None", name="nothing"),
    "cases/fam/number.py": case("return 3", "program()", name="number"),
    "cases/fam/strange.py": case("return Observed(1, reference=lambda: 1 / 0)", name="strange"),
}


@pytest.mark.long(keep=2)
@pytest.mark.cell
@pytest.mark.parametrize(
    ("name", "stage", "error", "where"),
    [
        ("alone", "import", "No module named 'nowhere_to_be_found'", "imports.py:3"),
        ("top", "import", "makes a jax backend, expected none", "backend.py:5"),
        ("nothing", "execute", "captured nothing", "nothing.py:"),
        ("number", "build", "a program returned a int, expected a Program", "number.py:"),
        ("strange", "execute", "division by zero", "strange.py:"),
    ],
)
def test_case_that_fails_in_the_worker_does_not_affect_others(
    new_project: MakeProject, name: str, stage: str, error: str, where: str
) -> None:
    """Its error is its outcome, with stage and line."""
    project = new_project(IN_THE_CELL)
    code, records = project.results()
    record = records[name]
    assert code == 1
    assert (record.outcome, record.stage) == ("raised", stage)
    assert record.error is not None
    assert error in record.error.message
    assert where in record.error.where
    assert {records[good].conformance for good in ("one", "two")} == {"conforms"}


@pytest.mark.cell
def test_a_reference_of_the_wrong_shape_deviates(new_project: MakeProject) -> None:
    """Shapes are compared, not broadcast; the message names the leaf and both shapes."""
    _, records = new_project(IN_THE_CELL).results()
    record = records["shape"]
    assert (record.conformance, record.verdict) == ("deviates", "regressed")
    assert record.reasons[0].startswith("reference of out has shape (3,), value (2,)")


@pytest.mark.cell
def test_terminal_report_names_case_cell_reason_and_line(new_project: MakeProject) -> None:
    """Enough to find the failing line without opening another file."""
    project = new_project(IN_THE_CELL)
    ending = project.run("run")
    text = " ".join(ending.out.split())
    assert "new fam/alone on jax0.6.2-py311-cpu8 raised ModuleNotFoundError at import" in text
    assert "imports.py:3" in text
    assert ending.err == ""


@pytest.mark.cell
def test_error_in_a_helper_is_located_at_the_import_in_the_case(new_project: MakeProject) -> None:
    """The error type is that of the helper."""
    source = GOOD.replace("import numpy as np", "import numpy as np\nfrom ._helper import x")
    project = new_project({"cases/fam/a.py": source, "cases/fam/_helper.py": "x = 1 / 0\n"})
    code, records = project.results()
    assert code == 1
    assert records["one"].error is not None
    assert records["one"].error.type == "ZeroDivisionError"
    assert records["one"].error.where.endswith("a.py:2")


def test_list_json_has_case_ids_and_lines(new_project: MakeProject) -> None:
    """The file that other tests of this module use is valid."""
    project = new_project({"cases/fam/topic.py": f"{HEAD}\n\n\n{ONE}\n\n\n{TWO}"})
    listed = project.run("list", "--json", "-").json
    assert [(entry["case"], entry["line"]) for entry in listed] == [("fam/one", 6), ("fam/two", 11)]


def test_list_shows_why_a_case_only_records(new_project: MakeProject) -> None:
    """As text and as JSON; other cases have an empty reason."""
    recording = '@probe(records="spelling is free")\ndef words(env):\n    pass\n'
    head = HEAD.replace("import program", "import probe, program")
    project = new_project({"cases/fam/topic.py": f"{head}\n\n\n{ONE}\n\n\n{recording}"})
    listed = project.run("list", "--json", "-").json
    assert [entry["records"] for entry in listed] == ["", "spelling is free"]
    lines = project.run("list").out.splitlines()
    assert [line.endswith("only records: spelling is free") for line in lines[1:3]] == [False, True]


def test_list_json_has_the_variants_of_same_as(new_project: MakeProject) -> None:
    """In their order; an empty list for a case without `same_as`."""
    claim = 'same_as=["eager", "jit"]'
    claiming = f"@program({claim})\ndef ways(env):\n    pass\n"
    project = new_project({"cases/fam/topic.py": f"{HEAD}\n\n\n{ONE}\n\n\n{claiming}"})
    listed = project.run("list", "--json", "-").json
    assert [entry["same_as"] for entry in listed] == [[], ["eager", "jit"]]
