"""The metadata of a case, parsed from its decorator without importing the file."""

from __future__ import annotations

import ast
import difflib
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from conformance.corpus.claims import FILECHECK, find_claim_problem
from conformance.corpus.constants import find_constants, find_defaults, resolve_constants
from conformance.corpus.python_source import get_callee_name
from conformance.model.case import POLICY, VARIANTS, Budget, Deviation, Policy
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")
Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
ObservationSize = Annotated[int, msgspec.Meta(ge=1, le=1024)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]


class MetadataError(Exception):
    """An error in a decorator; `line` is its line in the file, from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class _Declared(NamedTuple):
    """The form of calls in a list of declarations.

    Attributes:
        name: Name of the called function.
        struct: Type of its arguments.
        places: Names of its positional arguments.
    """

    name: str
    struct: type[msgspec.Struct]
    places: tuple[str, ...]


class DeviationMetadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keywords of `deviation`, as `conformance.kit.case.deviation` documents them."""

    releases: str = ""
    outcome: str = "raised"
    error: str = ""
    match: str = ""
    platform: str = ""
    packages: dict[str, str] = {}
    params: tuple[str, ...] = ()
    reason: str = ""
    issue: str = ""


class BudgetMetadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `budget`, as `conformance.kit.case.budget` documents them."""

    platform: str
    ulp: Annotated[int, msgspec.Meta(ge=0)]
    reason: Annotated[str, msgspec.Meta(min_length=1)]
    leaves: tuple[str | int, ...] = ()
    params: tuple[str, ...] = ()
    source: str = ""


class Metadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keywords of `program` and `probe`, as `conformance.kit.case.program` documents them."""

    source: str = ""
    params: dict[str, dict[str, Any]] | tuple[str, ...] | None = None
    given: tuple[str, ...] | None = None
    examples: Count = 20
    sizes: tuple[Count, ...] = ()
    devices: Count = 1
    platforms: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    releases: str = ""
    deviations: tuple[DeviationMetadata, ...] = ()
    facts: dict[str, Any] | None = None
    policy: dict[str, Policy] = {}
    x64: bool = False
    timeout: Positive = 60.0
    memory: Count = 4096
    observation_mb: ObservationSize = 256
    xla_flags: tuple[str, ...] = ()
    config: dict[str, Any] | None = None
    rtol: NotNegative | None = None
    atol: NotNegative | None = None
    budgets: tuple[BudgetMetadata, ...] = ()
    same_as: tuple[str, ...] = ()
    records: str = ""


_DECLARED: Final[Mapping[str, _Declared]] = {
    "deviations": _Declared("deviation", DeviationMetadata, ("releases",)),
    "budgets": _Declared("budget", BudgetMetadata, ("platform", "ulp")),
}
"""Declarations by the keyword that lists them."""
_OF_PROGRAMS: Final = {
    "facts": "compiled",
    "policy": "compiled",
    "same_as": "run in variants",
}
"""Keywords that only `program` has, with the reason."""
_OF_ONE_CASE: Final = ("params", "given", "examples", "sizes", "records")
"""Keywords that only a decorator has."""
# No deviation can be declared by other outcomes, which are not about JAX.
OUTCOMES = ("ok", "raised", "crashed", "timed_out", "out_of_memory")


class SharedMetadata(NamedTuple):
    """The constants and defaults that the decorators of a case file share.

    Attributes:
        constants: Values of the names that the file assigns once.
        defaults: Keywords of its call of `defaults`.
    """

    constants: Mapping[str, ast.expr]
    defaults: Mapping[str, Any]


def read_shared_metadata(tree: ast.Module) -> SharedMetadata:
    """Read the constants and the defaults of a case file.

    Args:
        tree: The syntax tree of the file.

    Raises:
        MetadataError: If `defaults` is called twice, or a keyword is unknown, no literal, or of
            the wrong type.
    """
    constants = find_constants(tree)
    calls = [resolve_constants(call, constants) for call in find_defaults(tree)]
    for call in calls[1:]:
        raise MetadataError(call.lineno, "a second call of defaults(); a file has one")
    given: dict[str, Any] = {}
    for call in calls:
        if call.args:
            raise MetadataError(call.lineno, "defaults() takes keywords only")
        given = _read_keywords(call, "defaults")
        if name := next((name for name in _OF_ONE_CASE if name in given), None):
            raise MetadataError(call.lineno, f"defaults() has no `{name}`: it is of one case")
        # Here rather than in each case, so that the error has the line of the defaults.
        _check(_convert(given, Metadata, "defaults", call.lineno), call.lineno)
    return SharedMetadata(constants, given)


def read_metadata(call: ast.Call, kind: str, shared: SharedMetadata) -> Metadata:
    """Return the metadata of a decorator call.

    Args:
        call: `program(...)` or `probe(...)`, as written in the file.
        kind: Name of the decorator.
        shared: Constants and defaults of the file.

    Returns:
        The validated keywords.

    Raises:
        MetadataError: If a keyword is unknown, no literal, or of the wrong type.
    """
    call = resolve_constants(call, shared.constants)
    if call.args:
        raise MetadataError(call.lineno, f"@{kind} takes keywords only, got a positional argument")
    given = _read_keywords(call, kind)
    # Before the conversion, which would accept these keywords of a program for a probe.
    for name, reason in _OF_PROGRAMS.items():
        if kind == "probe" and name in given:
            raise MetadataError(call.lineno, f"@probe has no `{name}`: only a program is {reason}")
    if kind == "program" and "records" in given:
        raise MetadataError(call.lineno, "@program has no `records`: give it a reference")
    # A file may have both kinds: defaults that only programs have are ignored by its probes.
    defaults = {
        name: value
        for name, value in shared.defaults.items()
        if name not in _OF_PROGRAMS or kind == "program"
    }
    # A keyword of the decorator replaces the default; lists and dictionaries are not merged.
    metadata = _convert(defaults | given, Metadata, f"@{kind}", call.lineno)
    _check(metadata, call.lineno)
    return metadata


def _read_keywords(call: ast.Call, where: str) -> dict[str, Any]:
    given = {}
    for keyword in call.keywords:
        _check_name(keyword, Metadata, where)
        name = str(keyword.arg)
        read = _READERS.get(name, _read_literal)
        given[name] = read(keyword.value, name)
    return given


def _read_given(node: ast.expr, _: str) -> tuple[str, ...]:
    """Return the parameters of `given`; its strategies are evaluated in the cell."""
    keys = node.keys if isinstance(node, ast.Dict) else [None]
    names = tuple(k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str))
    if not names or len(names) < len(keys):
        raise MetadataError(
            node.lineno,
            f"`given` is `{ast.unparse(node)}`, expected a dictionary from names of parameters to "
            'strategies, e.g. {"x": st.arrays("float32", 4)}',
        )
    return names


def normalize_specifier(text: str) -> str:
    """Return a jax specifier without the name: `<0.6` for `jax<0.6` and `<0.6`."""
    return text.strip().removeprefix("jax").strip()


def select_deviations(metadata: Metadata, param: str) -> tuple[Deviation, ...]:
    """Return the deviations that apply to a parametrisation, empty for a case without."""
    return tuple(
        Deviation(**{**_drop_params(d), "releases": normalize_specifier(d.releases)})
        for d in metadata.deviations
        if not d.params or param in d.params
    )


def select_budgets(metadata: Metadata, param: str) -> tuple[Budget, ...]:
    """Return the budgets that apply to a parametrisation, empty for a case without."""
    return tuple(
        Budget(**_drop_params(b)) for b in metadata.budgets if not b.params or param in b.params
    )


def _drop_params(declared: msgspec.Struct) -> dict[str, Any]:
    return {k: v for k, v in msgspec.structs.asdict(declared).items() if k != "params"}


def _check_name(keyword: ast.keyword, struct: type[msgspec.Struct], where: str) -> None:
    names = struct.__struct_fields__
    if keyword.arg is None:
        raise MetadataError(keyword.value.lineno, f"{where}: keywords must be literal, got **")
    if keyword.arg in names:
        return
    hint = _suggest(keyword.arg, names)
    raise MetadataError(keyword.value.lineno, f"{where}: unknown keyword `{keyword.arg}`; {hint}")


def _suggest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"expected one of {', '.join(known)}"


def _read_literal(node: ast.expr, name: str) -> Any:
    if isinstance(node, ast.Dict):
        keys = [ast.unparse(key) for key in node.keys if key is not None]
        # Python keeps the last of two equal keys without a warning, and a parametrisation would
        # vanish.
        if repeated := next((key for key in keys if keys.count(key) > 1), None):
            raise MetadataError(node.lineno, f"`{name}` has the key {repeated} twice; rename one")
    try:
        return ast.literal_eval(node)
    # literal_eval documents all five, for malformed and for huge input.
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise MetadataError(
            node.lineno,
            f"`{name}` is `{ast.unparse(node)}`, expected a literal "
            "or a constant that this file assigns once; cases are read without being imported",
        ) from None


def _read_declarations(node: ast.expr, listed: str) -> list[Any]:
    declared = _DECLARED[listed]
    if not isinstance(node, (ast.List, ast.Tuple)):
        raise MetadataError(
            node.lineno,
            f"`{listed}` is `{ast.unparse(node)}`, expected a list of {declared.name}(...) or of "
            "constants that this file assigns once",
        )
    return [_read_declaration(element, listed) for element in node.elts]


def _read_declaration(node: ast.expr, listed: str) -> Any:
    name, struct, places = _DECLARED[listed]
    if not isinstance(node, ast.Call) or get_callee_name(node) != name:
        raise MetadataError(
            node.lineno,
            f"`{listed}` has `{ast.unparse(node)}`, expected {name}(...) or a "
            "constant that this file assigns once",
        )
    if len(node.args) > len(places):
        count = plural(len(places), "positional argument")
        raise MetadataError(node.lineno, f"{name} takes {count}, {' and '.join(places)}")
    given = {
        place: _read_literal(arg, place) for place, arg in zip(places, node.args, strict=False)
    }
    for keyword in node.keywords:
        _check_name(keyword, struct, name)
        given[str(keyword.arg)] = _read_literal(keyword.value, str(keyword.arg))
    found = _convert(given, struct, name, node.lineno)
    if isinstance(found, DeviationMetadata):
        _check_deviation(found, node.lineno)
    return found


_READERS: Final[Mapping[str, Callable[[ast.expr, str], Any]]] = {
    "given": _read_given, **dict.fromkeys(_DECLARED, _read_declarations),
}  # fmt: skip
"""Readers of keywords whose values are no literals."""


def _check_deviation(declared: DeviationMetadata, line: int) -> None:
    if declared.outcome not in OUTCOMES:
        raise MetadataError(
            line, f"deviation outcome `{declared.outcome}`, expected {', '.join(OUTCOMES)}"
        )
    _check_pattern(declared.match, line)
    _check_specifier(declared.releases, line)
    for package, text in declared.packages.items():
        _check_specifier(text, line, package)


_SIMPLE_PATTERN = re.compile(r"(?:\.\*|[^\\\[\](){}*+?|^$]|\\[^\w\s])*")
"""Plain text, `.*` and escaped punctuation, which are always valid. Nearly all patterns are of this
form, and to compile the hundreds in a corpus would take a fifth of the time of discovery."""


def _check_pattern(text: str, line: int) -> None:
    if _SIMPLE_PATTERN.fullmatch(text):
        return
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise MetadataError(
            line, f"deviation match `{text}` is not a regular expression: {error}"
        ) from None


def _convert(given: Mapping[Any, Any], struct: type[T], where: str, line: int) -> T:
    try:
        return msgspec.convert(given, struct)
    except msgspec.ValidationError as error:
        raise MetadataError(line, f"{where}: {str(error).lower()}") from None


def _check(metadata: Metadata, line: int) -> None:
    _check_specifier(metadata.releases, line)
    for requirement in metadata.requires:
        try:
            Requirement(requirement)
        except InvalidRequirement:
            raise MetadataError(
                line,
                f"`requires` has `{requirement}`, expected a package or a package with a "
                "specifier, e.g. `flax>=0.10`",
            ) from None
    if metadata.params is not None and not metadata.params:  # it would be no case at all
        raise MetadataError(line, "`params` is empty, expected at least one parameter")
    if unknown := set(metadata.policy) - set(POLICY):
        raise MetadataError(
            line, f"`policy` names {sorted(unknown)}, expected some of {', '.join(POLICY)}"
        )
    _check_variants(metadata.same_as, line)
    claims = metadata.facts or {}
    if FILECHECK in claims and (problem := find_claim_problem(claims[FILECHECK])):
        raise MetadataError(line, f"`facts` has a wrong `{FILECHECK}`: {problem}")
    known = set(metadata.params or ())
    everything: tuple[DeviationMetadata | BudgetMetadata, ...] = (
        *metadata.deviations,
        *metadata.budgets,
    )
    for declared in everything:
        # A misspelled parameter would make the deviation apply to no case, in silence.
        if unknown := set(declared.params) - known:
            name = "budget" if isinstance(declared, BudgetMetadata) else "deviation"
            raise MetadataError(
                line, f"{name} names the parameter {sorted(unknown)}, the case has {sorted(known)}"
            )


def _check_variants(names: tuple[str, ...], line: int) -> None:
    for name in names:
        if name not in VARIANTS:
            raise MetadataError(line, f"`same_as` has `{name}`; {_suggest(name, VARIANTS)}")
        if names.count(name) > 1:
            raise MetadataError(line, f"`same_as` has `{name}` twice; remove one")


def _check_specifier(text: str, line: int, package: str = "jax") -> None:
    try:
        SpecifierSet(normalize_specifier(text) if package == "jax" else text)
    except ValueError:
        raise MetadataError(
            line, f"`{text}` is not a specifier of {package} releases, expected e.g. `>=0.5,<0.6`"
        ) from None
