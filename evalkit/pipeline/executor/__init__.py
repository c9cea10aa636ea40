"""Executors read documents and decide about them: processes of this machine, or a Dask cluster."""
