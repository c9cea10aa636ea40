"""Reader of PDFs by Google's Document AI."""
