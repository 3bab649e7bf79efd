"""Known failures of a suite: declared, judged, written from what runs showed."""
