"""The IRs of a program: jaxprs, StableHLO and optimised HLO, parsed, normalised and compared."""
