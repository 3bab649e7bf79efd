"""The published JSON Schemas of `--json` and of JSON Lines, made from the types written."""

from __future__ import annotations

from inspect import cleandoc, getdoc
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.files import readable_json
from conformance.model.record import IrRecord, Record
from conformance.model.run_files import Since
from conformance.report.report_json import RecordLine, ReportJson

if TYPE_CHECKING:
    from collections.abc import Mapping

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ROOTS: Final[Mapping[str, type]] = {
    "report.schema.json": ReportJson,
    "line.schema.json": RecordLine,
}
_BASES: Final[Mapping[str, type]] = {"RecordLine": Record}
"""What tells of the fields that a type has from another."""
_RENAMED: Final = (IrRecord, Since)
"""Types whose JSON keys are not their attributes."""
_KEYS: Final = {
    kind.__name__: dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    for kind in _RENAMED
}
_SECTION: Final = "\n\nAttributes:\n"


def schemas() -> dict[str, bytes]:
    """Return the schemas: of `--json` of `run` and `report`, and of a line of JSON Lines.

    Returns:
        Content by file name.
    """
    return {name: _schema(root) for name, root in _ROOTS.items()}


def _schema(root: type) -> bytes:
    (top,), parts = msgspec.json.schema_components((root,), ref_template="#/$defs/{name}")
    made = {"$schema": DIALECT, **top, "$defs": dict(map(_told, parts, parts.values()))}
    return readable_json(made) + b"\n"


def _told(name: str, part: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a type with each field described, and required: whatever has a default is written."""
    about, docs = _described(part.get("description", ""))
    told = {**part, "description": about}
    if "properties" not in part:
        return name, told
    if name in _BASES:
        docs = {**_described(getdoc(_BASES[name]) or "")[1], **docs}
    if name in _KEYS:
        docs = {_KEYS[name][attribute]: text for attribute, text in docs.items()}
    told["properties"] = {
        field: {key: value for key, value in said.items() if key != "default"}
        | ({"description": docs[field]} if field in docs else {})
        for field, said in part["properties"].items()
    }
    told["required"] = list(part["properties"])
    return name, told


def _described(docstring: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring says of a type, and of each of its attributes."""
    about, _, section = cleandoc(docstring).partition(_SECTION)
    docs: dict[str, str] = {}
    field = ""
    for line in section.splitlines():
        if not line.startswith(" " * 8):
            field, _, line = line.strip().partition(": ")  # noqa: PLW2901 - the rest of the line
        docs[field] = f"{docs.get(field, '')} {line.strip()}".strip()
    return " ".join(about.split()), docs
