"""Streams of documents as hospitals see them over months, by an author who has not read the rules: open and sealed."""
