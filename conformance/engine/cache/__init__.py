"""What is kept by content and by key: artifacts, results, verdicts, differences."""
