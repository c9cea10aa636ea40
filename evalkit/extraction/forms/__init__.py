"""Tax forms: words on the page, labels, entries, the extractor."""
