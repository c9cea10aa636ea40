"""Task 1: classification of a file's pages by document type.

The classifier proposes documents with types and quoted evidence, verifiers V1 to V4 check them, V5 decides.

The module names ``v1_schema`` to ``v5_arbiter`` are the specification's.
"""
