"""The words of the project as types: cases, cells' observations, outcomes, verdicts, records."""
