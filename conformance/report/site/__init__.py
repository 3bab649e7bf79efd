"""The static site: pages made from a report, opened from a folder, without a server."""
