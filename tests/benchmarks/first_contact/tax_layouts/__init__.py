"""Tax forms in strangers' layouts, drawn by an author who has not read the rules: an open and a sealed half."""
