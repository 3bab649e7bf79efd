"""`conformance passes`: which HLO passes, flags and options make a program do what it does."""
