"""The text of an upstream issue about a finding."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.fuzz.comparison import Kind
from conformance.fuzz.finding import ReleaseResult
from conformance.report.fuzz.issue import group_releases, make_title, render_fuzz_issue
from tests.fuzz.test_script_file import make_finding


def make_results(*results: tuple[str, str, bool, bool | None]) -> tuple[ReleaseResult, ...]:
    """Return results of releases from outcome, text, whether it differs and whether it is right."""
    return tuple(
        ReleaseResult(
            release=f"0.{number}.0", outcome=outcome, text=text, differs=differs, right=right
        )
        for number, (outcome, text, differs, right) in enumerate(results, 1)
    )


CHANGED = make_results(
    ("ok", "float32 1.0", False, True), ("ok", "float32 1.0000001", False, True),
    ("ok", "float32 2.0", True, False),
)  # fmt: skip
FIXED = make_results(
    ("unsupported", "AttributeError: no", False, None),
    ("raised", "TypeError: a|b", False, None), ("ok", "float32 2.0", True, None),
)  # fmt: skip


def test_an_issue_has_the_program_and_the_result_on_each_release() -> None:
    """Releases with equal results share a row, rounding errors aside."""
    finding = make_finding(releases=("0.3.0",), results=CHANGED, example="1.0 -> 2.0")
    text = render_fuzz_issue(finding, "import jax\n", {"jax": "0.3.0", "jaxlib": "0.3.0"})
    assert text.startswith("**Title:** `jnp.sin under vmap`: different values since jax 0.3.0\n")
    assert "| jax | result | agrees with NumPy |" in text
    assert "| 0.1.0 to 0.2.0 | `float32 1.0` | yes |" in text
    assert "| 0.3.0 | `float32 2.0` | no |" in text
    assert "the result of jax 0.1.0 to 0.2.0, with which NumPy in float64 agrees." in text
    assert "```python\nimport jax\n```" in text
    assert "jaxlib     0.3.0" in text


@pytest.mark.parametrize("kind", Kind)
def test_an_issue_names_each_kind_of_difference(kind: Kind) -> None:
    """In its title."""
    issue = render_fuzz_issue(make_finding(kind=str(kind), results=CHANGED), "", {})
    assert " since jax " in issue.splitlines()[0]


def test_a_result_cannot_break_its_table() -> None:
    """A release without the operation has a row of its own."""
    finding = make_finding(kind="outcome", releases=("0.3.0",), results=FIXED)
    text = render_fuzz_issue(finding, "", {})
    assert "| 0.2.0 | `TypeError: a\\|b` |" in text
    assert [one.name for one in group_releases(finding)] == ["0.1.0", "0.2.0", "0.3.0"]


@pytest.mark.parametrize(
    ("changes", "title", "expected"),
    [
        ({"kind": "outcome", "results": FIXED}, "error before jax 0.3.0", "jax 0.3.0."),
        ({"oracle": "eager"}, "different values with eager than with jit",
         "the result that jit gives."),
        ({"oracle": "numpy"}, "different values from NumPy",
         "the result of NumPy within the rounding error."),
        ({"oracle": "process", "kind": "crash"}, "crash", "a result, or an error of Python."),
        ({"results": ()}, "different values since jax 0.12.0", "on each release, unless"),
    ],
)  # fmt: skip
def test_an_issue_states_what_is_expected(
    changes: dict[str, Any], title: str, expected: str
) -> None:
    """By the oracle that found it."""
    finding = make_finding(**({"results": CHANGED} | changes))
    assert make_title(finding) == f"`jnp.sin under vmap`: {title}"
    assert f"{expected}" in render_fuzz_issue(finding, "", {}).partition("Expected: ")[2]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"known": "numerics/sums", "results": FIXED}, "known: numerics/sums"),
        ({"results": FIXED}, "fixed since 0.3.0"),
        ({"results": CHANGED}, "new"),
        ({"results": ()}, "new"),
        ({"oracle": "eager", "results": make_results(("ok", "1", True, None), ("ok", "1", False,
         None))}, "fixed since 0.2.0"),
        ({"oracle": "eager", "results": make_results(("ok", "1", True, None))}, "new"),
    ],
)  # fmt: skip
def test_a_finding_has_a_status(changes: dict[str, Any], status: str) -> None:
    """Known wins over fixed."""
    assert make_finding(**changes).status == status
