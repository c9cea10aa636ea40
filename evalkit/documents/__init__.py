"""Read files as DocumentBundles."""

from evalkit.documents.bundle import Block, DocumentBundle, LayoutMetadata, Page, PageStatus

__all__ = ["Block", "DocumentBundle", "LayoutMetadata", "Page", "PageStatus"]
