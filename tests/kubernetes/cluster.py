"""A Kubernetes of this machine's own: control plane and nodes as processes of root, each node with a containerd, a kubelet and a
bridge of its own. What it consists of is built by `build`; containerd, runc and the network plugins are the distribution's.

    cluster.py up [NODES]     prints where its kubeconfig is
    cluster.py down
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import api as kubernetes
import image

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STATE = (ROOT / "target" / "kubernetes" / "cluster").resolve()
BIN = pathlib.Path(os.environ.get("KGFLEET_KUBERNETES_BIN", ROOT / "target" / "kubernetes" / "bin"))
# The address of the API, on a bridge without ports: not every kernel has dummy interfaces.
ADDRESS = "10.244.255.1"
PORT = 16443
TOKEN = "of-the-administrator"
PAUSE = "localhost/pause:1"
# Seconds that a part may take until it answers. Machines are shared.
PATIENCE = 180
CGROUPS = pathlib.Path("/sys/fs/cgroup")
# Volumes for claims, by their access mode: folders of this machine, which all nodes see.
VOLUMES = {"ReadWriteOnce": 4, "ReadWriteMany": 4}


def call(*command, check=True, **options):
    return subprocess.run([str(part) for part in command], check=check, capture_output=True, text=True, **options)


def patiently(what, probe, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not probe():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} after {seconds} s; logs are in {STATE}")
        time.sleep(0.25)


class Cluster:
    """The cluster in its folder, whether or not it runs. What was started is known by its process ids, kept there."""

    def __init__(self, folder=STATE):
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.api = kubernetes.Api(f"https://{ADDRESS}:{PORT}", TOKEN)

    def up(self, nodes=2):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.down()
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        call("sysctl", "-qw", "net.ipv4.ip_forward=1")
        call("sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=1", check=False)
        self.bridge("kgt-api", f"{ADDRESS}/32")
        self.control_plane()
        image.archive([PAUSE], {}, self.folder / "pause.tar", scripts=["pause"], entrypoint=["/usr/local/bin/pause"])
        self.volumes()
        for index in range(nodes):
            Node(self, index).up()
        names = [f"node-{index}" for index in range(nodes)]
        patiently("a node is not ready", lambda: all(self.is_ready(name) for name in names))

    def is_ready(self, node):
        there = self.api.find(f"/api/v1/nodes/{node}")
        conditions = there["status"].get("conditions", []) if there else []
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def bridge(self, name, address):
        call("ip", "link", "add", name, "type", "bridge")
        call("ip", "address", "add", address, "dev", name)
        call("ip", "link", "set", name, "up")

    def control_plane(self):
        state = "http://127.0.0.1:12379"
        self.write("tokens", f"{TOKEN},administrator,1,system:masters\n")
        call("openssl", "genrsa", "-out", self.folder / "accounts.key")
        call("openssl", "rsa", "-in", self.folder / "accounts.key", "-pubout", "-out", self.folder / "accounts.pub")
        self.write("kubeconfig", json.dumps(self.configuration()))
        peers = "http://127.0.0.1:12380"
        self.start(
            "etcd",
            ["--data-dir", self.folder / "etcd", "--listen-client-urls", state, "--advertise-client-urls", state],
            ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"],
            # Nothing in it outlives the test.
            ["--unsafe-no-fsync", "--log-level", "error"],
        )
        self.start(
            "kube-apiserver",
            ["--etcd-servers", state, "--bind-address", ADDRESS, "--advertise-address", ADDRESS, "--secure-port", PORT],
            ["--cert-dir", self.folder / "certificates", "--token-auth-file", self.folder / "tokens", "--authorization-mode", "Node,RBAC"],
            ["--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", self.folder / "accounts.pub"],
            ["--service-account-signing-key-file", self.folder / "accounts.key", "--service-cluster-ip-range", "10.96.0.0/16"],
            ["--allow-privileged", "--kubelet-preferred-address-types", "InternalIP"],
        )
        patiently("the API does not answer", self.api.is_ready)
        self.start(
            "kube-controller-manager",
            ["--kubeconfig", self.kubeconfig, "--leader-elect=false", "--secure-port", 0, "--use-service-account-credentials"],
            # Pods trust the API by the certificate that the server made itself.
            ["--service-account-private-key-file", self.folder / "accounts.key", "--root-ca-file", self.folder / "certificates/apiserver.crt"],
        )
        self.start("kube-scheduler", ["--kubeconfig", self.kubeconfig, "--leader-elect=false", "--secure-port", 0])
        proxy = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(self.kubeconfig)},
            "mode": "iptables",
            "clusterCIDR": "10.244.0.0/16",
            "healthzBindAddress": "127.0.0.1:20256",
            "metricsBindAddress": "127.0.0.1:20249",
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        }
        self.write("proxy.json", json.dumps(proxy))
        self.start("kube-proxy", ["--config", self.folder / "proxy.json", "--hostname-override", "node-0"])
        self.start(sys.executable, [pathlib.Path(__file__).parent / "dns.py", ADDRESS, self.api.address, TOKEN], name="dns")

    def configuration(self):
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": self.api.address, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }

    def volumes(self):
        """A storage class, the default one, with a few volumes."""
        storage = {"name": "folders", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
        self.api.post("/apis/storage.k8s.io/v1/storageclasses", {"metadata": storage, "provisioner": "kubernetes.io/no-provisioner"})
        for mode, number in VOLUMES.items():
            for index in range(number):
                self.volume(f"{mode.lower()}-{index}", mode)

    def volume(self, name, mode):
        place = self.folder / "volumes" / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        place.chmod(0o777)
        spec = {
            "capacity": {"storage": "5Ti"},
            "accessModes": [mode],
            "storageClassName": "folders",
            "hostPath": {"path": str(place)},
            "persistentVolumeReclaimPolicy": "Retain",
        }
        self.api.post("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})

    def free_volumes(self):
        """Makes volumes anew whose claims are gone."""
        for volume in self.api.list("/api/v1/persistentvolumes"):
            if volume["status"].get("phase") == "Released":
                name = volume["metadata"]["name"]
                path = f"/api/v1/persistentvolumes/{name}"
                self.api.delete(path)
                # Its finalizer keeps it for a moment.
                patiently(f"the volume {name} is still there", lambda path=path: self.api.find(path) is None)
                self.volume(name, volume["spec"]["accessModes"][0])

    def nodes(self):
        return [Node(self, index) for index in range(len(list(self.folder.glob("node-*"))))]

    def node(self, name):
        return next(node for node in self.nodes() if node.name == name)

    def down(self):
        for node in self.nodes():
            node.down()
        self.stop("*.pid")
        for mount in sorted(self.mounts(), reverse=True):
            call("umount", "-l", mount, check=False)
        for link in ["kgt-api", *(node.link for node in self.nodes())]:
            call("ip", "link", "delete", link, check=False)

    def mounts(self):
        lines = pathlib.Path("/proc/mounts").read_text().splitlines()
        return [line.split()[1] for line in lines if line.split()[1].startswith((f"{self.folder}/", "/run/kgt-"))]

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def start(self, program, *arguments, name=None):
        """Starts a program, which outlives this one, and notes its process."""
        name = name or program
        there = BIN / program
        command = [there if there.exists() else program, *(part for some in arguments for part in some)]
        with open(self.folder / f"{name}.log", "a", encoding="utf-8") as log:
            process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        self.write(f"{name}.pid", str(process.pid))

    def stop(self, pattern, last=signal.SIGKILL):
        """Ends the processes noted in these files: politely, and after a while in another way."""
        files = list(self.folder.glob(pattern))
        pids = [int(file.read_text()) for file in files]
        for pid in pids:
            end(pid, signal.SIGTERM if last == signal.SIGKILL else last)
        until = time.monotonic() + 10
        while any(alive(pid) for pid in pids) and time.monotonic() < until:
            time.sleep(0.1)
        for pid in pids:
            end(pid, signal.SIGKILL)
        for file in files:
            file.unlink()


def end(pid, how):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Node:
    """A node: two kubelets on one machine need a containerd, a bridge, ports and folders each."""

    def __init__(self, cluster, index):
        self.cluster = cluster
        self.index = index
        self.name = f"node-{index}"
        self.link = f"kgt{index}"
        self.address = f"10.244.{index}.1"
        self.health = 20251 + 10 * index
        self.folder = cluster.folder / self.name
        self.run = pathlib.Path(f"/run/kgt-{self.name}")
        self.socket = self.run / "containerd.sock"

    def up(self):
        self.cluster.bridge(self.link, f"{self.address}/24")
        self.configure()
        self.start()
        self.take(self.cluster.folder / "pause.tar")

    def configure(self):
        plugin = 'plugins."io.containerd.grpc.v1.cri"'
        self.write(
            "containerd.toml",
            f"""version = 2
root = "{self.folder}/containerd"
state = "{self.run}"
[grpc]
address = "{self.socket}"
[{plugin}]
sandbox_image = "{PAUSE}"
# Without CAP_SYS_RESOURCE nothing may be protected from the kernel's killer of processes.
restrict_oom_score_adj = true
[{plugin}.containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"
[{plugin}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[{plugin}.cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{self.folder}/cni"
""",
        )
        addresses = {
            "type": "host-local",
            "dataDir": f"{self.folder}/addresses",
            "ranges": [[{"subnet": f"10.244.{self.index}.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        bridge = {"type": "bridge", "bridge": self.link, "isGateway": True, "ipMasq": False, "hairpinMode": True, "ipam": addresses}
        self.write("cni/10-bridge.conflist", json.dumps({"cniVersion": "0.4.0", "name": self.link, "plugins": [bridge]}))
        kubelet = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/kgt-{self.name}",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "failSwapOn": False,
            "clusterDNS": [ADDRESS],
            "clusterDomain": "cluster.local",
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "port": 20250 + 10 * self.index,
            "address": self.address,
            "healthzPort": self.health,
            "readOnlyPort": 0,
            "serializeImagePulls": False,
            # No image can be fetched again, however full the disk is.
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "makeIPTablesUtilChains": False,
            "syncFrequency": "10s",
            # A kubelet removes logs that it does not know.
            "podLogsDir": f"{self.folder}/logs",
        }
        self.write("kubelet.json", json.dumps(kubelet))
        self.control_groups()

    def control_groups(self):
        """A group of this node's own below each controller, or below the one tree of version 2."""
        if (CGROUPS / "cgroup.controllers").exists():
            (CGROUPS / f"kgt-{self.name}").mkdir(exist_ok=True)
            return
        for controller in CGROUPS.iterdir():
            if not controller.is_symlink() and controller.is_dir():
                group = controller / f"kgt-{self.name}"
                group.mkdir(exist_ok=True)
                if controller.name == "cpuset":
                    for kind in ("cpuset.cpus", "cpuset.mems"):
                        (group / kind).write_text((controller / kind).read_text())

    def start(self):
        self.cluster.start("containerd", ["--config", self.folder / "containerd.toml"], name=f"{self.name}/containerd")
        patiently(f"containerd of {self.name} does not answer", lambda: self.ctr("version", check=False).returncode == 0)
        # Containerd answers before its part for kubelets does, and a kubelet that comes too early ends.
        patiently(f"the kubelet of {self.name} is not well", self.kubelet_is_well)

    def kubelet_is_well(self):
        """Whether the kubelet says so; one that has ended, or is not there yet, is started."""
        pid = self.folder / "kubelet.pid"
        if not pid.exists() or not alive(int(pid.read_text())):
            self.cluster.start(
                "kubelet",
                ["--config", self.folder / "kubelet.json", "--kubeconfig", self.cluster.kubeconfig, "--hostname-override", self.name],
                ["--root-dir", self.folder / "kubelet", "--node-ip", self.address, "--cert-dir", self.folder / "certificates"],
                name=f"{self.name}/kubelet",
            )
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/healthz", timeout=5):
                return True
        except OSError:
            return False

    def ctr(self, *arguments, **options):
        return call("ctr", "--address", self.socket, "--namespace", "k8s.io", *arguments, **options)

    def take(self, archive):
        self.ctr("images", "import", archive)

    def write(self, name, text):
        self.cluster.write(f"{self.name}/{name}", text)

    def promise(self, resources):
        """Says that the node has these extended resources."""
        status = {"status": {"capacity": resources, "allocatable": resources}}
        self.cluster.api.patch(f"/api/v1/nodes/{self.name}/status", status)

    def lose(self):
        """The node is gone at once, with all that ran on it."""
        self.cluster.stop(f"{self.name}/kubelet.pid", last=signal.SIGKILL)
        self.end_containers()
        self.cluster.stop(f"{self.name}/containerd.pid")

    def end_containers(self):
        for task in self.ctr("tasks", "list", "-q", check=False).stdout.split():
            self.ctr("tasks", "kill", "--all", "--signal", "SIGKILL", task, check=False)

    def down(self):
        self.lose()
        # What containerd leaves behind for each pod.
        for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                command = process.read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if b"containerd-shim" in command and str(self.socket).encode() in command:
                end(int(process.parent.name), signal.SIGKILL)


def main():
    verb, *rest = sys.argv[1:] or ["help"]
    if verb == "up":
        cluster = Cluster()
        cluster.up(int(rest[0]) if rest else 2)
        print(cluster.kubeconfig)
    elif verb == "down":
        Cluster().down()
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
