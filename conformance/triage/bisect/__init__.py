"""`conformance bisect`: every change between two ends of an axis."""
