"""What becomes of a program that another release exported: loaded, called, compared."""

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

from ._programs import PROGRAMS, called_with

EXPORTS = Path(__file__).with_name("_exports")
BACKWARD, FORWARD = timedelta(days=180), timedelta(days=21)
"""For how long JAX says that what it exported can be loaded: by newer releases, and by older."""
RTOL = 1e-5
CODE = "code "
BARE = "_without_tracebacks"
"""What the name of an export ends with whose module holds no tracebacks."""
LOCATION = re.compile(
    r' loc\((?:#loc\d*|"[^"]*"(?:\(#loc\d*\))?|unknown)\)|^#loc.*\n', re.MULTILINE
)
"""Where in its source something is, in the text of a module."""
PLACE = re.compile(r"(?:<unknown>|[\w/]+\.py):\d+:\d+: (?:error: )?")
"""Where in its source something is, in the message of an error."""


@cache
def manifests():
    """Return what each release says of its exports, by release, the oldest first."""
    found = {}
    for file in EXPORTS.glob("jax*.zip"):
        with zipfile.ZipFile(file) as archive:
            manifest = json.loads(archive.read("manifest.json"))
        found[manifest["release"]] = manifest
    return dict(sorted(found.items(), key=lambda item: [int(n) for n in item[0].split(".")]))


def is_promised(writer, reader):
    """Say whether a release promises to load what another one exported.

    Args:
        writer: The release that exported it.
        reader: The release that loads it, one that has exports of its own.

    Returns:
        True for six months after the writer's day, and for three weeks before it.
    """
    known = manifests()
    ages = (date.fromisoformat(known[one]["date"]) for one in (reader, writer))
    age = next(ages) - next(ages)
    return -FORWARD <= age <= BACKWARD


def writers(reader, *, promised):
    """Return the releases whose exports are promised to load in a release, or the others."""
    return [one for one in manifests() if is_promised(one, reader) is promised]


def outcomes(name, among):
    """Return what becomes of a program as several releases exported it, by release.

    Releases whose exports are the same to who calls them are called once.

    Args:
        name: Name of a program, maybe with `BARE` at its end.
        among: The releases that exported it.
    """
    loaded = each(lambda writer: load(name, writer), among)
    calls = {}
    for writer, said in loaded.items():
        if said.startswith(CODE):
            calls.setdefault(said, writer)
    called = each(lambda code: call(name, calls[code]), list(calls))
    return {writer: told(name, called.get(said, said)) for writer, said in loaded.items()}


def told(name, said):
    """Return what becomes of a program, the same each time.

    Two kernels race in `solve`: where one is not set up and the other is not there at all, the
    process ends or the call is refused, as it happens.
    """
    missing = said.startswith("crashed") or "NOT_FOUND: No registered implementation" in said
    return "kernels missing" if plain(name) == "solve" and missing else said


def each(work, items):
    """Return what becomes of each of some items.

    It may end the process, so that work is done in a child; and where that dies of one item
    another child goes on with the next. No backend lives in this process: forking it is safe.
    """
    found = {}
    while left := [one for one in items if one not in found]:
        told, ended = in_a_child(work, left)
        found.update(told)
        if ended:
            found[left[len(told)]] = f"crashed {signal.Signals(ended).name}"
    return found


def in_a_child(work, items):
    """Return what a child process makes of items as far as it comes, and what signal ended it."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writer, "w") as told:
            for item in items:
                print(json.dumps([item, work(item)]), file=told, flush=True)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        lines = [json.loads(line) for line in told if line.endswith("\n")]
    _, status = os.waitpid(child, 0)
    return dict(lines), os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def plain(name):
    """Return the name of a program, however it was exported."""
    return name.removesuffix(BARE)


def was_refused(name, writer):
    """Say whether a release could not export a program."""
    return plain(name) in manifests()[writer]["refused"]


def load(name, writer):
    """Return how an export is refused when it is loaded, or the code that a call would run."""
    if was_refused(name, writer):
        return "not exported"
    try:
        exported = deserialized(name, writer)
        found = [code(exported), manifests()[writer]["results"].get(plain(name))]
        if PROGRAMS[plain(name)].gradient:
            found.append(code(exported.vjp()))
    except Exception as error:  # noqa: BLE001 - how it is refused is what is asked
        return f"load: {type(error).__name__}: {first_words(error)}"
    return CODE + hashlib.sha256(repr(found).encode()).hexdigest()


def code(exported):
    """Return all that a call takes of an export: its module without locations, and its signature.

    A module that cannot be read here is told when it is called.
    """
    beside = [
        str(getattr(exported, field.name))
        for field in dataclasses.fields(exported)
        if field.name not in {"mlir_module_serialized", "fun_name", "_get_vjp"}
    ]
    try:
        module = LOCATION.sub("", exported.mlir_module())
    except Exception:  # noqa: BLE001 - a call says it in its own way
        module = exported.mlir_module_serialized
    return [module, *beside]


def call(name, writer):
    """Return what becomes of a call: `right`, `wrong`, or how it is refused."""
    try:
        result = called(name, deserialized(name, writer))
        return "right" if is_right(name, result, manifests()[writer]) else "wrong"
    except Exception as error:  # noqa: BLE001 - how it is refused is what is asked
        return f"call: {type(error).__name__}: {first_words(error)}"


def deserialized(name, writer):
    """Return what a release exported, as it is loaded."""
    with zipfile.ZipFile(EXPORTS / f"jax{writer}.zip") as archive:
        data = archive.read(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what will be refused one day
        return export.deserialize(bytearray(data))


def called(name, exported):
    """Return what an exported program gives, or its gradient."""
    program = PROGRAMS[plain(name)]
    args = called_with(program)
    return jax.jit(jax.grad(exported.call))(*args) if program.gradient else exported.call(*args)


def is_right(name, result, manifest):
    """Say whether a result is what the program means, or what its writer got."""
    program = PROGRAMS[plain(name)]
    wanted = (
        np.asarray(manifest["results"][plain(name)])
        if program.reference is None
        else program.reference(*program.args)
    )
    pairs = zip(jax.tree_util.tree_leaves(result), jax.tree_util.tree_leaves(wanted), strict=True)
    return all(
        np.allclose(np.asarray(one).astype(np.float64), np.asarray(other, np.float64), rtol=RTOL)
        for one, other in pairs
    )


def first_words(error):
    """Return how an error's message begins, without the place in the source that it names."""
    lines = PLACE.sub("", str(error).strip()).splitlines()
    return lines[0][:80] if lines else ""
