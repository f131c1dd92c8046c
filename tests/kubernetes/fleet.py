"""A release of the chart in a namespace of the cluster, as its user sees it: Helm, kubectl, `kgfleet`, and what the API says."""

import base64
import contextlib
import copy
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import helm_python
import yaml

from cluster import BIN, ROOT

CHART = ROOT / "helm" / "kgfleet"
KGFLEET = pathlib.Path(os.environ.get("KGFLEET_BINARY", ROOT / "target" / "debug" / "kgfleet"))
KUBECTL = str(BIN / "kubectl") if (BIN / "kubectl").exists() else "kubectl"
RELEASE = "bench"
# Seconds that Helm waits for its hooks and for what it installs.
HELM_TIMEOUT = 300
# Seconds between looks.
LOOK = 1.0
GPU = "nvidia.com/gpu"
# GPUs that a node of this machine's own cluster is said to have.
GPUS = 8

# Two cores are all that a cluster of this machine's own may have.
LITTLE = {"cpu": "10m", "memory": "64Mi", "ephemeral-storage": "16Mi"}
SMALL = {
    "coordinator": {"leaseSeconds": 10, "resources": {"requests": LITTLE}},
    "redis": {"resources": {"requests": LITTLE}},
    "workerSpec": {"roundSeconds": 20, "graceSeconds": 40, "concurrency": "4", "extraArgs": ["--evaluators", "1"], "resources": {"requests": LITTLE}},
    "servingEngineSpec": {
        "modelDefaults": {
            "requestCPU": "10m",
            "requestMemory": "256Mi",
            "shmSize": "16Mi",
            "cache": {"size": "100Mi"},
            "estimate": {"loadMinutes": 1},
        }
    },
}


class Failed(Exception):
    """What was expected was not seen."""


def merged(values, *over):
    """Values with others over them, level by level."""
    values = copy.deepcopy(values)
    for each in over:
        for key, value in each.items():
            both = isinstance(value, dict) and isinstance(values.get(key), dict)
            values[key] = merged(values[key], value) if both else copy.deepcopy(value)
    return values


def pool(name, **more):
    """A pool that serves a simulated model of its name; `sim` holds what its server is told (see image/vllm)."""
    sim = more.pop("sim", {})
    return {"name": name, "modelURL": f"org/{name}", "env": [{"name": f"SIM_{key}", "value": str(value)} for key, value in sim.items()], **more}


def pools(*specs, gpus=16, conductor=None, **values):
    return merged(SMALL, {"conductor": {"gpus": gpus, "gpusPerNode": 8, **(conductor or {})}, "servingEngineSpec": {"modelSpec": list(specs)}}, values)


TASKS = ["RdfFriendCount-nt-1", "RdfFriendCount-nt-2", "RdfFriendCount-turtle-1", "RdfFriendCount-turtle-2"]


def benchmark(name, models, iterations, tasks=TASKS):
    """A configuration that asks these models."""
    head = f"name = {json.dumps(name)}\nseed = 5\niterations = {iterations}\ntasks = {json.dumps(tasks)}\n"
    each = "[[models]]\nlabel = {0}\nmodel = {0}\nconnector = 'openai-compatible'\nstream = false\n"
    return head + "".join(each.format(json.dumps(model)) for model in models)


class Fleet:
    def __init__(self, cluster, namespace, labels=None):
        self.cluster = cluster
        self.api = cluster.api
        self.namespace = namespace
        self.values = {}
        # No pod needs more than what the namespace with the strictest rules admits.
        enforced = {"pod-security.kubernetes.io/enforce": "restricted"} if labels is None else labels
        self.api.post("/api/v1/namespaces", {"metadata": {"name": namespace, "labels": enforced}})
        self.helm = helm_python.Config(kubeconfig_path=str(cluster.kubeconfig), namespace=namespace)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kgfleet-kubernetes-"))
        # Commands are tried as they are printed, whatever the program's file is called.
        (self.folder / "kgfleet").symlink_to(KGFLEET.resolve())

    # --- Helm ---

    def install(self, values, wait="watcher"):
        self.values = values
        return self.helm.install(str(CHART), RELEASE, values, namespace=self.namespace, timeout=HELM_TIMEOUT, wait=wait)

    def upgrade(self, *over, wait="watcher"):
        self.values = merged(self.values, *over)
        return self.helm.upgrade(str(CHART), RELEASE, self.values, namespace=self.namespace, timeout=HELM_TIMEOUT, wait=wait)

    def test(self):
        return self.helm.test(RELEASE, timeout=HELM_TIMEOUT, logs=True)

    def uninstall(self):
        return self.helm.uninstall(RELEASE, timeout=HELM_TIMEOUT)

    def remove(self):
        """Takes the namespace away with all that is in it, however far it came. Nothing is drained, as an uninstallation would."""
        self.api.delete(f"/api/v1/namespaces/{self.namespace}")
        for each in self.pods():
            self.delete("pods", each["metadata"]["name"], gracePeriodSeconds=0)
        self.until("the namespace is gone", lambda: self.api.find(f"/api/v1/namespaces/{self.namespace}") is None, 600)
        self.cluster.free_volumes()

    # --- what there is ---

    GROUPS = {"jobs": "/apis/batch/v1", "cronjobs": "/apis/batch/v1", "deployments": "/apis/apps/v1"}

    def path(self, kind, name=""):
        return f"{self.GROUPS.get(kind, '/api/v1')}/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    def get(self, kind, name):
        return self.api.find(self.path(kind, name))

    def delete(self, kind, name, **options):
        self.api.delete(self.path(kind, name), **options)

    def list(self, kind, **labels):
        items = self.api.list(self.path(kind))
        return [each for each in items if labels.items() <= each["metadata"].get("labels", {}).items()]

    def pods(self, component=None):
        labels = {"app.kubernetes.io/component": component} if component else {}
        return self.list("pods", **labels)

    def ready(self, component):
        return [pod for pod in self.pods(component) if is_ready(pod)]

    def jobs(self, name=None):
        """The servers of a pool, or of all pools: Jobs in the order of their names."""
        found = [job for job in self.list("jobs") if "kgfleet/pool" in job["metadata"].get("labels", {})]
        return [job for job in found if name in (None, job["metadata"]["labels"]["kgfleet/pool"])]

    def servers(self, name=None):
        """Pods of servers that have not ended."""
        pods = [pod for pod in self.pods("worker") if pod["status"]["phase"] in ("Pending", "Running")]
        return [pod for pod in pods if name in (None, pod["metadata"]["labels"].get("kgfleet/pool"))]

    def restarts(self):
        """Containers that were started again, and pods that failed."""
        wrong = []
        for pod in self.pods():
            status = pod["status"]
            for each in status.get("containerStatuses", []) + status.get("initContainerStatuses", []):
                if each["restartCount"]:
                    wrong.append(f"{pod['metadata']['name']}/{each['name']} was started {each['restartCount']} times again")
            if status["phase"] == "Failed":
                wrong.append(f"{pod['metadata']['name']} failed: {status.get('reason', exits(pod))}")
        return wrong

    # --- kgfleet ---

    def secret(self, name, key):
        data = self.get("secrets", f"{RELEASE}-{name}")["data"][key]
        file = self.folder / key
        file.write_bytes(base64.b64decode(data))
        return file

    @contextlib.contextmanager
    def forwarded(self, port=7700):
        """A port of a coordinator that is ready, on this machine."""
        pods = self.ready("coordinator")
        if not pods:
            raise Failed("no coordinator is ready")
        command = [KUBECTL, "--kubeconfig", self.cluster.kubeconfig, "-n", self.namespace]
        command += ["port-forward", f"pod/{pods[0]['metadata']['name']}", f":{port}"]
        with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                line = process.stdout.readline()
                here = re.search(r"127\.0\.0\.1:(\d+)", line)
                if not here:
                    raise Failed(f"kubectl port-forward: {line}")
                yield int(here.group(1))
            finally:
                process.terminate()

    def kgfleet(self, *arguments, check=True):
        """What a command says to an operator."""
        with self.forwarded() as port:
            command = [str(KGFLEET), *arguments, "--fleet", f"https://localhost:{port}"]
            command += ["--token-file", str(self.secret("auth", "operator.token")), "--ca", str(self.secret("tls", "ca.crt"))]
            try:
                said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=self.environment())
            except subprocess.TimeoutExpired as error:
                raise Failed(f"kgfleet {' '.join(arguments)} said nothing for {error.timeout:.0f} s") from None
        if check and said.returncode:
            raise Failed(f"kgfleet {' '.join(arguments)} ended with {said.returncode}: {said.stderr}")
        return said.stdout

    def status(self, run="latest"):
        return json.loads(self.kgfleet("status", run, "--json"))

    def pools(self):
        """What `kgfleet launch --status` says of each pool, by its name. Coordinators know of servers whose Jobs were deleted."""
        said = self.kgfleet("launch", "--status", "--json", "--release", RELEASE, "--namespace", self.namespace, check=False)
        try:
            return {row["pool"]: row for row in json.loads(said)["pools"]}
        except (ValueError, KeyError):
            raise Failed(f"kgfleet launch --status: {said}") from None

    def kubectl(self, *arguments, check=True):
        command = [KUBECTL, "--kubeconfig", str(self.cluster.kubeconfig), "-n", self.namespace, *arguments]
        said = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if check and said.returncode:
            raise Failed(f"kubectl {' '.join(arguments)}: {said.stderr}")
        return said.stdout

    def environment(self):
        """This process's, with the programs of this cluster in the path."""
        return {**os.environ, "PATH": f"{BIN}:{self.folder}:{os.environ['PATH']}", "KUBECONFIG": str(self.cluster.kubeconfig)}

    def shell(self, script):
        """Runs a script as its user would."""
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300, check=False, env=self.environment())

    def rendered(self, values):
        """The objects that the chart makes of values."""
        templates = helm_python.Chart.load(str(CHART)).render(values, name=RELEASE, namespace=self.namespace)
        texts = [text for path, text in templates.items() if path.endswith(".yaml")]
        return [each for text in texts for each in yaml.safe_load_all(text) if each]

    def apply(self, item):
        command = [KUBECTL, "--kubeconfig", str(self.cluster.kubeconfig), "apply", "--server-side", "-f", "-"]
        said = subprocess.run(command, input=json.dumps(item), capture_output=True, text=True, timeout=120, check=False)
        if said.returncode:
            raise Failed(f"kubectl apply of {item['kind']} {item['metadata']['name']}: {said.stderr}")

    def logs(self, pod, container):
        return self.kubectl("logs", pod, "-c", container, "--tail", "50", check=False)

    # --- waiting ---

    def until(self, what, probe, seconds, count=None):
        """Looks until the probe holds, and gives what it said. A cluster that does not answer for a moment is asked again.

        With a count, which has an end, the seconds begin anew whenever it is higher than ever before: a slow machine is no failure.
        """
        end = time.monotonic() + seconds
        seen, highest = None, 0
        while True:
            try:
                seen = probe()
                if seen:
                    return seen
            except (Failed, OSError, ValueError) as error:
                seen = error
            if count and count() > highest:
                end, highest = time.monotonic() + seconds, count()
            if time.monotonic() > end:
                still = f", still at {highest}" if count else ""
                raise Failed(f"after {seconds} s not: {what} (last seen: {seen}{still})\n{self.picture()}")
            time.sleep(LOOK)

    def until_finished(self, seconds, run="latest", look=None):
        """The run has ended by itself; its state. The seconds count from the last dialogue that ended; `look` is called with each look."""
        view = {"scored": 0, "failed": 0}

        def finished():
            if look:
                look()
            view.update(self.status(run))
            return view["phase"] == "finished"

        self.until(f"run {run} is finished", finished, seconds, count=lambda: view["scored"] + view["failed"])
        return view

    def picture(self):
        """Pods as they are, for a message."""
        lines = []
        for pod in self.pods():
            going = " going" if pod["metadata"].get("deletionTimestamp") else ""
            lines.append(f"  {pod['metadata']['name']}: {pod['status']['phase']}{going} on {pod['spec'].get('nodeName')} {exits(pod)}")
        for job in self.jobs():
            kinds = [each["type"] for each in job["status"].get("conditions", []) if each["status"] == "True"]
            lines.append(f"  Job {job['metadata']['name']}: {kinds or 'active'}")
        return "\n".join(lines)


def is_ready(pod):
    conditions = pod["status"].get("conditions", [])
    here = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return here and not pod["metadata"].get("deletionTimestamp")


def exits(pod):
    """How the containers of a pod ended."""
    status = pod["status"]
    all_of_them = status.get("containerStatuses", []) + status.get("initContainerStatuses", [])
    ended = {each["name"]: each["state"]["terminated"] for each in all_of_them if "terminated" in each.get("state", {})}
    return {name: (each["exitCode"], each.get("message", "").strip()[-200:]) for name, each in ended.items()}


def ended(job):
    """`Complete`, `Failed` with its reason, or nothing yet."""
    for each in job["status"].get("conditions", []):
        if each["status"] == "True" and each["type"] in ("Complete", "Failed"):
            return each["type"] if each["type"] == "Complete" else f"Failed: {each.get('reason')}"
    return None
