"""The shared cache: records and artifacts that many machines read and few write."""
