"""Label Studio: an answer as its regions and choices, and the import of what annotators answered."""
