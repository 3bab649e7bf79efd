"""The text of an issue: what it tells, that nothing in it acts, and that it fits."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from conformance.model.outcome import Verdict
from conformance.model.run_files import Culprit, CulpritCommit, Evidence
from conformance.notify.issue_body import (
    LIMIT,
    IssueBody,
    make_body,
    mark_fixed,
    parse_body,
    render_closing,
    render_growth,
    render_reopening,
    rewrite_body,
)
from conformance.notify.night import Topic, TopicJob

ID = "0123456789ab"
JOBS = (TopicJob(case="f/a", place="jax0.5.3-py311-cpu8", release="0.5.3"),
        TopicJob(case="f/a", place="nightly-cpu8", release="0.13.0.dev20260501"))  # fmt: skip
TOPIC = Topic(
    id=ID, verdict=Verdict.REGRESSED, reason="out[0] differs in 12 elements", jobs=JOBS,
    regressions=("r",), first="night-3", good="night-2", command="conformance run f/a",
)  # fmt: skip
FOUND = Evidence(
    cause=ID, case="f/a", cell="nightly-cpu8", good="0.5.2", last_good="20260430",
    first_bad="20260501", confirmed=True, predicate="does it raise",
    repro="repro/f_a.py", command="uv run repro/f_a.py",
    culprits=(Culprit(package="jaxlib", before="0.5.2", after="0.5.3"),),
    commits=(CulpritCommit(package="jax", hash="0123456789abcdef", date="2026-04-30", title="x"),),
    remarks=("XLA: 12 updates",),
    unresolved=("the index has no nightly of 20260429",),
)  # fmt: skip
URL = "https://owner.example/site"


def test_a_new_issue_has_all_facts_and_evidence() -> None:
    """What, where, since when, who is to blame, how to see it, and where more is."""
    text = make_body(replace(TOPIC, evidence=FOUND, reproduction="import jax\nprint(1)\n"), URL)
    for told in (
        "Open: first seen in `night-3`. Last good before it: `night-2`.",
        "**What:** `regressed`", "out[0] differs in 12 elements",
        "**Where:** 2 jobs of 1 case", "- `f/a` on `jax0.5.3-py311-cpu8`, `nightly-cpu8`",
        "**Releases of jax:** `0.5.3`, `0.13.0.dev20260501`", "conformance run f/a",
        f"[root causes]({URL}/causes.html)", "/cases/f/a.html)",
        "first bad `20260501`, last good `20260430`, both confirmed by another run: `does",
        "- `jaxlib 0.5.2 -> 0.5.3`", "**Commit:**\n\n- `jax 0123456789ab 2026-04-30 x`",
        "- `XLA: 12 updates`",
        "the index has no nightly of 20260429", "`repro/f_a.py` in the directory of the run",
        "It is run with `uv run repro/f_a.py`", "```python\nimport jax\nprint(1)\n\n```",
    ):  # fmt: skip
        assert told in text, told
    assert text.startswith(f"<!-- conformance: {ID} -->\n")
    assert "<summary>The file</summary>" in text


def test_a_title_has_no_numbers_that_come_and_go() -> None:
    """One function is named, several are not; it is one short line."""
    assert TOPIC.title == "f/a regressed: out[0] differs in 12 elements"
    other = replace(TOPIC, jobs=(*JOBS, TopicJob(case="g/b", place="p")), reason="a\nb" * 200)
    assert other.title.startswith("regressed: a ba b")
    assert len(other.title) < 256
    assert "\n" not in other.title


def test_evidence_stays_if_a_later_night_has_none() -> None:
    """And is replaced on one that does."""
    first = parse_body(make_body(replace(TOPIC, evidence=FOUND, reproduction="one\n"), ""))
    assert first is not None
    second = rewrite_body(first, replace(TOPIC, reason="other"), "")
    assert second is not None
    assert (second.evidence, second.facts) != (first.evidence, first.facts)
    assert second.evidence == first.evidence
    third = rewrite_body(second, replace(TOPIC, evidence=FOUND, reproduction="two\n"), "")
    assert third is not None
    assert "two" in third.evidence
    assert "one" not in third.evidence


def test_a_long_reproduction_is_cut_at_a_whole_line() -> None:
    """And says how much is left out; the text is one that GitHub takes."""
    file = "".join(f"print({number})\n" for number in range(20_000))
    text = make_body(replace(TOPIC, evidence=FOUND, reproduction=file), "")
    assert LIMIT - 4_000 < len(text) <= LIMIT
    shown = text.partition("```python\n")[2].partition("\n```")[0].rstrip("\n").splitlines()
    assert shown == file.splitlines()[: len(shown)]
    assert f"*{20_000 - len(shown):,} more lines left out.*" in text


def test_a_missing_reproduction_is_named_by_its_path() -> None:
    """Its file was not kept, or is one line that is too long."""
    for file in ("", "x" * LIMIT):
        text = make_body(replace(TOPIC, evidence=FOUND, reproduction=file), "")
        assert "`repro/f_a.py` in the directory" in text
        assert "<details>" not in text


def test_many_cases_are_counted() -> None:
    """Those that do not fit."""
    jobs = tuple(
        TopicJob(case=f"f/case{n:05}", place=f"p{p}") for n in range(3000) for p in range(20)
    )
    text = make_body(replace(TOPIC, jobs=jobs, evidence=FOUND, reproduction="print(1)\n"), URL)
    assert len(text) <= LIMIT
    assert "**Where:** 60,000 jobs of 3,000 cases" in text
    assert "more cases are left out here" in text
    assert "and 8 more" in text
    assert "print(1)" in text
    assert len(render_growth(jobs, "night")) < 10_000
    assert "and 2,980 more cases" in render_reopening(jobs, "night")


def test_a_text_without_room_is_not_rewritten() -> None:
    """Their text is not cut."""
    body = IssueBody(cause=ID, status="", before="x" * (LIMIT - 100))
    assert rewrite_body(body, TOPIC, "") is None
    assert mark_fixed(body, "night-9") is None
    room = rewrite_body(replace(body, before="x" * (LIMIT - 6_000)), TOPIC, "")
    assert room is not None
    assert len(room.text) <= LIMIT


def test_a_text_is_marked_as_fixed_once() -> None:
    """The second time there is nothing to say."""
    body = parse_body(make_body(TOPIC, ""))
    assert body is not None
    told = mark_fixed(body, "night-9")
    assert told is not None
    assert (told.facts, told.status) != (body.facts, body.status)
    assert "`night-9`" in told.status
    assert mark_fixed(told, "night-9") is None
    assert mark_fixed(told, "night-11") is not None
    assert "all 2 jobs" in render_closing(2, "night-9")


hostile = st.lists(
    st.sampled_from(
        ["@jax-ml/team", "#1", "owner/repo#2", "```", "`", "\n", "</details>", "<script>", "|",
         "<!-- conformance-end -->", "https://other.example", "[a](b)", "\x00", "\u202e", " ", "x"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@settings(max_examples=60)
@given(hostile, hostile, hostile)
def test_hostile_text_in_an_issue_is_code(one: str, two: str, three: str) -> None:
    """What programs said is code: no mention, no link, no element; and it is found again."""
    found = replace_evidence(one, two, three)
    topic = replace(
        TOPIC, reason=one, jobs=(TopicJob(case=f"f/{two}", place=three, release=one),), first=two,
        good=three, command=one, evidence=found, reproduction=three,
    )  # fmt: skip
    text = make_body(topic, URL)
    assert parse_body(text) is not None
    texts = [
        text,
        render_growth(topic.jobs, two),
        render_reopening(topic.jobs, two),
        render_closing(3, one),
    ]
    for token in (token for text in texts for token in MarkdownIt().parse(text)):
        for inner in token.children or ():
            if inner.type == "text":
                assert "@" not in inner.content
                assert "#" not in inner.content
            if inner.type == "link_open":
                assert str(inner.attrs["href"]).startswith(f"{URL}/c")
            assert inner.type != "html_inline"
        if token.type == "html_block":
            assert "script" not in token.content
            assert token.content.startswith(("<!-- conformance", "<details>", "</details>"))


def replace_evidence(one: str, two: str, three: str) -> Evidence:
    """Return what was found out, in other people's words."""
    culprit = Culprit(package=one, before=two, after=three)
    return Evidence(
        cause=ID, case=one, cell=two, good=three, last_good=one, first_bad=two or "x",
        culprits=(culprit,), repro=three or "x", command=one, unresolved=(two,),
    )  # fmt: skip
