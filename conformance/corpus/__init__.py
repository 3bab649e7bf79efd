"""Finding cases without importing them: the project's folders, static discovery, selection."""
