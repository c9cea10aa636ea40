"""Pages with and without tables of aligned columns, and the code that draws them."""
