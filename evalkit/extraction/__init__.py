"""Task 2: the fields of reports and forms, each with its proof on the page."""
