"""A cluster that somebody else has made, by its kubeconfig: `kubectl proxy` stands between, which knows all ways to log in."""

import contextlib
import pathlib
import re
import subprocess

import api as kubernetes


class ForeignCluster:
    def __init__(self, kubeconfig, port):
        self.kubeconfig = pathlib.Path(kubeconfig).resolve()
        self.api = kubernetes.Api(f"http://127.0.0.1:{port}", "")

    def free_volumes(self):
        """Its storage class makes new ones."""


@contextlib.contextmanager
def foreign(kubeconfig, kubectl):
    command = [kubectl, "--kubeconfig", kubeconfig, "proxy", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
        try:
            line = proxy.stdout.readline()
            port = re.search(r"127\.0\.0\.1:(\d+)", line)
            if not port:
                raise OSError(f"kubectl proxy: {line}")
            yield ForeignCluster(kubeconfig, int(port.group(1)))
        finally:
            proxy.terminate()
