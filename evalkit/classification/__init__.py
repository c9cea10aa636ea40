"""Task 1: of which type is each part of a clinical document? The file names are the specification's."""
