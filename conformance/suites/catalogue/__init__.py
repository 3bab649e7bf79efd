"""Named suites: their definitions, checkouts, requests and standards."""
