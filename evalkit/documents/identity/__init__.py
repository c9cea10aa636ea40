"""Identity of pages: whose page it is, and whether two pages are about the same person."""
