"""Where documents are read and decided about: processes of this machine, or a Dask cluster."""
