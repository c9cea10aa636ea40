"""Task 2: the fields of a report or form, each with its proof on the page."""
