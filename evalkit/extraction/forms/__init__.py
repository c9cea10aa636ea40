"""Forms: words on the page, labels, entries, extractor."""
