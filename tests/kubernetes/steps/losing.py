"""Nodes that are emptied, and nodes that are lost for good."""

import datetime

from fleet import GPU, GPUS, benchmark, ended, pool, pools
from steps import expect, on_own_nodes
from steps.failing import working

# The coordinator goes where Redis is, so that one node has both.
BESIDE_REDIS = {
    "affinity": {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app.kubernetes.io/component": "redis"}}}
            ]
        }
    }
}


def running_on(fleet, component):
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in fleet.pods(component)}


def seconds(text):
    """A time of Kubernetes as seconds since 1970."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def come_back(fleet, node):
    """Starts a node that was lost, and waits for it. A kubelet that starts anew may forget what was promised."""
    fleet.cluster.node(node).start()
    fleet.until(f"{node} is back", lambda: fleet.cluster.is_ready(node), 180)
    fleet.cluster.node(node).promise({GPU: str(GPUS)})


@on_own_nodes
def drained_node(fleet):
    """A node with Redis, the coordinator and a server is drained in the middle: the run ends without a hand and without a failure."""
    specs = [pool(each, requestGPU=4, sim={"PROFILE": "l40s"}) for each in ("a", "b", "c")]
    config = benchmark("drain", ["org/a", "org/b", "org/c"], 100)
    fleet.install(pools(*specs, coordinator=BESIDE_REDIS, run={"config": config, "format": "toml"}))
    working(fleet)
    node = fleet.pods("redis")[0]["spec"]["nodeName"]
    try:
        fleet.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=300s")
        view = fleet.until_finished(300)
    finally:
        fleet.kubectl("uncordon", node)
    expect(view["failed"] == 0, f"{view['failed']} failed")
    return f"{node} emptied; {view['scored']} of {view['planned']} scored, 0 failed"


@on_own_nodes
def lost_node(fleet):
    """A node with Redis, the coordinator and two servers is lost for good in the middle: the run ends without a hand, and nothing that was acknowledged is lost."""
    specs = [pool(each, requestGPU=4, sim={"PROFILE": "l40s"}) for each in ("a", "b", "c", "d")]
    config = benchmark("lost", [f"org/{each}" for each in "abcd"], 150)
    fleet.install(pools(*specs, coordinator=BESIDE_REDIS, run={"config": config, "format": "toml"}))
    fleet.until("four servers have nodes", lambda: len([pod for pod in fleet.servers() if pod["spec"].get("nodeName")]) == 4, 180)
    working(fleet, more=20)
    node = fleet.pods("redis")[0]["spec"]["nodeName"]
    gone = [name for component in ("redis", "coordinator", "worker") for name, place in running_on(fleet, component).items() if place == node]
    expect(any("-coordinator-" in name for name in gone) and len(gone) >= 4, f"{node} has only {gone}")
    before = fleet.status()["scored"]
    fleet.cluster.node(node).lose()
    try:
        fleet.until("work goes on", lambda: fleet.status()["scored"] > before + 20, 900)
        conditions = fleet.api.find(f"/api/v1/nodes/{node}")["status"]["conditions"]
        noticed = next(each["lastTransitionTime"] for each in conditions if each["type"] == "Ready")
        made = next(pod["metadata"]["creationTimestamp"] for pod in fleet.pods("redis") if pod["spec"].get("nodeName") != node)
        left = seconds(made) - seconds(noticed)
        # The chart says 30; Kubernetes by itself waits for 300.
        expect(left < 200, f"another Redis was made {left} s after the node was not ready any more")
        view = fleet.until_finished(600)
        done = view["scored"]
        expect(view["failed"] == 0 and done == view["planned"], f"{view['failed']} failed, {done} of {view['planned']} scored")
    finally:
        come_back(fleet, node)
    states = {job["metadata"]["name"]: ended(job) for job in fleet.jobs()}
    return f"{node} lost with {', '.join(gone)} at {before} records; {done} of {view['planned']} scored; Jobs {states}"


@on_own_nodes
def lost_part(fleet):
    """A server over two nodes loses one of them for good: its Job is deleted, the node's GPUs are counted out, and models that fit go on."""
    gang = {"requestGPU": 8, "multiNodeSize": 2, "vllmConfig": {"tensorParallelSize": 8, "pipelineParallelSize": 2}}
    config = benchmark("halves", ["org/a", "org/b"], 60)
    fleet.install(pools(pool("a", **gang, sim={"PROFILE": "l40s"}), pool("b"), run={"config": config, "format": "toml"}))
    working(fleet, "a")
    other = next(pod["spec"]["nodeName"] for pod in fleet.servers("a") if pod["spec"]["nodeName"] != fleet.pods("redis")[0]["spec"]["nodeName"])
    first = fleet.jobs("a")[0]["metadata"]["uid"]
    fleet.cluster.node(other).lose()
    try:
        fleet.until("its Job is gone or has failed", lambda: all(job["metadata"]["uid"] != first or ended(job) for job in fleet.jobs("a")), 900)
        fleet.until("the other model is done", lambda: any(ended(job) == "Complete" for job in fleet.jobs("b")), 600)
    finally:
        come_back(fleet, other)
    view = fleet.until_finished(600)
    return f"{other} lost and back; {view['scored']} of {view['planned']} scored"


@on_own_nodes
def killed_one_after_the_other(fleet):
    """Redis, the conductor and, twice, the coordinator are killed one after the other: the run ends, and every dialogue has a record."""
    config = benchmark("killed", ["org/a"], 150)
    fleet.install(pools(pool("a", sim={"PROFILE": "l40s"}), run={"config": config, "format": "toml"}))
    working(fleet)
    for component in ("redis", "conductor", "coordinator", "coordinator"):
        victim = fleet.pods(component)[0]["metadata"]["name"]
        fleet.delete("pods", victim, gracePeriodSeconds=0)
        fleet.until(f"another {component} is ready", lambda: victim not in running_on(fleet, component) and fleet.ready(component), 240)
        working(fleet)
    view = fleet.until_finished(300)
    expect(view["failed"] == 0 and view["scored"] == view["planned"], f"{view['scored']} of {view['planned']}, {view['failed']} failed")
    return f"{view['scored']} of {view['planned']} scored, 0 failed"
