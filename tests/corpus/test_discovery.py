"""Cases are read from source, whole, without importing anything."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from conformance.corpus.discovery import BrokenCasesError, find_case_files
from conformance.model.case import Case, Deviation

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Write

PLAIN = "@probe()\ndef {}(env): return 1\n"


def test_every_keyword_of_a_decorator_is_read(write: Write, cases: Path) -> None:
    """Each becomes an attribute of the case."""
    source = '''import jax_is_never_imported
@kit.program(
    source="jax-ml/jax#1", devices=4, platforms=["cpu"], requires=("flax>=0.10",),
    releases="jax>=0.5,<0.9", facts={"collectives": {"all-reduce": 1}}, x64=True, timeout=5,
    memory=512, xla_flags=["--xla_a=1"], config={"jax_b": None}, rtol=0, atol=1e-3,
    observation_mb=512,
    deviations=[kit.deviation("jax<0.6", outcome="ok", error="E", match="m", platform="cpu",
                              packages={"flax": "<1"}, reason="r", issue="o/r#2")],
)
def name(env):
    """What it is about."""
'''
    (case,) = write(family__topic=source)
    assert case == Case(
        id="family/name", family="family", topic="topic", name="name", kind="program",
        file=cases / "family" / "topic.py", line=10, doc="What it is about.", devices=4,
        platforms=("cpu",), requires=("flax>=0.10",), releases=">=0.5,<0.9",
        source="jax-ml/jax#1", facts={"collectives": {"all-reduce": 1}}, x64=True, timeout=5.0,
        memory=512, observation_mb=512, xla_flags=("--xla_a=1",), config={"jax_b": None}, rtol=0.0,
        atol=1e-3,
        deviations=(
            Deviation(releases="<0.6", outcome="ok", error="E", match="m", platform="cpu",
                      packages={"flax": "<1"}, reason="r", issue="o/r#2"),
        ),
        code=case.code, content_hash=case.content_hash,
    )  # fmt: skip


def test_a_case_without_keywords_has_defaults(write: Write) -> None:
    """One device, any release and no package."""
    (case,) = write(family__topic=PLAIN.format("name"))
    assert case == Case(
        id="family/name", family="family", topic="topic", name="name", kind="probe",
        file=case.file, line=2, code=PLAIN.format("name").strip(), content_hash=case.content_hash,
    )  # fmt: skip
    assert (case.devices, case.timeout, case.memory, case.rtol) == (1, 60.0, 4096, None)


def test_a_run_of_a_case_with_sizes_has_the_first(write: Write) -> None:
    """With a list of names, the other parameter receives the name."""
    source = "@probe(params=['a'], sizes=(8, 16, 32))\ndef name(env, which, size): return 1\n"
    (case,) = write(family__topic=source)
    assert (case.id, case.params) == ("family/name[a]", {"which": "a", "size": 8})
    assert case.sizes == (8, 16, 32)


def test_the_parameters_of_given_are_read_without_their_strategies(write: Write) -> None:
    """The cell evaluates these, also of a dictionary that several cases share."""
    source = """
DRAWN = {"x": st.arrays("float32", 3), "n": make_strategy(1 + 1)}
@probe(given=DRAWN, examples=7)
def name(env, x, n): pass
"""
    (case,) = write(family__topic=source)
    assert (case.given, case.examples) == (("x", "n"), 7)


@pytest.mark.parametrize(
    ("decorator", "message"),
    [
        ("probe(params={'a': {'x': 1}}, given={'x': X})", "`x` is both in `params` and in `given`"),
        ("probe(given={'x': X}, records='r')", "`given` with `budgets` or `records`"),
        ("program(given={'x': X}, budgets=[budget('cpu', 1, reason='r')])", "`given` with `budg"),
        ("probe(given={'x': X}, rtol=0)", "pass them to its checks instead"),
    ],
)
def test_given_excludes_keywords_without_a_meaning_for_laws(
    write: Write, decorator: str, message: str
) -> None:
    """They would be ignored in silence."""
    with pytest.raises(BrokenCasesError, match=re.escape(message)):
        write(family__topic=f"@{decorator}\ndef name(env, x): pass\n")


def test_each_parameter_is_a_case(write: Write) -> None:
    """The key names it, its values are the keyword arguments."""
    source = "@probe(params={'a': {'n': 1}, 'b': {'n': [2, 3]}})\ndef name(env, n): ...\n"
    found = {case.id: case.params for case in write(family__topic=source)}
    assert found == {"family/name[a]": {"n": 1}, "family/name[b]": {"n": [2, 3]}}


def test_the_names_of_a_list_are_passed_to_the_one_parameter(write: Write) -> None:
    """Written out, or the keys of a table whose values are no literals."""
    source = (
        "TABLE = {'a': lambda x: x, 'b': make()}\n"
        "@probe(params=[*TABLE, 'c'], given={'x': st.text()},\n"
        "       deviations=[deviation('<1', params=['b'])])\n"
        "def name(env, x, key): ...\n"
    )
    found = {case.id: case for case in write(family__topic=source)}
    assert {id_: case.params for id_, case in found.items()} == {
        f"family/name[{key}]": {"key": key} for key in "abc"
    }
    assert [id_ for id_, case in found.items() if case.deviations] == ["family/name[b]"]


def test_the_code_is_the_function_with_its_decorators(write: Write) -> None:
    """As written, comments within and all; nothing of what stands around it."""
    written = "@other\n@probe(\n    devices=2,  # two\n)\ndef name(env):\n    return 1  # one"
    (case,) = write(family__topic=f"X = 1\n\n{written}\n\n\n# after\n")
    assert case.code == written


def test_a_deviation_may_be_of_some_parameters_only(write: Write) -> None:
    """Without `params` it is declared for all of them."""
    source = (
        "@probe(params={'a': {}, 'b': {}},\n"
        "       deviations=[deviation('<0.6', params=['b']), deviation('<0.5')])\n"
        "def name(env): ...\n"
    )
    found = {case.id: [d.releases for d in case.deviations] for case in write(family__topic=source)}
    assert found == {"family/name[a]": ["<0.5"], "family/name[b]": ["<0.6", "<0.5"]}


def test_only_marked_functions_are_cases(write: Write) -> None:
    """Helpers, classes, other decorators and calls elsewhere are not."""
    source = "@cache\ndef helper(): ...\nclass A: ...\nx = probe()\n" + PLAIN.format("name")
    assert [case.name for case in write(family__topic=source)] == ["name"]


def test_files_are_excluded_by_name(cases: Path) -> None:
    """Helpers, hidden files, conftest and goldens; the other files are sorted."""
    for name in ("b/y.py", "b/x.py", "a/z.py", "a/_h.py", "a/conftest.py", "a/golden/t/c.py",
                 ".venv/lib/m.py", "a/__pycache__/z.py", "a/readme.md"):  # fmt: skip
        (cases / name).parent.mkdir(parents=True, exist_ok=True)
        (cases / name).write_text("")
    found = [str(file.relative_to(cases)) for file in find_case_files(cases)]
    assert found == ["a/z.py", "b/x.py", "b/y.py"]
    assert find_case_files(cases / "a" / "_h.py") == [cases / "a" / "_h.py"]


def test_the_content_hash_covers_the_file_and_its_helpers(write: Write) -> None:
    """A helper of another family is irrelevant."""
    one, two = "a__topic", "b__topic"
    (first, other) = write(
        **{one: PLAIN.format("f"), two: PLAIN.format("f"), "a___helper": "X = 1"}
    )
    (helped, same) = write(a___helper="X = 2")
    (edited, _) = write(**{one: PLAIN.format("f") + "# note\n"})
    assert len({first.content_hash, helped.content_hash, edited.content_hash}) == 3
    assert same.content_hash == other.content_hash


def test_all_errors_are_reported_at_once(write: Write, cases: Path) -> None:
    """A line for each, with file and line."""
    with pytest.raises(BrokenCasesError) as caught:
        write(
            a__one="def f(:\n",
            a__two="\n@probe(device=2)\ndef f(env): ...\n",
            b__three=PLAIN.format("f") + "@program\ndef g(env): ...\n",
            b__good=PLAIN.format("h"),
        )
    assert str(caught.value).splitlines() == [
        f"{cases}/a/one.py:1: syntax error: invalid syntax",
        f"{cases}/a/two.py:2: probe: unknown keyword `device`; did you mean `devices`?",
        f"{cases}/b/three.py:3: write @program() with parentheses",
    ]


def test_a_duplicate_id_is_an_error(write: Write, cases: Path) -> None:
    """Two topics of a family may not have cases of the same name."""
    with pytest.raises(BrokenCasesError) as caught:
        write(a__one=PLAIN.format("f"), a__two="\n" + PLAIN.format("f"))
    assert str(caught.value) == (
        f"{cases}/a/two.py:3: the id a/f is also that of {cases}/a/one.py:2; rename one"
    )


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x = '\x00'"], ids=["not UTF-8", "null byte"])
def test_undecodable_bytes_are_an_error(write: Write, cases: Path, content: bytes) -> None:
    """An error of that file, like any other."""
    (cases / "a").mkdir()
    (cases / "a" / "t.py").write_bytes(content)
    with pytest.raises(BrokenCasesError, match=r"a/t\.py:1: syntax error"):
        write()


def test_an_unreadable_file_is_an_error(cases: Path) -> None:
    """For example a dangling link."""
    (cases / "a").mkdir()
    (cases / "a" / "t.py").symlink_to(cases / "nowhere.py")
    from_link = find_case_files(cases)
    assert [str(file) for file in from_link] == [str(cases / "nowhere.py")]


@pytest.mark.parametrize(
    "source",
    [
        "x = " + "-" * 20000 + "1",
        "x = " + "(" * 20000 + "1",
        "x = " + "1+" * 50000 + "1",
        "@probe(config=" + '{"a":' * 90 + "-" * 800 + "1" + "}" * 90 + ")\ndef f(env): pass\n",
        "x = 1\0",
    ],
    ids=["minus", "parentheses", "sum", "keyword", "null"],
)
def test_deep_nesting_is_one_error(write: Write, source: str) -> None:
    """For any exception of the parser; the file is named."""
    try:
        cases = write(family__topic=source)
    except BrokenCasesError as error:
        assert "topic.py:1: " in str(error)  # noqa: PT017 - a parser of another release may do it
    else:
        assert cases == ()
