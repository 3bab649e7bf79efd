"""Requests of batches: all that a node needs, read and prepared once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conformance.cells.lock import Lock
from conformance.cluster.messages import BatchRequest, ContentPlace, decode, encode
from conformance.cluster.requests import RequestMaker
from conformance.model.case import Deviation
from tests.engine.worlds import job, planned

CONTENT = ContentPlace(folder="/cache", token="t" * 32)


def test_a_request_has_all_that_a_job_needs(tmp_path: Path) -> None:
    """The node makes the same job of it, with the same key and request."""
    place = planned("0.6.0", devices=4, pins=("numpy==2.0.2",), config={"jax_x": "1"}.items())
    one = job(tmp_path, "case[2]", place, params={"n": 2, "of": [1, 2]}, x64=True,
              deviations=(Deviation(reason="known"),), doc="text")  # fmt: skip
    one = replace(one, alone=True, may_share=True, measure={"sizes": [1, 2]})
    one.case.file.parent.mkdir()
    one.case.file.write_text("pass\n")
    (tmp_path / "family" / "_helpers.py").write_text("X = 1\n")
    locks = {place.cell.id: Lock(text="# lock\n", path=Path("lock.txt"))}
    maker = RequestMaker("t", locks, CONTENT)
    sent = decode(encode(maker.make_request("k", [one])), BatchRequest)
    cell = sent.cell.make_cell()
    (spec,) = sent.decode_jobs()
    assert spec.make_job(cell).request() == one.request()
    assert cell == place
    assert sent.cell.make_lock() == locks[place.cell.id]
    assert {Path(name).name for name in sent.files} == {"topic.py", "_helpers.py"}
    # Only a judge needs them.
    assert (spec.case.deviations, spec.case.doc) == ((), "")


def test_jobs_of_a_case_are_sent_as_they_are_to_run(tmp_path: Path) -> None:
    """The case is the same in all of them."""
    one = job(tmp_path, "case", planned("0.6.0"))
    one.case.file.parent.mkdir()
    one.case.file.write_text("pass\n")
    jobs = [
        replace(one, alone=alone, may_share=share, measure=measure)
        for alone in (False, True)
        for share in (False, True)
        for measure in (None, {"n": 1})
    ]
    locks = {one.planned.cell.id: Lock(text="# lock\n", path=Path("lock.txt"))}
    request = RequestMaker("t", locks, CONTENT).make_request("k", jobs)
    found = decode(encode(request), BatchRequest).decode_jobs()
    assert [(spec.alone, spec.may_share, spec.measure) for spec in found] == [
        (sent.alone, sent.may_share, sent.measure) for sent in jobs
    ]


def test_all_batches_of_a_run_have_the_files_as_they_were_at_first(tmp_path: Path) -> None:
    """A file that changes during the run, or goes, does not part its cells."""
    places = [planned("0.6.0"), planned("0.7.0")]
    case = job(tmp_path, "case", places[0]).case
    case.file.parent.mkdir()
    case.file.write_text("before\n")
    locks = {place.cell.id: Lock(text="# lock\n", path=Path("lock.txt")) for place in places}
    maker = RequestMaker("t", locks, CONTENT)
    first = maker.make_request("1", [replace(job(tmp_path, "case", places[0]), case=case)])
    case.file.write_text("after\n")
    second = maker.make_request("2", [replace(job(tmp_path, "case", places[1]), case=case)])
    assert first.files == second.files == {str(case.file): b"before\n"}
    assert [request.cell.release for request in (first, second)] == ["0.6.0", "0.7.0"]
