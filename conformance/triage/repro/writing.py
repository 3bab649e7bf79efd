"""One Python file for one case on one cell: nothing of ours, and it fails as was seen. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from conformance.model.case import ulp_of
from conformance.model.observation import ExpectedError
from conformance.model.outcome import Outcome
from conformance.triage.repro.carried import IMPORTS, Carried, carrying
from conformance.triage.repro.carried import NAMES as CARRIED
from conformance.triage.repro.checks import Tolerances, check_piece
from conformance.triage.repro.facts import READINGS, claimed, imports_of, text_of
from conformance.triage.repro.header import Header, Seen, readable, unasserted
from conformance.triage.repro.layout import asserted, assigned, function, imported, spaced
from conformance.triage.repro.surroundings import (
    Piece,
    Place,
    env_piece,
    kit_pieces,
    lowering,
    quoted,
)
from conformance.triage.repro.ways import NAMES, told_ways, untold_ways, way_lines, way_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.job import Job
    from conformance.triage.repro.source import Source

CALL: Final = "@CALL@"
"""Where the case's function is called, in code that is not yet told apart from the case's."""
_OURS: Final = frozenset({
    *READINGS, "main", "check", "check_leaf", "leaves_of", "TOLERANCES", "as_numpy", "described",
    "ULP", "steps", "env", "program", "fn", "jitted", "expected", "given", "args", "traced",
    "lowered", "compiled", "hlo", "told", "seen", "observed", "wanted", "error", "names", "static",
    *NAMES, *CARRIED,
})  # fmt: skip
"""Names that the code at the end of a file binds."""
_USES_JAX: Final = re.compile(r"\bjax\.")
TOPOLOGY_TEXT: Final = "target_config"
HIDES_HLO_UNTIL: Final = "0.8.2"
"""The first release that gives the text of what it compiled for CUDA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file of its own.

    Attributes:
        text: What it holds.
        unasserted: Claims of the case that it does not check, by name.
        silent: Whether nothing else deviates: the file ends well all the same.
    """

    text: str
    unasserted: tuple[str, ...]
    silent: bool = False


def write(job: Job, source: Source, seen: Seen, file: str, own: Carried | None = None) -> Written:
    """Return a file that does what a job did and asserts what it should.

    Args:
        job: Case and cell.
        source: What the case is made of.
        seen: What came of the job.
        file: Name of the file, for its own comments.
        own: Modules of the user's own that it carries; None for none.

    Returns:
        Python that runs where only the packages of its header are installed.
    """
    unread = _unasserted(job, source, seen)
    text = _File(job, source, seen, file, own or Carried()).text()
    starts = ("fact {} ", "{} of ", "{}:")
    about = tuple(start.format(name) for name in unread for start in starts)
    silent = bool(seen.reasons) and all(reason.startswith(about) for reason in seen.reasons)
    return Written(text=text, unasserted=unread, silent=silent)


def _unasserted(job: Job, source: Source, seen: Seen) -> tuple[str, ...]:
    """Return the claims of a case that a file does not check, by name."""
    ways = untold_ways(job.case, _ways(job, source, seen))
    return (*unasserted(job.case.facts, seen), *ways)


def _ways(job: Job, source: Source, seen: Seen) -> tuple[str, ...]:
    """Return the other ways in which a file runs its program."""
    return told_ways(job.case, seen.observation, static=bool(_static_keywords(source)))


def _static_keywords(source: Source) -> frozenset[str]:
    texts = "\n".join(source.definitions)
    return frozenset(name for name in ("static_argnums", "static_argnames") if name in texts)


class _File:
    def __init__(self, job: Job, source: Source, seen: Seen, file: str, own: Carried) -> None:
        self._own = own
        self._job, self._source, self._seen, self._name = job, source, seen, file
        cell = job.planned.cell
        self._place = Place(
            id=cell.id,
            release=job.planned.release,
            platform=cell.platform,
            versions=job.planned.versions,
            topology=cell.place.topology,
        )
        self._ways = _ways(job, source, seen)
        self._imports = dict.fromkeys([*source.imports, "import jax"])

    def text(self) -> str:
        """Return the whole file."""
        program = self._job.case.kind == "program"
        env = bool(self._source.env) or (program and bool(self._place.topology))
        stand_ins = [*kit_pieces(self._source)]
        if env:
            stand_ins.append(env_piece(self._source, self._place, runs=program))
        checks = [*self._checks()]
        for piece in (*stand_ins, *checks):
            self._imports.update(dict.fromkeys(piece.imports))
        main = self._limited(self._program(env=env) if program else self._probe(env=env))
        blocks = [
            *self._constants(),
            *(piece.text for piece in stand_ins),
            *(text.strip("\n") for text in self._source.definitions),
            *(self._apart(piece.text) for piece in checks),
            self._apart(function("main", main)).replace(CALL, self._call(env=env)),
            'if __name__ == "__main__":\n    main()',
        ]
        body = spaced(blocks)
        unused = "import jax" not in self._source.imports and not self._settings
        if unused and not _USES_JAX.search(body):
            self._imports.pop("import jax")
        unread = _unasserted(self._job, self._source, self._seen)
        header = Header(
            self._job, self._source, self._seen, self._place, self._name, unread, self._own
        ).lines()
        return "\n".join([*header, *self._setup(), "", body]) + "\n"

    def _limited(self, lines: list[str]) -> list[str]:
        """Return statements that are ended where the job was, if it was for its time."""
        if self._seen.observation.outcome is not Outcome.TIMED_OUT:
            return lines
        self._imports["import faulthandler"] = None
        seconds = self._job.case.timeout
        return [f"faulthandler.dump_traceback_later({seconds!r}, exit=True)", *lines]

    def _apart(self, text: str) -> str:
        """Return code of ours whose names are none of the case's."""
        for name in _OURS & self._source.bound:
            text = re.sub(rf'(?<!")\b{name}\b', f"{name}_", text)
        return text

    # What is set before anything is done.

    def _setup(self) -> Iterator[str]:
        """Yield what must be set before jax is imported, the imports, and jax's own options."""
        request = self._job.request()
        yield ""
        if self._source.future:
            yield from ("from __future__ import annotations", "")
        first = ["import os", *(IMPORTS if self._own.files else ())]
        yield from (*imported(first), "")
        platforms = {"JAX_PLATFORMS": "cpu", **self._job.planned.cell.place.environment}
        for name, value in platforms.items():
            yield f'os.environ["{name}"] = "{value}"'
        flags = [*request["xla_flags"]]
        if self._place.platform == "cpu" or self._place.topology:
            flags.append(f"--xla_force_host_platform_device_count={request['devices']}")
        if flags:
            yield from assigned('os.environ["XLA_FLAGS"]', flags)
        yield ""
        if self._own.files:
            yield from (*carrying(self._own.files), "")
        lines = [line for line in self._imports if line not in first]
        yield from imported(lines)
        if self._settings:
            yield ""
        for name, value in self._settings.items():
            yield f'jax.config.update("{name}", {quoted(value)})'

    @property
    def _settings(self) -> dict[str, Any]:
        """The `jax.config` values of the job."""
        request = self._job.request()
        return {**({"jax_enable_x64": True} if request["x64"] else {}), **request["config"]}

    def _constants(self) -> Iterator[str]:
        target = self._place.topology.get(TOPOLOGY_TEXT)
        if target is not None:
            yield f'TARGET = """\\\n{target.strip()}\n"""'

    # What is asserted.

    @property
    def _claims(self) -> dict[str, object]:
        facts = self._job.case.facts
        return {name: facts[name] for name in facts if readable(name, facts[name], self._seen)}

    @property
    def _compares(self) -> bool:
        expected = self._seen.observation.reference
        never = expected is None or isinstance(expected, ExpectedError)
        return not never and not (self._place.topology and self._job.case.kind == "program")

    @property
    def _ulp(self) -> dict[str, int]:
        """How far leaves may be off by budgets of the platform, by their paths."""
        budgets = self._job.case.on(self._place.platform).budgets
        value = self._seen.observation.value
        paths = () if value is None else [leaf.path for leaf in value.leaves]
        found = {path: ulp_of(path, budgets) for path in paths}
        return {path: ulp for path, ulp in found.items() if ulp is not None}

    def _checks(self) -> Iterator[Piece]:
        for name in self._claims:
            yield Piece(text_of(name), imports_of(name))
        if self._compares or self._ways:
            seen = self._seen.observation
            case = self._job.case
            stated = Tolerances(rtol=case.rtol, atol=case.atol, ulp=self._ulp)
            expected = None if isinstance(seen.reference, ExpectedError) else seen.reference
            values = (seen.value, expected, *(seen.ways[way].value for way in self._ways))
            yield check_piece(values, stated)
            yield from way_pieces(self._ways)
        if self._job.case.kind == "program":
            if self._place.topology:
                yield Piece(_DESCRIBED)
            elif self._compares:
                yield Piece(_AS_NUMPY, ("import numpy as np",))

    # What is done.

    def _call(self, *, env: bool) -> str:
        case = self._job.case
        first = ["env" if env else "None"]
        given = ", ".join([*first, *(f"{n}={quoted(v)}" for n, v in case.params.items())])
        return f"{case.name}({given})"

    def _probe(self, *, env: bool) -> list[str]:
        lines = ["env = Env()"] if env else []
        if "Observed" not in self._source.kit:
            return [*lines, f"seen = {CALL}", 'print("seen:", seen)']
        lines += [
            f"observed = {CALL}",
            "if not isinstance(observed, Observed):",
            "    observed = Observed(observed)",
            'print("seen:", observed.value)',
        ]
        if self._compares:
            lines += [
                "expected = observed.reference",
                "expected = expected() if callable(expected) else expected",
                'print("expected:", expected)',
                "check(observed.value, expected)",
            ]
        return lines

    def _program(self, *, env: bool) -> list[str]:
        lines = ["env = Env()"] if env else []
        lines.append(f"program = {CALL}")
        if not isinstance(self._seen.observation.reference, ExpectedError):
            return [*lines, *self._run_lines(), *self._way_lines()]
        self._imports["import re"] = None
        return [
            *lines,
            "wanted = program.reference",
            "try:",
            *(f"    {line}" for line in self._run_lines()),
            "except Exception as error:",
            '    names = [name.strip().rpartition(".")[2] for name in wanted.type.split("|")]',
            "    if type(error).__name__ not in names or not re.search(wanted.match, str(error)):",
            "        raise",
            '    print(f"seen, as expected: {type(error).__name__}: {error}")',
            "else:",
            '    raise AssertionError(f"ran, expected {wanted}")',
        ]

    def _way_lines(self) -> list[str]:
        """Return the statements that run `program` in other ways."""
        kwargs = "kwargs" in self._source.keywords
        lines = [
            line
            for way in self._ways
            for line in way_lines(way, call=CALL, jit=self._jit, kwargs=kwargs)
        ]
        # Budgets are to the reference; other ways are compared as floats of the dtype are.
        return ["ULP.clear()", *lines] if lines and self._ulp else lines

    def _run_lines(self) -> list[str]:
        """Return the statements that take `program` through its stages."""
        static = bool(_static_keywords(self._source))
        jit = self._jit
        kwargs = "kwargs" in self._source.keywords
        given = "*program.args" + (", **program.kwargs" if kwargs else "")
        lines = [
            "jitted = isinstance(program.fn, type(jax.jit(lambda: None)))",
            f"fn = program.fn if jitted else jax.jit({jit})",
        ]
        if self._compares:
            lines += self._reference(kwargs=kwargs)
        args = "program.args"
        if self._place.topology:
            lines += self._described()
            given = given.replace("program.args", "args")
        lines.append(f"traced = fn.trace({given})")
        lowered = lowering(self._place, "env").replace("return ", "lowered = ")
        lines += lowered.splitlines()
        lines.append("compiled = lowered.compile()")
        facts = self._asserted_facts()
        if self._place.topology:
            return [*lines, *(facts or ["print(compiled.as_text())"])]
        lines += facts
        if static:
            lines += self._dynamic()
            args = "args"
        call = f"*{args}" + (", **program.kwargs" if kwargs else "")
        lines.append(f"seen = jax.block_until_ready(compiled({call}))")
        lines.append('print("seen:", seen)')
        if self._compares:
            lines += ['print("expected:", expected)', "check(seen, expected)"]
        return lines

    @property
    def _jit(self) -> str:
        return "program.fn, **program.jit" if "jit" in self._source.keywords else "program.fn"

    def _reference(self, *, kwargs: bool) -> list[str]:
        """Return what computes the reference, of copies: the program may donate its arguments."""
        self._imports["import numpy as np"] = None
        more = ", **given[1]" if kwargs else ""
        given = "(program.args, program.kwargs)" if kwargs else "program.args"
        first = "*given[0]" if kwargs else "*given"
        return [
            "expected = program.reference",
            "if callable(expected):",
            f"    given = jax.tree.map(as_numpy, {given})",
            f"    expected = expected({first}{more})",
        ]

    def _described(self) -> list[str]:
        """Return what describes arguments that lie on devices which are here."""
        return ["args = jax.tree.map(described, tuple(program.args))"]

    def _dynamic(self) -> list[str]:
        return [
            'static = program.jit.get("static_argnums", ())',
            "static = {static} if isinstance(static, int) else set(static)",
            "args = [arg for number, arg in enumerate(program.args) if number not in static]",
        ]

    def _asserted_facts(self) -> list[str]:
        claims = self._claims
        more = unasserted(self._job.case.facts, self._seen)
        if not claims and not more:
            return []
        lines = ["hlo = compiled.as_text()"]
        if self._place.platform.startswith("cuda") and not self._place.since(HIDES_HLO_UNTIL):
            lines = list(_DUMPED)
            self._imports.update(dict.fromkeys(("import tempfile", "from pathlib import Path")))
        for name, value in claims.items():
            lines.append(f"told = {name}(hlo)")
            lines.append(f'print("{name}:", told)')
            lines += asserted("told", claimed(value))
        if more:
            lines.append("print(hlo)")
        return lines


_DESCRIBED: Final = '''\
def described(leaf):
    """Return an array by shape and dtype: one that lies here is not for devices elsewhere."""
    if not isinstance(leaf, jax.Array) or jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)'''
_AS_NUMPY: Final = '''\
def as_numpy(leaf):
    """Return a copy of an array: a program may donate its arguments."""
    if not isinstance(leaf, jax.Array) or jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf
    return np.array(leaf)'''
_DUMPED: Final = (
    "with tempfile.TemporaryDirectory() as folder:  # this release does not give it as text",
    '    options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}',
    "    lowered.compile(compiler_options=options)",
    '    dumped = sorted(Path(folder).glob("*after_optimizations.txt"))',
    "    hlo = dumped[-1].read_text()",
)
