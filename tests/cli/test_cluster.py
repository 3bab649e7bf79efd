"""`--executor dask`: runs, suites and upgrades on a cluster that a command starts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench import NEWEST, OLD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command import Command
