"""
Boots on the workers of a Dask cluster.

    address.py  the address of a cluster, or this machine
    dask.py     the scheduler, and the code of its workers
    memory.py   a limit of memory for what a scheduler sends
    runner.py   boots on workers; bundles that they lack
    task.py     the request to a worker, and its reply
    workers.py  states of workers: computing, done, failed, lost
"""
