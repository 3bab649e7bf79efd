"""JUnit's XML, for CI services that show test results: a suite per cell, a test per job.

Readers disagree on the name of a test, and some ignore the suite. So the class of a test is its
cell and, after the last dot, its family. Other readers refuse attributes that their schema does
not name, such as the file of a test, so the file is in the text of a failure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple
from xml.etree import ElementTree as ET

from conformance.engine.cache.blobs import CorruptBlobError
from conformance.model.outcome import Outcome, Verdict
from conformance.model.run import RunCase
from conformance.report.summary import EVERY
from conformance.report.text import flatten, make_rerun_command, parse_time, sanitize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.runs.loader import LoadedRun
    from conformance.engine.runs.stored_job import StoredJob
    from conformance.model.record import Record
    from conformance.model.run import RunCell
    from conformance.report.report import Report

NAME: Final = "jax-conformance"
HOST: Final = "localhost"
"""Host name that the format requires if the host is unknown; runs do not record it."""
ERRORS: Final = frozenset({Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.INFRA})
SKIPPED: Final = frozenset({Verdict.KNOWN, Verdict.EXCLUDED})
MOST_REASONS, MOST_MESSAGE, MOST_TEXT, MOST_OUTPUT = 20, 500, 4_000, 8_000
"""Limits: reasons, and characters of a message, of a text, and of the output of a job."""
_PRINTED: Final = {"system-out": "stdout", "system-err": "stderr"}


class _End(NamedTuple):
    """The element of a test that did not pass."""

    tag: str
    type: str
    message: str
    text: str


def render_junit(report: Report) -> bytes:
    """Return a report as JUnit's XML.

    Unexpected jobs are failures; crashes, timeouts, faults of the infrastructure and jobs that
    never ended are errors; known and excluded jobs are skipped. The error, its traceback and the
    output of the job are shown for the first job of each root cause.

    Args:
        report: The runs to report.
    """
    cases = _make_tests(report)
    cells = {cell.id: (cell, run) for run in report.runs for cell in run.info.cells}
    root = ET.Element("testsuites", name=NAME)
    # Exclusions may name cells that no run has.
    for id_ in dict.fromkeys([*cells, *cases]):
        suite = ET.SubElement(root, "testsuite", name=flatten(id_))
        if id_ in cells:
            _describe(suite, *cells[id_])
        suite.extend(cases.get(id_, []))
        _count(suite, suite.iter("testcase"))
    _count(root, root.iter("testcase"))
    del root.attrib["skipped"]  # the format has it on a suite, and not on the root
    ET.indent(root, " ")
    return bytes(ET.tostring(root, "utf-8", xml_declaration=True)) + b"\n"


def _make_tests(report: Report) -> dict[str, list[ET.Element]]:
    """Return the tests of each suite."""
    found: defaultdict[str, list[ET.Element]] = defaultdict(list)
    # The jobs of a root cause have much the same traceback and output: one of them is enough.
    examples = {(c.records[0].case, c.records[0].cell) for c in report.causes}
    for (case, cell), side in report.jobs.items():
        test = _make_test(case, cell, _seconds(side.record))
        whole = (case, cell) in examples
        _add_end(test, _make_end(side.record, report, whole=whole))
        if whole:
            for tag, artifact in _PRINTED.items():
                if artifact in side.record.artifacts:
                    ET.SubElement(test, tag).text = _read_output(side, artifact)
        found[cell].append(test)
    for case, cell in report.not_run:
        reason = "planned, but it never ended: its run was killed or interrupted"
        again = make_rerun_command(case, report.cases.get(case, RunCase()), report.selector(cell))
        test = _make_test(case, cell)
        _add_end(test, _End("error", Outcome.NOT_RUN, reason, f"{reason}\n{again}"))
        found[cell].append(test)
    for left_out in report.exclusions:
        case = left_out.case or EVERY
        test = _make_test(case, left_out.cell)
        _add_end(test, _End("skipped", Verdict.EXCLUDED, left_out.reason, left_out.reason))
        found[left_out.cell].append(test)
    # A service that sees no failing test reports success, even if a run could not be read.
    for problem in report.problems:
        test = ET.Element("testcase", name=flatten(problem), classname="runs", time="0.000")
        _add_end(test, _End("error", Outcome.INFRA, problem, problem))
        found["runs"].append(test)
    return found


def _make_test(case: str, cell: str, seconds: float = 0.0) -> ET.Element:
    family = case.partition("/")[0] if "/" in case else NAME
    named = {"name": flatten(case), "classname": flatten(f"{cell}.{family}")}
    return ET.Element("testcase", named, time=f"{seconds:.3f}")


def _add_end(test: ET.Element, end: _End | None) -> None:
    if end is not None:
        made = ET.SubElement(
            test, end.tag, type=end.type, message=flatten(end.message, MOST_MESSAGE)
        )
        made.text = sanitize(end.text, MOST_OUTPUT * 10)


def _make_end(record: Record, report: Report, *, whole: bool) -> _End | None:
    """Return the element of a job that did not pass, None for a job that did."""
    verdict = record.verdict
    message = record.reasons[0] if record.reasons else str(verdict)
    if verdict in SKIPPED:
        return _End("skipped", verdict, message, "\n".join(_list_reasons(record)))
    if verdict in ERRORS or record.unexpected:
        tag = "error" if verdict in ERRORS else "failure"
        return _End(tag, verdict, message, "\n".join(_describe_end(record, report, whole=whole)))
    return None


def _list_reasons(record: Record) -> Iterator[str]:
    yield from (sanitize(reason, MOST_TEXT) for reason in record.reasons[:MOST_REASONS])
    if len(record.reasons) > MOST_REASONS:
        yield f"and {len(record.reasons) - MOST_REASONS} more reasons"


def _describe_end(record: Record, report: Report, *, whole: bool) -> Iterator[str]:
    """Yield the lines about an unexpected ending, with the error if it is shown in full."""
    yield from _list_reasons(record)
    if record.error is not None:
        if whole:
            yield sanitize(f"{record.error.type}: {record.error.message}", MOST_TEXT)
        if record.error.where:
            yield f"raised at {sanitize(record.error.where, MOST_TEXT)}"
    if whole:
        yield from report.render_traceback(record)
    about = report.cases[record.case]
    if about.file:
        yield f"case at {sanitize(about.file, MOST_TEXT)}:{about.line}"
    yield f"repeat it with: {make_rerun_command(record.case, about, report.selector(record.cell))}"


def _read_output(side: StoredJob, artifact: str) -> str:
    """Return the end of a job's output."""
    try:
        data = side.blobs.get(side.record.artifacts[artifact])
    except CorruptBlobError as error:
        return sanitize(str(error))
    # A character of UTF-8 has at most four bytes: no more than these are decoded.
    text = data[-4 * MOST_OUTPUT :].decode("utf-8", "replace")[-MOST_OUTPUT:]
    return sanitize(
        text if len(data) <= MOST_OUTPUT else f"... the last of {len(data):,} bytes:\n{text}"
    )


def _seconds(record: Record) -> float:
    """Return the seconds of a job, 0 for an observation of an earlier run."""
    if record.cached:
        return 0.0
    return record.seconds.get("job", sum(record.seconds.values()))


def _describe(suite: ET.Element, cell: RunCell, run: LoadedRun) -> None:
    """Add to a suite its host, its time and the versions of its cell."""
    suite.set("hostname", HOST)
    started = parse_time(run.info.started)
    if started is not None:  # runs of older versions of the harness have no time
        suite.set("timestamp", f"{started:%Y-%m-%dT%H:%M:%S}")
    values = {
        "run": run.id,
        "lock": cell.lock,
        **{f"host.{name}": run.info.host.get(name, "") for name in ("system", "machine")},
        **{f"harness.{name}": version for name, version in run.info.versions.items()},
        **{f"version.{name}": version for name, version in cell.versions.items()},
    }
    properties = ET.SubElement(suite, "properties")
    for name, value in values.items():
        if value:
            ET.SubElement(properties, "property", name=flatten(name), value=flatten(str(value)))


def _count(element: ET.Element, tests: Iterator[ET.Element]) -> None:
    """Set the numbers and the time of tests on an element."""
    found: Counter[str] = Counter()
    seconds = 0.0
    for test in tests:
        found.update(["tests", *(child.tag for child in test)])
        seconds += float(test.get("time", "0"))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(found[tag]))
    element.set("tests", str(found["tests"]))
    element.set("time", f"{seconds:.3f}")
