"""Forms: their words on the page, their labels, what is entered in each box, and the extractor."""
