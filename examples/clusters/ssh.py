"""Runs `conformance` on hosts that SSH reaches.

    python ssh.py head,node1,node2 run --cell 0.6.2 array_api_device

The scheduler runs on the first host, four workers on each of the others. Every host has the same
Python environment at the same path, and the certificates of Dask's TLS settings. `asyncssh` reads
`~/.ssh/config` and `~/.ssh/known_hosts`, as `ssh` does.
"""

import subprocess
import sys

from distributed import SSHCluster

WORKERS = 4  # per host


def main(hosts: str, *arguments: str) -> int:
    """Start the cluster, run the command on it, and return its exit status."""
    names = hosts.split(",")
    with SSHCluster(
        names,
        scheduler_options={"host": names[0], "protocol": "tls://", "dashboard": False},
        worker_options={"nthreads": 1, "n_workers": WORKERS, "protocol": "tls://"},
    ) as cluster:
        command = ["conformance", *arguments, "--scheduler", cluster.scheduler_address]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
