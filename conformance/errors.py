"""The errors a user can cause or meet, each one sentence: where, got, expected, what to do."""

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
    """Provisioning, network, disk or a missing interpreter stood in the way (exit 4).

    These never become a verdict about JAX: the jobs they touch end as `infra`.
    """

    exit_code = 4
