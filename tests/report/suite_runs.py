"""Runs of a suite made by hand: real directories, each test in each release as it is wanted."""

from __future__ import annotations

import json
from shlex import quote
from typing import TYPE_CHECKING, Any

from conformance.model.case import Deviation
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.model.run import RunCase, RunSuite

from .runs import Directory, cell_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

REVISION = "5" * 40
SUITE = RunSuite(
    name="signs", title="Signs", revision=REVISION, complete=True,
    settings={"max_examples": 5, "standard": "claimed"},
)  # fmt: skip
KNOWN = Deviation(
    releases="<0.7", error="TypeError", reason="signs of zeros are lost", issue="jax-ml/jax#1"
)
FAILS = ("TypeError", "0.0 is not -0.0\nassert False\n+  where False = f(0.0)")
SAID: Mapping[str, dict[str, Any]] = {
    "p": {},
    "k": {"error": FAILS, "verdict": Verdict.KNOWN},
    "F": {"error": FAILS, "verdict": Verdict.REGRESSED, "reasons": ("raised TypeError",)},
    "?": {"error": FAILS, "verdict": Verdict.FLAKY, "reasons": ("attempts disagree",)},
    "s": {
        "verdict": Verdict.EXCLUDED, "outcome": Outcome.UNSUPPORTED,
        "conformance": Conformance.UNKNOWN, "reasons": ("no such extension",),
    },
    "-": {
        "verdict": Verdict.EXCLUDED, "error": ("not collected", "is not collected here"),
        "outcome": Outcome.UNSUPPORTED,
    },
    "!": {"verdict": Verdict.INFRA, "outcome": Outcome.INFRA, "reasons": ("no space left",)},
}  # fmt: skip
"""What is recorded of a test, by a letter."""


def cells_of(releases: Sequence[str]) -> list[str]:
    """Return the cells of releases."""
    return [f"jax{release}-py311-cpu8" for release in releases]


def suite_run(
    folder: Path,
    releases: Sequence[str],
    tests: Mapping[str, str],
    *,
    warnings: Mapping[tuple[str, str], list[dict[str, Any]]] | None = None,
    texts: Mapping[tuple[str, str], Mapping[str, str]] | None = None,
    standards: Mapping[str, str] | None = None,
    **info: Any,
) -> Directory:
    """Return the directory of a run of a suite, written.

    Args:
        folder: Where it is to be.
        releases: Its releases.
        tests: A letter of `SAID` for each release, by test; a blank is no job. What stands in
            front of the first `/` is the group.
        warnings: What tests warned of, by test and release.
        texts: Further artifacts, by test and release.
        standards: Version of the standard, by release.
        **info: What `run.json` says otherwise.
    """
    run = Directory(folder)
    for cell, (at, release) in zip(cells_of(releases), enumerate(releases), strict=True):
        for test, letters in tests.items():
            if letters[at] == " ":
                continue
            run.job(test, cell, **SAID[letters[at]])
            key = test, release
            for name, text in (texts or {}).get(key, {}).items():
                run.records[-1].artifacts[name] = run.run.blobs.put(text.encode())
            if key in (warnings or {}):
                content = json.dumps((warnings or {})[key]).encode()
                run.records[-1].artifacts["warnings"] = run.run.blobs.put(content)
    cases = {
        test: RunCase(
            file="tests/test_signs.py", line=3, kind="test", group=test.partition("/")[0],
            arguments=quote(f"signs::{test}"),
            deviations=(KNOWN,) if "k" in letters else (),
        )
        for test, letters in tests.items()
    }  # fmt: skip
    facts = {
        cell: {"facts": {"standard": (standards or {}).get(release, "2024.12")}}
        for cell, release in zip(cells_of(releases), releases, strict=True)
    }
    cells = tuple(map(cell_of, cells_of(releases)))
    said: dict[str, Any] = {"suite": SUITE, "cases": cases, "identities": facts, "cells": cells}
    run.written(**{**said, **info})
    return run
