"""Read the checkpoints of `_written`, and describe the outcome of restoring them."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import signal
import tempfile
import zipfile
from pathlib import Path

import jax
import numpy as np

WRITTEN = Path(__file__).with_name("_written")
EQUAL = "equal"
WORDS = 90
"""Length of the part of a message that an outcome shows."""
PLACE = re.compile(r" from '/.*| at /.*| at 0x.*| \[source.*")
"""The end of a message, from the first path or address on."""


def list_writers():
    """Return the releases that wrote checkpoints, the oldest first."""
    releases = [file.stem.removeprefix("jax") for file in WRITTEN.glob("jax*.zip")]
    return sorted(releases, key=lambda release: [int(part) for part in release.split(".")])


def list_written(name):
    """Return the releases that could write a file."""
    return [writer for writer in list_writers() if read_file(writer, name) is not None]


def read_file(writer, name):
    """Return the bytes of a file of a release, None if it was refused."""
    with zipfile.ZipFile(WRITTEN / f"jax{writer}.zip") as archive:
        return archive.read(name) if name in archive.namelist() else None


def extract(writer, name):
    """Return the path of a folder of a release, extracted below the temporary folder of the job."""
    target = Path(tempfile.mkdtemp())
    with zipfile.ZipFile(WRITTEN / f"jax{writer}.zip") as archive:
        archive.extractall(target, [n for n in archive.namelist() if n.startswith(f"{name}/")])
    return target / name


def describe_error(error):
    """Return the type and first words of an error, without paths and addresses."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {PLACE.sub('', first)[:WORDS]}"


def outcome(call):
    """Return the result of a call, or a description of its error."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        return describe_error(error)


def compare(actual, expected):
    """Return `equal`, or how an object differs from the expected one.

    Arrays are equal if their type, dtype, weak type and bits are; other objects by `==`.
    """
    if isinstance(expected, (jax.Array, np.ndarray)):
        return compare_arrays(actual, expected)
    return EQUAL if actual == expected else f"not equal: {actual!r}"[:WORDS]


def compare_arrays(actual, expected):
    """Return `equal`, or the first of dtype, shape, weak type and bits in which arrays differ."""
    if actual.dtype != expected.dtype:
        return f"dtype {actual.dtype}"
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)}"
    if getattr(actual, "weak_type", False) != getattr(expected, "weak_type", False):
        return f"weak_type {actual.weak_type}"
    return EQUAL if get_bits(actual) == get_bits(expected) else "other bits"


def get_bits(array):
    """Return the bytes of an array, or of the words of typed keys."""
    if isinstance(array, jax.Array) and jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    return np.asarray(array).tobytes()


def compare_trees(actual, expected):
    """Return the outcome of each leaf of a tree by its path, or how the structures differ."""
    structures = [jax.tree_util.tree_structure(tree) for tree in (actual, expected)]
    if structures[0] != structures[1]:
        return f"structure {structures[0]}"
    pairs = zip(
        jax.tree_util.tree_flatten_with_path(actual)[0],
        jax.tree_util.tree_leaves(expected),
        strict=True,
    )
    leaves = {jax.tree_util.keystr(path): compare(leaf, exact) for (path, leaf), exact in pairs}
    others = {path: text for path, text in leaves.items() if text != EQUAL}
    return others or EQUAL


def run_in_child(work, items):
    """Return the outcome of each item, of a child process that does the work.

    Restoring may crash the process or spoil its dtypes. No backend runs in this process, so it is
    safe to fork.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writer, "w") as pipe:
            for item in items:
                print(json.dumps([item, outcome(lambda item=item: work(item))]), file=pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        results = dict(json.loads(line) for line in pipe if line.endswith("\n"))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        results["child"] = f"crashed {signal.Signals(os.WTERMSIG(status)).name}"
    return results


def restore_pickles(names, make):
    """Return the outcome of each pickle by release, restored in a child process.

    Args:
        names: Names of pickles.
        make: Function from a name to the object that is expected.
    """
    items = [[writer, name] for name in names for writer in list_written(f"pickle/{name}")]

    def restore(item):
        writer, name = item.split()
        return compare(pickle.loads(read_file(writer, f"pickle/{name}")), make(name))  # noqa: S301

    flat = run_in_child(restore, [" ".join(item) for item in items])
    grouped = {name: {} for name in names}
    for key, value in flat.items():
        with contextlib.suppress(ValueError):
            writer, name = key.split()
            grouped[name][writer] = value
    return grouped


def expect_equal(names):
    """Return the outcomes of `restore_pickles` if every release reads every pickle."""
    return {name: dict.fromkeys(list_written(f"pickle/{name}"), EQUAL) for name in names}
