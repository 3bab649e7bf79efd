"""Writes one Python file that reproduces one case in one cell, without the harness. Pure."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from textwrap import indent
from typing import TYPE_CHECKING, Any, Final

from conformance.judge.variants import SAME_AS, find_checked_variants
from conformance.model.case import find_ulp
from conformance.model.observation import ExpectedError
from conformance.model.outcome import Outcome
from conformance.triage.repro.assertions import (
    READINGS,
    Tolerances,
    normalize_claim,
    render_check,
    render_reading,
)
from conformance.triage.repro.embedded_modules import IMPORTS, EmbeddedModules, render_embedding
from conformance.triage.repro.embedded_modules import NAMES as EMBEDDING_NAMES
from conformance.triage.repro.header import Header, JudgedObservation, is_checkable, list_unchecked
from conformance.triage.repro.layout import (
    WIDTH,
    format_literal,
    join_blocks,
    render_assertion,
    render_imports,
    render_words,
)
from conformance.triage.repro.stand_ins import (
    CellSurroundings,
    find_imports,
    render_env,
    render_kit,
    render_main,
    render_piece,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.job import Job
    from conformance.triage.repro.case_source import CaseSource

CALL: Final = "@CALL@"
"""Placeholder of the call of the case: renaming clashing names must not change it."""
_WRITTEN_NAMES: Final = frozenset({
    *READINGS, "main", "check", "check_leaf", "leaves_of", "TOLERANCES", "as_numpy", "described",
    "ULP", "steps", "env", "program", "fn", "jitted", "expected", "given", "args", "traced",
    "lowered", "compiled", "hlo", "fact", "seen", "observed", "wanted", "error", "names", "static",
    "other", "outline", "in_batch", "OneDevice", *EMBEDDING_NAMES,
})  # fmt: skip
"""Names that the written code binds, in addition to those of the case."""
_USES_JAX: Final = re.compile(r"\bjax\.")
TOPOLOGY_TEXT: Final = "target_config"
HIDES_HLO_UNTIL: Final = "0.8.2"
"""The first release whose executables for CUDA have a text."""
_STATIC_MATTERS: Final = frozenset({"aot", "vmap_of_one"})
"""Variants that pass static arguments in another way."""
_VARIANTS_WITH_CODE: Final = ("aot", "vmap_of_one", "unsharded")
"""Variants that need functions of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproductionFile:
    """A one-file reproduction.

    Attributes:
        text: Its text.
        unchecked_names: Names of the claims and variants that it does not check.
        silent: Whether the case deviates only from these: then the file ends with status 0.
    """

    text: str
    unchecked_names: tuple[str, ...]
    silent: bool = False


def write_reproduction(
    job: Job,
    source: CaseSource,
    seen: JudgedObservation,
    file: str,
    embedded: EmbeddedModules | None = None,
) -> ReproductionFile:
    """Return a file that repeats a job and asserts its expected result.

    Args:
        job: Case and cell.
        source: Source code of the case.
        seen: The observation of the job.
        file: Name of the file, for its comments.
        embedded: Modules of the user to embed; None for none.

    Returns:
        Python that runs where only the packages of its header are installed.
    """
    writer = _Writer(
        job=job, source=source, seen=seen, name=file, embedded=embedded or EmbeddedModules()
    )
    unchecked_names = writer.unchecked_names
    prefixes = ("fact {} ", "{} of ", "{}:")
    # Reasons begin with the claim or the variant that they are about.
    about = tuple(prefix.format(name) for name in unchecked_names for prefix in prefixes)
    silent = bool(seen.reasons) and all(reason.startswith(about) for reason in seen.reasons)
    return ReproductionFile(text=writer.render(), unchecked_names=unchecked_names, silent=silent)


@dataclass(frozen=True, kw_only=True)
class _Writer:
    """Writes the file of one job."""

    job: Job
    source: CaseSource
    seen: JudgedObservation
    name: str
    embedded: EmbeddedModules

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
        """The variants of the program that the harness ran and the file can run."""
        case = self.job.case
        ran = find_checked_variants(case, self.seen.observation)
        # Variants of a law are checked with each example, and one of them may be what fails.
        ran = case.same_as if case.given and not self.place.compile_only else ran
        return tuple(name for name in ran if not (self.has_static and name in _STATIC_MATTERS))

    @cached_property
    def unchecked_names(self) -> tuple[str, ...]:
        """Names of the claims and variants of the case that the file does not check."""
        skipped = (
            f"{SAME_AS} {name}" for name in self.job.case.same_as if name not in self.variants
        )
        return (*list_unchecked(self.job.case.facts, self.seen), *skipped)

    @cached_property
    def claims(self) -> dict[str, object]:
        """The claims that the file checks."""
        facts = self.job.case.facts
        return {name: facts[name] for name in facts if is_checkable(name, facts[name], self.seen)}

    @property
    def compares(self) -> bool:
        """Whether the value is compared with a reference."""
        expected = self.seen.observation.reference
        if expected is None or isinstance(expected, ExpectedError):
            return False
        # A probe with `given` checks its law itself; its value is the number of examples.
        if self.job.case.given and not self.is_program:
            return False
        # Nothing is executed on a compile-only platform.
        return not (self.place.compile_only and self.is_program)

    @cached_property
    def ulp(self) -> dict[str, int]:
        """Budgets of the platform in units in the last place, by path of the leaf."""
        budgets = self.job.case.select_platform(self.place.platform).budgets
        value = self.seen.observation.value
        paths = () if value is None else [leaf.path for leaf in value.leaves]
        found = {path: find_ulp(path, budgets) for path in paths}
        return {path: ulp for path, ulp in found.items() if ulp is not None}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The `jax.config` values of the job."""
        request = self.job.request()
        return {**({"jax_enable_x64": True} if request["x64"] else {}), **request["config"]}

    def render(self) -> str:
        """Return the whole file."""
        stand_ins = [*render_kit(self.source)]
        if self.has_env:
            env = render_env(self.source, self.place, is_program=self.is_program)
            stand_ins.append(env)
        checks, main = (
            [*self._render_checks()],
            f"def main():\n{indent(self._render_main(), '    ')}",
        )
        target = self.place.topology.get(TOPOLOGY_TEXT)
        body = join_blocks(
            [
                *([] if target is None else [f'TARGET = """\\\n{target.strip()}\n"""']),
                *stand_ins,
                *(text.strip("\n") for text in self.source.definitions),
                *map(self._rename_clashes, checks),
                # The call is filled in last: it contains names of the case, which must not be
                # renamed.
                self._fill_in_call(self._rename_clashes(main)),
                'if __name__ == "__main__":\n    main()',
            ]
        )
        written = "\n".join([*stand_ins, *checks, main, self._render_call()])
        imports = {*self.source.imports, *find_imports(written)}
        if self.settings or _USES_JAX.search(body):
            # `find_imports` leaves out plain `jax`, which most cases import themselves.
            imports.add("import jax")
        header = Header(
            self.job,
            self.source,
            self.seen,
            self.place,
            self.name,
            self.unchecked_names,
            self.embedded,
        ).lines()
        return "\n".join([*header, *self._render_setup(imports), "", body]) + "\n"

    def _rename_clashes(self, text: str) -> str:
        """Return written code with other names for those that the case binds, too."""
        for name in _WRITTEN_NAMES & self.source.bound:
            # Not behind a quote: names in strings, e.g. of facts, are not variables.
            text = re.sub(rf'(?<!")\b{name}\b', f"{name}_", text)
        return text

    def _fill_in_call(self, text: str) -> str:
        """Return code with the call of the case, which may be long: examples have arrays."""
        lines = (line.replace(CALL, self._render_call()) for line in text.split("\n"))
        return "\n".join(line + "  # fmt: skip" * (len(line) > WIDTH) for line in lines)

    def _render_setup(self, imports: set[str]) -> Iterator[str]:
        """Yield environment variables, above the import of jax, which reads them; then options."""
        request = self.job.request()
        yield ""
        # Python allows only comments and docstrings above this import.
        if self.source.has_future_annotations:
            yield from ("from __future__ import annotations", "")
        first = ["import os", *(IMPORTS if self.embedded.files else ())]
        yield from (*render_imports(first), "")
        # Without it, jax would take an accelerator of the reader's machine.
        variables = {"JAX_PLATFORMS": "cpu", **self.job.planned.cell.place.environment}
        for name, value in variables.items():
            yield f'os.environ["{name}"] = "{value}"'
        flags = [*request["xla_flags"]]
        if self.place.platform == "cpu" or self.place.compile_only:
            flags.append(f"--xla_force_host_platform_device_count={request['devices']}")
        if flags:
            yield from render_words('os.environ["XLA_FLAGS"]', flags)
        yield ""
        if self.embedded.files:
            yield from (*render_embedding(self.embedded.files), "")
        # After the embedded modules, which the case may import.
        yield from render_imports(imports.difference(first))
        if self.settings:
            yield ""
        for name, value in self.settings.items():
            yield f'jax.config.update("{name}", {format_literal(value)})'

    def _render_checks(self) -> Iterator[str]:
        """Yield the functions that `main` calls."""
        yield from map(render_reading, self.claims)
        if self.compares or self.variants:
            case, seen = self.job.case, self.seen.observation
            tolerances = Tolerances(rtol=case.rtol, atol=case.atol, ulp=self.ulp)
            expected = None if isinstance(seen.reference, ExpectedError) else seen.reference
            # All values that the file may compare: `check` handles only their kinds of leaves.
            others = (seen.variants[name].value for name in self.variants if name in seen.variants)
            values = (seen.value, expected, *others)
            yield render_check(values, tolerances)
            for name in _VARIANTS_WITH_CODE:
                if name in self.variants:
                    yield render_piece(f"variant_{name}")
        if self.is_program and self.place.compile_only:
            yield render_piece("described")
        elif self.is_program and self.compares:
            yield render_piece("as_numpy")

    def _render_call(self) -> str:
        case = self.job.case
        arguments = ["env" if self.has_env else "None"]
        arguments += [f"{name}={format_literal(value)}" for name, value in case.params.items()]
        for assigned in ast.parse(self.seen.example).body:
            text = ast.get_source_segment(self.seen.example, assigned) or ""
            arguments.append(text.replace(" = ", "=", 1))
        return f"{case.name}({', '.join(arguments)})"

    def _render_main(self) -> str:
        """Return the statements of `main`."""
        late = self.seen.observation.outcome is Outcome.TIMED_OUT
        cuda = self.place.platform.startswith("cuda")
        claims = {
            name: "\n".join(render_assertion("fact", normalize_claim(value)))
            for name, value in self.claims.items()
        }
        return render_main(
            call=CALL, env=self.has_env, is_program=self.is_program, compares=self.compares,
            kwargs="kwargs" in self.source.keywords, static=self.has_static, claims=claims,
            jit="program.fn, **program.jit" if "jit" in self.source.keywords else "program.fn",
            compile_only=self.place.compile_only, timeout=self.job.case.timeout if late else None,
            # Claims only: variants that are not asserted do not make the file print its HLO.
            unchecked=list_unchecked(self.job.case.facts, self.seen), variants=self.variants,
            ulp=self.ulp,
            hides_hlo=cuda and not self.place.since(HIDES_HLO_UNTIL),
            raises=isinstance(self.seen.observation.reference, ExpectedError),
            observes="Observed" in self.source.kit,
        )  # fmt: skip
