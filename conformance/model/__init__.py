"""The vocabulary of the project as types: cases, observations, outcomes, verdicts, records."""
