"""Migrations of the schema, from each version to the next."""
