"""Load, call and compare programs that another release exported."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import signal
import warnings
import zipfile
from datetime import date, timedelta
from functools import cache
from pathlib import Path

import jax
import numpy as np
from jax import export

from ._programs import PROGRAMS, make_call_args

EXPORTS = Path(__file__).with_name("_exports")
BACKWARD, FORWARD = timedelta(days=180), timedelta(days=21)
"""How long JAX guarantees that an export can be loaded: by newer releases, and by older ones."""
RTOL = 1e-5
CODE = "code "
"""Prefix of the outcome of a load that succeeds."""
BARE = "_without_tracebacks"
"""Suffix of the name of an export whose module has no tracebacks."""
LOCATION = re.compile(
    r' loc\((?:#loc\d*|"[^"]*"(?:\(#loc\d*\))?|unknown)\)|^#loc.*\n', re.MULTILINE
)
"""A location in the source, in the text of a module."""
PLACE = re.compile(r"(?:<unknown>|[\w/]+\.py):\d+:\d+: (?:error: )?")
"""A location in the source, in the message of an error."""


@cache
def load_manifests():
    """Return the manifest of the exports of each release, by release, the oldest first."""
    by_release = {}
    for file in EXPORTS.glob("jax*.zip"):
        with zipfile.ZipFile(file) as archive:
            manifest = json.loads(archive.read("manifest.json"))
        by_release[manifest["release"]] = manifest
    return dict(sorted(by_release.items(), key=lambda item: [int(n) for n in item[0].split(".")]))


def is_promised(writer, reader):
    """Return whether a release promises to load the exports of another release.

    Args:
        writer: Release that exported.
        reader: Release that loads; it must have a manifest, too.

    Returns:
        True for six months after the writer's date, and for three weeks before it.
    """
    known = load_manifests()
    age = date.fromisoformat(known[reader]["date"]) - date.fromisoformat(known[writer]["date"])
    return -FORWARD <= age <= BACKWARD


def list_writers(reader, *, promised):
    """Return the releases whose exports are promised to load in a release, or the others."""
    return [writer for writer in load_manifests() if is_promised(writer, reader) is promised]


def collect_outcomes(name, releases):
    """Return the outcome of a program, by the release that exported it.

    Exports that are equal for a caller are called once.

    Args:
        name: Name of a program, optionally with the suffix `BARE`.
        releases: Releases that exported it.
    """
    loaded = run_each(lambda writer: try_load(name, writer), releases)
    calls = {}
    for writer, outcome in loaded.items():
        if outcome.startswith(CODE):
            calls.setdefault(outcome, writer)
    ends = run_each(lambda outcome: try_call(name, calls[outcome]), list(calls))
    return {
        writer: normalize_outcome(name, ends.get(outcome, outcome))
        for writer, outcome in loaded.items()
    }


def normalize_outcome(name, outcome):
    """Return an outcome in a form that is the same each time.

    Two kernels race in `solve`: if one is not set up and the other does not exist, the process
    crashes or the call is refused, at random.
    """
    missing = outcome.startswith("crashed") or "NOT_FOUND: No registered implementation" in outcome
    return "kernels missing" if get_program_name(name) == "solve" and missing else outcome


def run_each(work, items):
    """Return the outcome of the work on each item.

    The work may crash the process, so it runs in a child. If the child dies of an item, another
    child continues with the next item. No backend runs in this process, so it is safe to fork.
    """
    results = {}
    while left := [item for item in items if item not in results]:
        completed, fatal = run_in_child(work, left)
        results.update(completed)
        if fatal:
            results[left[len(completed)]] = f"crashed {signal.Signals(fatal).name}"
    return results


def run_in_child(work, items):
    """Return the outcomes of items until a child process dies, and the signal that ended it."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writer, "w") as pipe:
            for item in items:
                print(json.dumps([item, work(item)]), file=pipe, flush=True)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        # A child that dies while it writes leaves a part of a line.
        lines = [json.loads(line) for line in pipe if line.endswith("\n")]
    _, status = os.waitpid(child, 0)
    return dict(lines), os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def get_program_name(name):
    """Return the name of the program of an export."""
    return name.removesuffix(BARE)


def was_refused(name, writer):
    """Return whether a release could not export a program."""
    return get_program_name(name) in load_manifests()[writer]["refused"]


def try_load(name, writer):
    """Return how loading an export is refused, or a hash of the code that a call would run."""
    if was_refused(name, writer):
        return "not exported"
    try:
        exported = load_export(name, writer)
        parts = [
            collect_code(exported),
            load_manifests()[writer]["results"].get(get_program_name(name)),
        ]
        if PROGRAMS[get_program_name(name)].gradient:
            parts.append(collect_code(exported.vjp()))
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        return f"load: {type(error).__name__}: {get_first_words(error)}"
    return CODE + hashlib.sha256(repr(parts).encode()).hexdigest()


def collect_code(exported):
    """Return all parts of an export that a call uses: its module without locations, its signature.

    A module that cannot be read is reported by the call.
    """
    signature = [
        str(getattr(exported, field.name))
        for field in dataclasses.fields(exported)
        if field.name not in {"mlir_module_serialized", "fun_name", "_get_vjp"}
    ]
    try:
        module = LOCATION.sub("", exported.mlir_module())
    except Exception:  # noqa: BLE001 - the call reports it
        module = exported.mlir_module_serialized
    return [module, *signature]


def try_call(name, writer):
    """Return the outcome of a call: `right`, `wrong`, or how it is refused."""
    try:
        result = run_export(name, load_export(name, writer))
        return "right" if is_right(name, result, load_manifests()[writer]) else "wrong"
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        return f"call: {type(error).__name__}: {get_first_words(error)}"


def load_export(name, writer):
    """Return the export of a release, loaded."""
    with zipfile.ZipFile(EXPORTS / f"jax{writer}.zip") as archive:
        data = archive.read(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about exports that will be refused
        return export.deserialize(bytearray(data))


def run_export(name, exported):
    """Return the result of an exported program, or its gradient."""
    program = PROGRAMS[get_program_name(name)]
    args = make_call_args(program)
    return jax.jit(jax.grad(exported.call))(*args) if program.gradient else exported.call(*args)


def is_right(name, result, manifest):
    """Return whether a result equals the reference of the program, or the result of the writer."""
    program = PROGRAMS[get_program_name(name)]
    expected = (
        np.asarray(manifest["results"][get_program_name(name)])
        if program.reference is None
        else program.reference(*program.args)
    )
    pairs = zip(jax.tree_util.tree_leaves(result), jax.tree_util.tree_leaves(expected), strict=True)
    return all(
        np.allclose(np.asarray(leaf).astype(np.float64), np.asarray(exact, np.float64), rtol=RTOL)
        for leaf, exact in pairs
    )


def get_first_words(error):
    """Return the beginning of an error's message, without locations in the source."""
    lines = PLACE.sub("", str(error).strip()).splitlines()
    return lines[0][:80] if lines else ""
