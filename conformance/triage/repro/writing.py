"""One Python file for one case on one cell: nothing of ours, and it fails as was seen. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from textwrap import indent
from typing import TYPE_CHECKING, Any, Final

from conformance.judge.variants import SAME_AS, find_checked_variants
from conformance.model.case import ulp_of
from conformance.model.observation import ExpectedError
from conformance.model.outcome import Outcome
from conformance.triage.repro.carried import IMPORTS, Carried, carrying
from conformance.triage.repro.carried import NAMES as CARRIED
from conformance.triage.repro.checks import Tolerances, check_code
from conformance.triage.repro.facts import READINGS, claimed, text_of
from conformance.triage.repro.header import Header, Seen, readable, unasserted
from conformance.triage.repro.layout import asserted, assigned, format_literal, imported, spaced
from conformance.triage.repro.surroundings import CellSurroundings, env_code, kit_code
from conformance.triage.repro.templates import imports_in, render_main, render_piece

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.job import Job
    from conformance.triage.repro.source import CaseSource

CALL: Final = "@CALL@"
"""The call of the case's function, in code whose names are not yet kept apart from the case's."""
_OURS: Final = frozenset({
    *READINGS, "main", "check", "check_leaf", "leaves_of", "TOLERANCES", "as_numpy", "described",
    "ULP", "steps", "env", "program", "fn", "jitted", "expected", "given", "args", "traced",
    "lowered", "compiled", "hlo", "told", "seen", "observed", "wanted", "error", "names", "static",
    "other", "outline", "in_batch", "OneDevice", *CARRIED,
})  # fmt: skip
"""Names that the code at the end of a file binds."""
_USES_JAX: Final = re.compile(r"\bjax\.")
TOPOLOGY_TEXT: Final = "target_config"
HIDES_HLO_UNTIL: Final = "0.8.2"
"""The first release that gives the text of what it compiled for CUDA."""
_STATIC_MATTERS: Final = frozenset({"aot", "vmap_of_one"})
"""Variants that treat static arguments in another manner."""
_VARIANTS_WITH_CODE: Final = ("aot", "vmap_of_one", "unsharded")
"""Variants that call code of their own."""


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


def write(
    job: Job, source: CaseSource, seen: Seen, file: str, own: Carried | None = None
) -> Written:
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
    writer = _Writer(job=job, source=source, seen=seen, name=file, own=own or Carried())
    unread = writer.unasserted
    starts = ("fact {} ", "{} of ", "{}:")
    about = tuple(start.format(name) for name in unread for start in starts)
    silent = bool(seen.reasons) and all(reason.startswith(about) for reason in seen.reasons)
    return Written(text=writer.text(), unasserted=unread, silent=silent)


@dataclass(frozen=True, kw_only=True)
class _Writer:
    """Writes the file of one job."""

    job: Job
    source: CaseSource
    seen: Seen
    name: str
    own: Carried

    @cached_property
    def place(self) -> CellSurroundings:
        cell = self.job.planned.cell
        return CellSurroundings(
            id=cell.id,
            release=self.job.planned.release,
            platform=cell.platform,
            versions=self.job.planned.versions,
            topology=cell.place.topology,
        )

    @property
    def is_program(self) -> bool:
        return self.job.case.kind == "program"

    @property
    def has_env(self) -> bool:
        return bool(self.source.env) or (self.is_program and self.place.compile_only)

    @cached_property
    def has_static(self) -> bool:
        """Whether the program may have static arguments."""
        return any(name in text for text in self.source.definitions
                   for name in ("static_argnums", "static_argnames"))  # fmt: skip

    @cached_property
    def variants(self) -> tuple[str, ...]:
        """The variants of the program that the harness ran, and the file runs, too."""
        ran = find_checked_variants(self.job.case, self.seen.observation)
        return tuple(one for one in ran if not (self.has_static and one in _STATIC_MATTERS))

    @cached_property
    def unasserted(self) -> tuple[str, ...]:
        """The claims of the case that the file does not check, by name."""
        left = (f"{SAME_AS} {one}" for one in self.job.case.same_as if one not in self.variants)
        return (*unasserted(self.job.case.facts, self.seen), *left)

    @cached_property
    def claims(self) -> dict[str, object]:
        """The facts claimed that the file checks."""
        facts = self.job.case.facts
        return {name: facts[name] for name in facts if readable(name, facts[name], self.seen)}

    @property
    def compares(self) -> bool:
        """Whether the value is compared with a reference."""
        expected = self.seen.observation.reference
        never = expected is None or isinstance(expected, ExpectedError)
        return not never and not (self.place.compile_only and self.is_program)

    @cached_property
    def ulp(self) -> dict[str, int]:
        """How far leaves may be off by budgets of the platform, by their paths."""
        budgets = self.job.case.on(self.place.platform).budgets
        value = self.seen.observation.value
        paths = () if value is None else [leaf.path for leaf in value.leaves]
        found = {path: ulp_of(path, budgets) for path in paths}
        return {path: ulp for path, ulp in found.items() if ulp is not None}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The `jax.config` values of the job."""
        request = self.job.request()
        return {**({"jax_enable_x64": True} if request["x64"] else {}), **request["config"]}

    def text(self) -> str:
        """Return the whole file."""
        stand_ins = [*kit_code(self.source)]
        if self.has_env:
            stand_ins.append(env_code(self.source, self.place, runs=self.is_program))
        checks, main = [*self._checks()], f"def main():\n{indent(self._main(), '    ')}"
        target = self.place.topology.get(TOPOLOGY_TEXT)
        body = spaced(
            [
                *([] if target is None else [f'TARGET = """\\\n{target.strip()}\n"""']),
                *stand_ins,
                *(text.strip("\n") for text in self.source.definitions),
                *map(self._apart, checks),
                self._apart(main).replace(CALL, self._call()),
                'if __name__ == "__main__":\n    main()',
            ]
        )
        imports = {*self.source.imports, *imports_in("\n".join([*stand_ins, *checks, main]))}
        if self.settings or _USES_JAX.search(body):
            imports.add("import jax")
        header = Header(
            self.job, self.source, self.seen, self.place, self.name, self.unasserted, self.own
        ).lines()
        return "\n".join([*header, *self._setup(imports), "", body]) + "\n"

    def _apart(self, text: str) -> str:
        """Return code of ours whose names are none of the case's."""
        for name in _OURS & self.source.bound:
            text = re.sub(rf'(?<!")\b{name}\b', f"{name}_", text)
        return text

    def _setup(self, imports: set[str]) -> Iterator[str]:
        """Yield what must be set before jax is imported, the imports, and jax's own options."""
        request = self.job.request()
        yield ""
        if self.source.future:
            yield from ("from __future__ import annotations", "")
        first = ["import os", *(IMPORTS if self.own.files else ())]
        yield from (*imported(first), "")
        variables = {"JAX_PLATFORMS": "cpu", **self.job.planned.cell.place.environment}
        for name, value in variables.items():
            yield f'os.environ["{name}"] = "{value}"'
        flags = [*request["xla_flags"]]
        if self.place.platform == "cpu" or self.place.compile_only:
            flags.append(f"--xla_force_host_platform_device_count={request['devices']}")
        if flags:
            yield from assigned('os.environ["XLA_FLAGS"]', flags)
        yield ""
        if self.own.files:
            yield from (*carrying(self.own.files), "")
        yield from imported(imports.difference(first))
        if self.settings:
            yield ""
        for name, value in self.settings.items():
            yield f'jax.config.update("{name}", {format_literal(value)})'

    def _checks(self) -> Iterator[str]:
        """Yield the functions that `main` calls."""
        yield from map(text_of, self.claims)
        if self.compares or self.variants:
            case, seen = self.job.case, self.seen.observation
            stated = Tolerances(rtol=case.rtol, atol=case.atol, ulp=self.ulp)
            expected = None if isinstance(seen.reference, ExpectedError) else seen.reference
            values = (seen.value, expected, *(seen.ways[one].value for one in self.variants))
            yield check_code(values, stated)
            for one in _VARIANTS_WITH_CODE:
                if one in self.variants:
                    yield render_piece(f"way_{one}")
        if self.is_program and self.place.compile_only:
            yield render_piece("described")
        elif self.is_program and self.compares:
            yield render_piece("as_numpy")

    def _call(self) -> str:
        case = self.job.case
        given = ["env" if self.has_env else "None"]
        given += [f"{name}={format_literal(value)}" for name, value in case.params.items()]
        return f"{case.name}({', '.join(given)})"

    def _main(self) -> str:
        """Return the statements of `main`."""
        late = self.seen.observation.outcome is Outcome.TIMED_OUT
        cuda = self.place.platform.startswith("cuda")
        claims = {
            name: "\n".join(asserted("told", claimed(value))) for name, value in self.claims.items()
        }
        return render_main(
            call=CALL, env=self.has_env, is_program=self.is_program, compares=self.compares,
            kwargs="kwargs" in self.source.keywords, static=self.has_static, claims=claims,
            jit="program.fn, **program.jit" if "jit" in self.source.keywords else "program.fn",
            compile_only=self.place.compile_only, timeout=self.job.case.timeout if late else None,
            unasserted=unasserted(self.job.case.facts, self.seen), ways=self.variants, ulp=self.ulp,
            hides_hlo=cuda and not self.place.since(HIDES_HLO_UNTIL),
            raises=isinstance(self.seen.observation.reference, ExpectedError),
            observes="Observed" in self.source.kit,
        )  # fmt: skip
