"""Executors, which read documents in local processes or on a Dask cluster."""
