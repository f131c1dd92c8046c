"""Nodes that kwok pretends, and what kwok does not play of their kubelets.

kwok keeps the nodes Ready, and says of pods on them that they run. The rest is played here, for the pods of servers. After a
while, in which the model loads, the pod's worker begins as a process of this machine: with the pod's name, arguments,
variables and Secrets, beside a simulator that serves all models. When it has ended, the pod's status says how, as a kubelet
would, so that the Job controller acts on it. A pod that is deleted is drained and then released.

What differs from a kubelet: no image is needed, nothing is probed, a worker that crashes is not started again in its place,
and of a server over several nodes only the first part has a process. These pods have no logs and no shells; what workers say
is in the folder `pods` of the fleet's own.
"""

import base64
import collections
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time
import traceback

from api import Refused
from cluster import ADDRESS, patiently
from fleet import GPU, GPUS, KGFLEET

# Nodes with this label and annotation are kwok's; only pods that tolerate the taint of this name come to them.
MARK, FAKE = "kwok.x-k8s.io/node", "fake"
# What a node has beside its GPUs, so that models of the paper fit by what the chart asks for.
CAPACITY = {"cpu": "192", "memory": "2Ti", "ephemeral-storage": "16Ti", "pods": "110", GPU: str(GPUS)}
# What pods need that are to be on these nodes and on no others: defaults of pools.
PLACED = {"nodeSelector": {MARK: FAKE}, "tolerations": [{"key": MARK, "operator": "Exists", "effect": "NoSchedule"}]}
# Seconds for which a node counts as alive after kwok's last word.
LEASE = 40
# Seconds until nodes are Ready, and until the simulator listens.
PATIENCE = 60
# Seconds that a server loads: so many, and so many more for each of its GPUs.
LOADS, LOADS_FOR_GPU = 2, 2
# Seconds between looks at pods and processes.
LOOK = 0.2
# Seconds after which a watch is begun anew.
WATCH = 10
# Seconds that processes may take to end when all is over.
ENDING = 20
# Characters that a pod says of why its worker failed.
LAST_WORDS = 2000
# How a process ends that was told to.
TERMINATED = 128 + signal.SIGTERM
OVER = ("Succeeded", "Failed")
INDEX = "batch.kubernetes.io/job-completion-index"
JOB = "batch.kubernetes.io/job-name"
SERVER = {"app.kubernetes.io/component": "worker"}


# --- kwok ---


def stage(kind, name, expressions, status):
    """What kwok does to an object of which all of this holds: it writes this status."""
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": expressions},
            "next": {"statusTemplate": status},
        },
    }


NODE_READY = """
{{ $now := Now }}
phase: Running
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
"""
# What a pod says of CONTAINERS, once they run.
RUNNING = """\
{{ range CONTAINERS }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
"""
# All that these pods have before their containers is a server, which runs beside them. What it leaves out of the status stays.
POD_RUNNING = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
{{ range list "Initialized" "ContainersReady" "Ready" }}
- type: {{ . | Quote }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
"""
POD_RUNNING += "initContainerStatuses:\n" + RUNNING.replace("CONTAINERS", ".spec.initContainers")
POD_RUNNING += "containerStatuses:\n" + RUNNING.replace("CONTAINERS", ".spec.containers")
STAGES = [
    stage(
        "Node",
        "node-ready",
        [{"key": '.status.conditions.[] | select( .type == "Ready" ) | .status', "operator": "NotIn", "values": ["True"]}],
        NODE_READY,
    ),
    # Without kwok's own stages for the end of a pod: one of them ends the pods of Jobs at once, the other one deletes pods before
    # anybody has said how they ended.
    stage(
        "Pod",
        "pod-running",
        [
            {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
            {"key": ".status.phase", "operator": "In", "values": ["Pending"]},
        ],
        POD_RUNNING,
    ),
]


def node(name):
    return {
        "metadata": {
            "name": name,
            "labels": {MARK: FAKE, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
            "annotations": {MARK: FAKE},
        },
        "spec": {"taints": [{"key": MARK, "value": FAKE, "effect": "NoSchedule"}]},
        "status": {"capacity": CAPACITY, "allocatable": CAPACITY},
    }


@contextlib.contextmanager
def nodes(cluster, number):
    """So many nodes that kwok pretends, by their names, for as long as this lasts."""
    names = [f"pretended-{index}" for index in range(1, number + 1)]
    # A test that was broken off may have left them.
    remove(cluster, names)
    cluster.write("kwok-stages.json", "\n---\n".join(json.dumps(each) for each in STAGES))
    try:
        for name in names:
            cluster.api.post("/api/v1/nodes", node(name))
        cluster.start(
            "kwok",
            ["--kubeconfig", cluster.kubeconfig, "--config", cluster.folder / "kwok-stages.json"],
            ["--manage-nodes-with-annotation-selector", f"{MARK}={FAKE}", "--node-lease-duration-seconds", LEASE],
        )
        patiently("a node that kwok pretends is not ready", lambda: all(cluster.is_ready(name) for name in names), PATIENCE)
        yield names
    finally:
        remove(cluster, names)


def remove(cluster, names):
    """Ends kwok, and takes its nodes away. A lease that outlives its node would keep the next kwok from it for a while."""
    cluster.stop("kwok.pid")
    for name in names:
        cluster.api.delete(f"/api/v1/nodes/{name}")
        cluster.api.delete(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}")


# --- what pods say ---


def gpus(pod):
    """GPUs that a pod takes."""
    containers = pod["spec"].get("initContainers", []) + pod["spec"]["containers"]
    return sum(int(each.get("resources", {}).get("requests", {}).get(GPU, 0)) for each in containers)


def worker_of(pod):
    return next(each for each in pod["spec"]["containers"] if each["name"] == "worker")


def parts(pod):
    """Nodes that a pod's server spans."""
    words = worker_of(pod)["args"]
    return int(words[words.index("--parts") + 1]) if "--parts" in words else 1


def index(pod):
    return int(pod["metadata"]["labels"][INDEX])


def is_over(pod):
    return pod["status"].get("phase") in OVER


def is_going(pod):
    return "deletionTimestamp" in pod["metadata"]


def field(pod, path):
    """What a variable gets that asks for a field of its pod, such as `metadata.labels['KEY']`."""
    found = re.fullmatch(r"(\w+)\.(\w+)(?:\['(.+)'\])?", path)
    value = pod[found[1]][found[2]]
    return value[found[3]] if found[3] else value


class Placements:
    """Pods of servers as a watch tells of them, change by change, and what they come to on nodes."""

    def __init__(self):
        self.lock = threading.Lock()
        self.pods = {}
        # By Job: the indexes of its pods that have, or had, a node.
        self.placed = collections.defaultdict(set)
        # Most GPUs at once: of pods with and without nodes, of those with nodes, of one node.
        self.most_asked = 0
        self.most = 0
        self.most_of_a_node = 0
        self.nodes = set()
        # Jobs over several nodes: those that had all of them, and those that waited for them side by side.
        self.whole = set()
        self.side_by_side = set()

    def take(self, pod, is_gone=False):
        """A change."""
        with self.lock:
            self.note(pod)
            if is_gone:
                self.pods.pop(pod["metadata"]["uid"], None)
            self.count()

    def replace(self, pods):
        """All that there are now. Counted once: pods of before beside pods of now were never there together."""
        with self.lock:
            self.pods.clear()
            for pod in pods:
                self.note(pod)
            self.count()

    def note(self, pod):
        """Those of other parts of the release are left out."""
        if SERVER.items() <= pod["metadata"].get("labels", {}).items():
            self.pods[pod["metadata"]["uid"]] = pod
            if pod["spec"].get("nodeName"):
                self.placed[pod["metadata"]["labels"][JOB]].add(index(pod))

    def all(self):
        with self.lock:
            return list(self.pods.values())

    def count(self):
        asked, used, waiting = 0, collections.Counter(), set()
        for pod in self.pods.values():
            if is_over(pod):
                continue
            asked += gpus(pod)
            if pod["spec"].get("nodeName"):
                used[pod["spec"]["nodeName"]] += gpus(pod)
            job = pod["metadata"]["labels"][JOB]
            if parts(pod) > 1 and len(self.placed[job]) == parts(pod):
                self.whole.add(job)
            elif parts(pod) > 1 and not is_going(pod):
                waiting.add(job)
        self.most_asked = max(self.most_asked, asked)
        self.most = max(self.most, used.total())
        self.most_of_a_node = max(self.most_of_a_node, *used.values(), 0)
        self.nodes |= set(used)
        if len(waiting) > 1:
            self.side_by_side.add(", ".join(sorted(waiting)))


# --- the rest of the kubelets ---


class PlayedKubelets:
    """What kwok does not play of its nodes' kubelets, for the servers of a release that serve these models."""

    def __init__(self, fleet, models):
        self.fleet = fleet
        self.api = fleet.api
        self.cluster = fleet.cluster
        self.models = models
        self.folder = fleet.folder / "pods"
        self.placements = Placements()
        self.stopping = threading.Event()
        # What broke in a thread, and what the API said last against something that is tried again.
        self.broken = None
        self.refused = None
        self.simulator = None
        self.address = None
        # By uid of a pod: since when it runs, its worker, until when that may drain.
        self.since = {}
        self.workers = {}
        self.drain_ends = {}
        # Pods whose end was said, and pods that were released.
        self.told = set()
        self.released = set()
        # How workers ended, by the names of their pods.
        self.ends = {}
        self.threads = [threading.Thread(target=self.guarded, args=(each,), daemon=True) for each in (self.follow, self.keep)]

    def __enter__(self):
        try:
            self.folder.mkdir()
            # Names are asked for at the cluster's DNS, as in a pod.
            self.resolver().write_text(f"nameserver {ADDRESS}\nsearch cluster.local\noptions ndots:5\n")
            self.simulate()
            for thread in self.threads:
                thread.start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def resolver(self):
        return self.folder / "resolv.conf"

    def process(self, name, command, environment):
        """Starts a process, and notes its id with those of the cluster: `cluster.py down` ends what a killed test leaves."""
        words, nothing = [str(word) for word in command], subprocess.DEVNULL
        with open(self.folder / f"{name}.log", "a", encoding="utf-8") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log, stdin=nothing, env=environment, start_new_session=True)
        self.cluster.write(f"{name}.pid", str(process.pid))
        return process

    def ended(self, name):
        """Forgets a process that has ended."""
        (self.cluster.folder / f"{name}.pid").unlink(missing_ok=True)

    def simulate(self):
        """Starts the server that answers for all models."""
        models = [word for model in self.models for word in ("--model", model)]
        command = [KGFLEET, "simulate", "--listen", "127.0.0.1:0", "--skill", "0.9", *models]
        self.simulator = self.process("simulator", command, self.plain())

        def listens():
            self.address = re.search(r"http://127\.0\.0\.1:\d+", (self.folder / "simulator.log").read_text())
            return self.address

        patiently("the simulator does not listen", listens, PATIENCE)
        self.address = self.address[0]

    def plain(self):
        """Variables that a container has whatever its pod says."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder)}

    # --- threads ---

    def guarded(self, work):
        try:
            work()
        except Exception:  # noqa: BLE001 it is told to who waits
            self.broken = traceback.format_exc()

    def check(self):
        """Fails if a thread has ended before its time."""
        if self.broken:
            raise RuntimeError(f"a played kubelet broke:\n{self.broken}")

    def follow(self):
        """Takes every change of the namespace's pods, in their order."""
        path, version = self.fleet.path("pods"), None
        while not self.stopping.is_set():
            try:
                if version is None:
                    listed = self.api.get(path)
                    version = listed["metadata"]["resourceVersion"]
                    self.placements.replace(listed["items"])
                for kind, pod in self.api.watch(path, version, WATCH):
                    if kind == "ERROR":
                        # The version is too old, mostly.
                        version = None
                        break
                    version = pod["metadata"]["resourceVersion"]
                    self.placements.take(pod, is_gone=kind == "DELETED")
                    if self.stopping.is_set():
                        break
            except (Refused, OSError, http.client.HTTPException, json.JSONDecodeError) as error:
                self.refused, version = f"watch: {error}", None
                self.stopping.wait(1)

    def keep(self):
        """Looks after pods on nodes that are pretended; what the API refuses is tried again with the next look."""
        while not self.stopping.wait(LOOK):
            for pod in self.placements.all():
                if pod["spec"].get("nodeSelector", {}).get(MARK) != FAKE or not pod["spec"].get("nodeName"):
                    continue
                try:
                    self.look_after(pod)
                except (Refused, OSError, http.client.HTTPException) as error:
                    self.refused = f"{pod['metadata']['name']}: {error}"

    # --- a pod ---

    def look_after(self, pod):
        uid, now = pod["metadata"]["uid"], time.monotonic()
        worker = self.workers.get(uid)
        if is_over(pod):
            if is_going(pod) and uid not in self.released:
                self.release(pod)
        elif uid in self.told:
            # The watch has not brought its end yet.
            return
        elif worker:
            code = worker.poll()
            if code is not None:
                self.tell_end(pod, code if code >= 0 else 128 - code)
            elif is_going(pod):
                self.drain(pod, worker, now)
        elif is_going(pod):
            self.tell_end(pod, TERMINATED)
        elif pod["status"].get("phase") == "Running" and index(pod) == 0:
            since = self.since.setdefault(uid, now)
            if now - since >= LOADS + LOADS_FOR_GPU * gpus(pod) * parts(pod):
                self.workers[uid] = self.begin(pod)

    def drain(self, pod, worker, now):
        """Tells a worker once to end, and kills it when its grace is over."""
        uid = pod["metadata"]["uid"]
        if uid not in self.drain_ends:
            self.drain_ends[uid] = now + pod["spec"]["terminationGracePeriodSeconds"]
            worker.terminate()
        elif now > self.drain_ends[uid]:
            worker.kill()

    def begin(self, pod):
        """Starts the worker of a pod as the pod says."""
        container = worker_of(pod)
        places = {each["mountPath"]: self.volume(pod, each["name"]) for each in container["volumeMounts"]}
        words = [self.here(word, places) for word in container["args"]]
        environment = self.plain()
        for variable in container.get("env", []):
            asked = variable.get("valueFrom")
            environment[variable["name"]] = field(pod, asked["fieldRef"]["fieldPath"]) if asked else variable.get("value", "")
        # The process sees the cluster's DNS in place of this machine's, and has the same id before and after.
        inside = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', self.resolver()]
        return self.process(pod["metadata"]["name"], [*inside, KGFLEET, *words], environment)

    def here(self, word, places):
        """A word of a command line as it reads here: folders in place of mounts, the simulator in place of the server."""
        for place, folder in places.items():
            if word == place or word.startswith(f"{place}/"):
                return f"{folder}{word[len(place):]}"
        return word.replace("http://127.0.0.1:8000", self.address).replace("0.0.0.0:7702", "127.0.0.1:0")

    def volume(self, pod, name):
        """The folder that a volume of a pod is."""
        folder = self.folder / pod["metadata"]["name"] / name
        folder.mkdir(parents=True, exist_ok=True)
        secret = next(each for each in pod["spec"]["volumes"] if each["name"] == name).get("secret")
        if secret:
            data = self.fleet.get("secrets", secret["secretName"])["data"]
            for item in secret["items"]:
                (folder / item["path"]).write_bytes(base64.b64decode(data[item["key"]]))
        return folder

    def tell_end(self, pod, code):
        """Says in a pod's status that all of its containers have ended, and how its worker did."""
        name, now = pod["metadata"]["name"], time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        status = pod["status"]
        ended = {"Ready": "False", "ContainersReady": "False"}
        conditions = [each for each in status.get("conditions", []) if each["type"] not in ended]
        reason = "PodFailed" if code else "PodCompleted"
        for kind, value in ended.items():
            conditions.append({"type": kind, "status": value, "reason": reason, "lastTransitionTime": now})

        def of(container, code, message=""):
            end = {"exitCode": code, "reason": "Error" if code else "Completed", "message": message, "finishedAt": now}
            end["startedAt"] = status.get("startTime", now)
            there = {"name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0}
            return {**there, "ready": False, "started": False, "state": {"terminated": end}}

        said = self.folder / f"{name}.log"
        last = said.read_text(errors="replace")[-LAST_WORDS:] if code and said.exists() else ""
        change = {
            "phase": "Failed" if code else "Succeeded",
            "conditions": conditions,
            # The server beside the worker ends well when it is told to.
            "initContainerStatuses": [of(each, 0) for each in pod["spec"].get("initContainers", [])],
            "containerStatuses": [of(each, code, last) for each in pod["spec"]["containers"]],
        }
        # By its version: what somebody else has said of it in between is not to be lost.
        version = {"resourceVersion": pod["metadata"]["resourceVersion"]}
        self.api.patch(f"{self.fleet.path('pods', name)}/status", {"metadata": version, "status": change})
        self.told.add(pod["metadata"]["uid"])
        if pod["metadata"]["uid"] in self.workers:
            self.ends[name] = code
            self.ended(name)

    def release(self, pod):
        """Says that nothing of a deleted pod is left on its node."""
        uid = pod["metadata"]["uid"]
        self.fleet.delete("pods", pod["metadata"]["name"], gracePeriodSeconds=0, preconditions={"uid": uid})
        self.released.add(uid)

    # --- the end ---

    def end(self):
        """Ends all threads and processes, whatever came before."""
        self.stopping.set()
        for thread in self.threads:
            if thread.ident:
                # Each is at most in one call of the API, or in one watch.
                thread.join(WATCH + PATIENCE)
        running = [worker for worker in self.workers.values() if worker.poll() is None]
        for worker in running:
            worker.terminate()
        if self.simulator:
            self.simulator.send_signal(signal.SIGINT)
            running.append(self.simulator)
        until = time.monotonic() + ENDING
        for process in running:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(ENDING)
        for file in self.folder.glob("*.log"):
            self.ended(file.stem)
