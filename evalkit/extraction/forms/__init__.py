"""Tax forms: printed words, labels, entries, and the extractor."""
