"""A control plane of Kubernetes on this machine, for `make k8s-apply`: etcd, API server and controllers, and no node.

What a kubelet would do is played: pods are told to be ready as soon as they are admitted, and those of jobs to be done.
"""

import json
import os
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.ports import free_ports

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
TOKEN = "of-this-run"  # noqa: S105 - of a server on loopback, for a minute
READY = {"conditions": [{"type": kind, "status": "True"} for kind in ("Initialized", "Ready", "ContainersReady")]}


class Cluster:
    """What commands are told to reach it: `kubeconfig`."""

    def __init__(self, kubectl: str, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._kubectl = kubectl
        self._done = threading.Event()

    def kubectl(self, *arguments: str, stdin: str = "", check: bool = True) -> str:
        """Its output, warnings included.

        Raises:
            AssertionError: it failed, and `check` is set.
        """
        command = [self._kubectl, "--kubeconfig", str(self.kubeconfig), *arguments]
        done = subprocess.run(  # noqa: S603 - programs of this test
            command, input=stdin, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout + done.stderr

    def items(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        return list(json.loads(self.kubectl("get", kind, "-o", "json", *arguments))["items"])

    def play_kubelet(self) -> None:
        """Until `stop`."""
        while not self._done.wait(0.5):
            for pod in self.items("pods", "--all-namespaces"):
                place = ("-n", pod["metadata"]["namespace"], "pod", pod["metadata"]["name"])
                if "deletionTimestamp" in pod["metadata"]:
                    self.kubectl("delete", *place, "--grace-period=0", "--force", check=False)
                elif pod["status"]["phase"] == "Pending":
                    lasting = pod["spec"]["restartPolicy"] == "Always"
                    status = {"phase": "Running", **READY} if lasting else {"phase": "Succeeded"}
                    patch = json.dumps({"status": status})
                    self.kubectl("patch", *place, "--subresource=status", "-p", patch, check=False)

    def stop(self) -> None:
        self._done.set()


def wait(what: str, done: Callable[[], bool], seconds: float = 120) -> None:
    """Until it is done.

    Raises:
        TimeoutError: it is not, after that time.
    """
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.5)


@contextmanager
def control_plane(programs: Path, kubectl: str, folder: Path) -> Iterator[Cluster]:
    """A cluster whose programs are in a folder; it ends with the block."""
    store, peers, secure, controllers = free_ports(4)
    key, tokens, kubeconfig = folder / "accounts.key", folder / "tokens.csv", folder / "kubeconfig"
    openssl = ["openssl", "genrsa", "-out", str(key), "2048"]
    subprocess.run(openssl, capture_output=True, check=True)  # noqa: S603
    tokens.write_text(f"{TOKEN},tester,tester,system:masters\n")
    server = {"server": f"https://127.0.0.1:{secure}", "insecure-skip-tls-verify": True}
    context = {"cluster": "here", "user": "here"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": server}],
        "users": [{"name": "here", "user": {"token": TOKEN}}],
        "contexts": [{"name": "here", "context": context}],
        "current-context": "here",
    }
    kubeconfig.write_text(json.dumps(config))
    etcd = f"http://127.0.0.1:{store}"
    commands = {
        "etcd": (
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peers}",
            "--unsafe-no-fsync",
        ),
        "kube-apiserver": (
            f"--etcd-servers={etcd}",
            f"--secure-port={secure}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={folder}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
        ),
        "kube-controller-manager": (
            f"--kubeconfig={kubeconfig}",
            f"--service-account-private-key-file={key}",
            f"--secure-port={controllers}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={folder}",
            "--leader-elect=false",
        ),
    }
    cluster = Cluster(kubectl, kubeconfig)
    with ExitStack() as running:
        for name in PROGRAMS:
            log = running.enter_context((folder / f"{name}.log").open("w"))
            command = [str(programs / name), *commands[name]]
            started = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ)  # noqa: S603
            running.callback(started.wait)
            running.callback(started.terminate)
            if name == "etcd":
                wait(name, lambda: _answers(f"{etcd}/health"))
            if name == "kube-apiserver":
                wait(name, lambda: cluster.kubectl("get", "--raw", "/readyz", check=False) == "ok")
        player = threading.Thread(target=cluster.play_kubelet)
        player.start()
        running.callback(player.join)
        running.callback(cluster.stop)
        yield cluster


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as reply:  # noqa: S310 - on loopback
            return bool(reply.status == 200)
    except OSError:
        return False
