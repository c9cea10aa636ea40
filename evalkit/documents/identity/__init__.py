"""Identity of pages: the patient of each page, and the pages of one person."""
