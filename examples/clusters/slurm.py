"""Runs `conformance` on workers that Slurm starts.

    python slurm.py 8 run --matrix releases        # eight jobs of Slurm, four workers in each
    python slurm.py --script                       # prints the script that Slurm gets

Adapt the partition, the account and the folders. The scheduler runs where this script runs, e.g. on
the login node, and compute nodes have to reach it. All nodes share the home folder, with the
settings of Dask for TLS.
"""

import subprocess
import sys

from dask_jobqueue import SLURMCluster

CLUSTER = {
    "queue": "normal",
    "account": "my-account",
    "cores": 4,
    "processes": 4,  # one job of the run at a time in each
    "memory": "16GB",
    "walltime": "02:00:00",
    # A worker that ends before its job of Slurm does not end in the middle of a batch.
    "worker_extra_args": ["--lifetime", "110m", "--lifetime-stagger", "5m"],
    "local_directory": "/tmp",
    "job_script_prologue": [
        "source ~/conformance/bin/activate",
        "export CONFORMANCE_CACHE=/tmp/jax-conformance",
    ],
    "python": "python",
    "protocol": "tls://",
    "scheduler_options": {"dashboard_address": "127.0.0.1:0"},  # it has no TLS
}


def main(nodes: str, *arguments: str) -> int:
    """Start the cluster, run the command on it, and return its exit status."""
    with SLURMCluster(**CLUSTER) as cluster:
        if nodes == "--script":
            print(cluster.job_script())
            return 0
        cluster.scale(jobs=int(nodes))
        command = ["conformance", *arguments, "--scheduler", cluster.scheduler_address]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
