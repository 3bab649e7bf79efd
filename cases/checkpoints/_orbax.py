"""Save and restore Orbax checkpoints without messages in the log."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import orbax.checkpoint as ocp
from absl import flags


def make_folder():
    """Return a context with the path of a temporary folder."""
    return tempfile.TemporaryDirectory()


def make_checkpointer():
    """Return a checkpointer that logs nothing; Orbax 0.5 and 0.6 read a flag of absl."""
    flags.FLAGS.mark_as_parsed()
    logging.getLogger("absl").setLevel(logging.CRITICAL)
    return ocp.StandardCheckpointer()


def save(tree, folder):
    """Save a tree in a new folder, and return its path."""
    checkpointer = make_checkpointer()
    path = Path(folder) / "checkpoint"
    checkpointer.save(path, tree)
    getattr(checkpointer, "wait_until_finished", lambda: None)()
    return path


def restore(path, *target):
    """Return the tree of a checkpoint, with the structure and shardings of a target if given."""
    return make_checkpointer().restore(path, *target)
