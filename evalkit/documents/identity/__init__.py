"""Identity of pages: whose page it is, and if two pages are about one person."""
