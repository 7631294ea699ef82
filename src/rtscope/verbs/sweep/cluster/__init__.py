"""
Boots on the workers of a Dask cluster.

    address.py  the address of a cluster, or this machine
    dask.py     the scheduler, and what its workers run
    runner.py   boots on the workers, and what each worker does
    task.py     the request to a worker, and its reply
"""
