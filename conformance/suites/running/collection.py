"""What pytest collects in a cell: the tests, and what stands in the way of some."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec


class Test(msgspec.Struct, frozen=True, kw_only=True):
    """A test as pytest names it.

    Attributes:
        name: Its node id, numbered where several have the same.
        file: Its file.
        line: Line it begins in, 0 where that is not known.
        bound: Widest scope of the fixtures that it uses, below that of a session.
    """

    __test__ = False  # no class of tests to pytest

    name: str
    file: str = ""
    line: int = 0
    bound: str = "module"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What could not be collected, or was skipped as a whole.

    Attributes:
        node: Node id of the module, class or folder.
        broken: Whether it failed; else it is skipped.
        type: Type of the exception.
        message: Its message.
        where: Last line of the file that took part, `file:line`.
        reason: Why it is skipped.
        text: What pytest says of it.
        frames: Exceptions with their frames, as `conformance.worker.tracebacks` describes them.
    """

    node: str
    broken: bool
    type: str = ""
    message: str = ""
    where: str = ""
    reason: str = ""
    text: str = ""
    frames: tuple[Any, ...] = ()

    def covers(self, name: str) -> bool:
        """Say whether a test is, or would be, one of those that were not collected for it."""
        return self.node in {"", ".", name} or name.startswith((f"{self.node}::", f"{self.node}/"))

    def as_test(self, root: str) -> Test:
        """Return it in the place of tests that nobody knows."""
        path = Path(root) / self.node.partition("::")[0]
        return Test(name=self.node, file=str(path / "__init__.py" if path.is_dir() else path))


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """What was collected in a cell.

    Attributes:
        root: Folder that node ids start from.
        ini: Configuration file, empty for none.
        tests: The tests, in order.
        problems: What was not collected.
        told: What else is told of the cell: `workers`, `facts`, `warnings`.
        inputs: Data files that collecting read, as `engine.inputs.hash_inputs` returns them.
        failure: Why nothing could be collected at all, empty if it could.
        infra: Whether that is no fault of the suite's.
    """

    root: str = ""
    ini: str = ""
    tests: tuple[Test, ...] = ()
    problems: tuple[Problem, ...] = ()
    told: dict[str, Any] = {}
    inputs: dict[str, str] = {}
    failure: str = ""
    infra: bool = False
