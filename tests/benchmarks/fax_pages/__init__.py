"""Pages of the fax bench: the list of them, their typesetting and what a fax line or a camera does to them."""
