"""Errors for the user, each one sentence: where, found, expected, what to do next."""

from __future__ import annotations


class ConformanceError(Exception):
    """An error whose message is for the user; the command line prints it in one line.

    Attributes:
        exit_code: Exit status of the command line when this error ends it.
    """

    exit_code = 2


class UsageError(ConformanceError):
    """A wrong argument, configuration, case file or matrix file (exit 2)."""


class NothingSelectedError(ConformanceError):
    """A selection or filter left nothing to run (exit 3)."""

    exit_code = 3


class InfrastructureError(ConformanceError):
    """A failure of provisioning, the network, the disk or an interpreter (exit 4).

    It never becomes a verdict about JAX: the outcome of its jobs is `infra`.
    """

    exit_code = 4
