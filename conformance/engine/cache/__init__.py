"""Stores by content and by key: artifacts, results, verdicts, differences."""
