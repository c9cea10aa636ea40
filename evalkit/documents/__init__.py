"""Reading of files: each file becomes a DocumentBundle."""

from evalkit.documents.bundle import Block, DocumentBundle, LayoutMetadata, Page, PageStatus

__all__ = ["Block", "DocumentBundle", "LayoutMetadata", "Page", "PageStatus"]
