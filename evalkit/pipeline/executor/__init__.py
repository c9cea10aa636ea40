"""Read and decide documents in processes of this machine, or on a Dask cluster."""
