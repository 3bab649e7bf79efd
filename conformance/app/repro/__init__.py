"""Files that reproduce a case or a script."""
