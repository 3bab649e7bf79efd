"""The paths of goldens: `<cases>/<family>/golden/<topic>/<case>/`.

The folder of a case holds `spans.toml`, which names a content file for each span of releases, and
the content files. A content file is named after the artifact and the span, not after a hash, so
that a change reads as a hunk in a pull request:

* `hlo.txt` is the HLO of the newest span on the first platform that has one,
* `hlo.until-0.5.3.txt` that of the older span that ends with 0.5.3,
* `hlo.tpu.v5e.2x2.txt` that of the newest span on `tpu:v5e:2x2`, where it differs.

When a new release changes the HLO, `hlo.txt` shows the hunk, and the former text moves to a new
file. Values too large to read are safetensors files named after their hash, which the cases of a
topic share: `<topic>/@large/value-<hash>.safetensors`.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from conformance.ir.graph import kind_of_artifact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.golden.spans import Span
    from conformance.model.case import Case

DOCUMENT: Final = "spans.toml"
"""Name of the file with the spans of a case."""

LARGE_FOLDER: Final = "@large"
"""Folder of a topic with the large values of its cases. No case has this name: a case name is
percent-encoded, and `@` comes only after it."""

PENDING: Final = ".new"
"""Suffix of a content file between its writing and the writing of the document that names it."""

SUFFIXES: Final = {
    "value": ".txt",
    "error": ".txt",
    "ok": "",
    "facts": ".json",
    "jaxpr": ".txt",
    "stablehlo": ".txt",
    "hlo": ".txt",
}
"""Suffix of a content file by artifact, in the order of the TOML file; `ok` has no file."""

ENDING: Final = "ending"
ENDINGS: Final = frozenset({"value", "error", "ok"})
"""Artifacts that show how a job ended: exactly one of them for each release."""

EXACT: Final = "-exact"
"""Suffix of an IR's name: the fingerprints of its exact form, which the TOML file itself has."""

AS_OWN: Final = "stablehlo"
"""Replaces a content id: a cross-lowered StableHLO has the canonical form of the cell's own."""

OK: Final = "ok"
"""Replaces a content id: the job succeeded and has no value."""

FINGERPRINT: Final = re.compile(r"(\d+):([0-9a-f]{24})")
"""A fingerprint, preceded by the version of its normal form."""

_LARGE_SUFFIX: Final = ".safetensors"
_LARGE_ID: Final = re.compile(rf"value-[0-9a-f]{{32}}{re.escape(_LARGE_SUFFIX)}")
_FILE_NAME: Final = re.compile(
    rf"({'|'.join(SUFFIXES)})(-[a-z]+)?~*(\.[^/\\\x00-\x1f]+)?\.(txt|json)"
)
_MAX_STEM: Final = 120


def get_golden_folder(cases: Path, case: Case) -> Path:
    """Return the folder of a case's goldens.

    Args:
        cases: Folder that holds the families.
        case: Any case.

    Returns:
        The folder of its document and contents; it need not exist.
    """
    return cases / case.family / "golden" / case.topic / make_case_stem(case.id)


def list_golden_folders(cases: Iterable[Case]) -> list[Path]:
    """Return the folders with the goldens of cases, sorted; they need not exist.

    Args:
        cases: Any cases.
    """
    folders = {get_golden_folder(case.families, case) for case in cases}
    # Large values are shared by the cases of a topic.
    return sorted(folders | {folder.parent / LARGE_FOLDER for folder in folders})


def make_case_stem(case_id: str) -> str:
    """Return the name of a case's golden folder, valid on every file system.

    Args:
        case_id: `family/name` or `family/name[param]`.

    Returns:
        `name` or `name@param`, other characters percent-encoded. Different ids have different
        names; a long name ends in a hash.
    """
    name, bracket, param = case_id.partition("[")
    stem = quote(name.rpartition("/")[2], safe="")
    if bracket:
        # `=`, `,` and `+` are valid in file names everywhere, and usual in parameters.
        stem += "@" + quote(param.removesuffix("]"), safe="=,+")
    # File systems limit a name to 255 bytes, and percent-encoding triples a character.
    if len(stem) > _MAX_STEM:
        stem = f"{stem[:_MAX_STEM]}~{hashlib.sha256(case_id.encode()).hexdigest()[:8]}"
    return stem


def compute_content_id(artifact: str, data: bytes, *, large: bool = False) -> str:
    """Return the identity of a content: its kind and 128 bits of the hash of its bytes.

    Args:
        artifact: An artifact. The StableHLO of every platform is of one kind.
        data: Bytes of the content file.
        large: True for a large value, in a file that the cases of a topic share.
    """
    # 128 bits: an id of 32 bits alone, as in format 1, can collide.
    digest = hashlib.sha256(data).hexdigest()[:32]
    return f"{kind_of_artifact(artifact)}-{digest}{_LARGE_SUFFIX if large else ''}"


def is_large(content: str) -> bool:
    """Return whether a content id is that of a large value."""
    return _LARGE_ID.fullmatch(content) is not None


def is_file_name(name: str) -> bool:
    """Return whether a text may be the name of a content file in the folder of a case."""
    return _FILE_NAME.fullmatch(name) is not None


def get_content_file(folder: Path, name: str) -> Path:
    """Return the path of a content file.

    Args:
        folder: Golden folder of a case; it need not exist.
        name: The file as the document names it, relative to the folder.
    """
    large = name.removeprefix(f"../{LARGE_FOLDER}/")
    return folder / name if large == name else folder.parent / LARGE_FOLDER / large


def has_file(track: str, content: str) -> bool:
    """Say whether a content of a track has a file: no fingerprint, `ok` or reference to another."""
    return not track.endswith(EXACT) and content not in {AS_OWN, OK}


def assign_file_names(
    variants: Mapping[str, Mapping[str, Sequence[Span[str]]]], taken: Mapping[str, str]
) -> dict[str, str]:
    """Assign a file to each content of a case.

    The result depends on the spans alone, so that two people who accept the same observations
    write the same files.

    Args:
        variants: By cell variant and track, spans of content ids in order of release.
        taken: Files of contents that must keep theirs, by content id.

    Returns:
        File by content id, relative to the folder of the case.
    """
    names = dict(taken)
    used = set(taken.values())
    for variant, artifact, position, span in _sort_contents(variants):
        content = span.content
        if content in names:
            continue
        if is_large(content):
            names[content] = f"../{LARGE_FOLDER}/{content}"
            continue
        parts = [artifact]
        # The first variant has the plainest names, as most cases have goldens of one platform.
        if variant != next(iter(sorted(variants))):
            parts.append(quote(variant.replace(":", "."), safe=" =,+").replace(" ", "_"))
        if position > 0:
            parts.append(f"until-{span.last}")
        name = ".".join(parts) + SUFFIXES[kind_of_artifact(artifact)]
        # A content that cannot be read keeps its name, which may be any.
        while name in used:
            name = name.replace(".", "~.", 1)
        names[content] = name
        used.add(name)
    return names


def _sort_contents(
    variants: Mapping[str, Mapping[str, Sequence[Span[str]]]],
) -> Iterator[tuple[str, str, int, Span[str]]]:
    """Yield variant, artifact, position from the newest and span of each content with a file.

    The newest spans of the first variant come first: they get the plainest names.
    """
    for variant, tracks in sorted(variants.items()):
        for track, spans in sorted(tracks.items()):
            positions: dict[str, int] = {}
            # From the newest, so that its name stays when an older span is split.
            for span in reversed(spans):
                if not has_file(track, span.content):
                    continue
                artifact = span.content.partition("-")[0] if track == ENDING else track
                position = positions.setdefault(artifact, 0)
                positions[artifact] += 1
                yield variant, artifact, position, span


def get_track(artifact: str) -> str:
    """Return the track that an artifact is recorded in: `ending`, or its own name.

    The spans of a track are disjoint: a release has one ending, one set of facts, one text of
    each IR, and of StableHLO one for each platform.

    Args:
        artifact: An artifact, or an IR's name followed by `EXACT`.
    """
    return ENDING if artifact in ENDINGS else artifact


def make_variant_name(platform: str, labels: Iterable[str] = ()) -> str:
    """Return the key of a cell variant's table.

    Args:
        platform: The cell's platform.
        labels: Options of the cell that change its results, e.g. `x64` or `config=a`.

    Returns:
        `cpu`, or `cpu x64` for a cell with options.
    """
    return " ".join([platform, *sorted(labels)])
