"""Pure judgement: observation against reference, golden and declared deviations."""
