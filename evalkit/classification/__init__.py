"""Task 1: the document types of a record, page by page.

The file names are the specification's.
"""
