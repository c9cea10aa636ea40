"""Audits: selection of documents, list of decisions, check for altered files."""
