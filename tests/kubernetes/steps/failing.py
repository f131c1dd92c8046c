"""Servers that fail, and what becomes of the others."""

from fleet import GPU, Failed, benchmark, ended, exits, pool, pools
from steps import expect, on_own_nodes, step
from steps.working import placed

LONG = benchmark("long", ["org/a"], 400)


def evict(fleet, pod):
    name = pod["metadata"]["name"]
    fleet.api.post(fleet.path("pods", name) + "/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": fleet.namespace}})


def working(fleet, name="a", more=5):
    """A server of the pool serves: there are so many records more."""
    view = {"scored": 0}
    try:
        view.update(fleet.status())
    except Failed:
        # The run is not there yet.
        pass
    enough = view["scored"] + more

    def are_there():
        view.update(fleet.status())
        return view["scored"] >= enough

    fleet.until("there are records", are_there, 240, count=lambda: view["scored"])
    return fleet.servers(name)


def code_of(fleet, uid, version):
    """How the worker of a pod ended, by what became of the pods since this version of them: the pod itself is soon gone."""
    for _, pod in fleet.api.watch(fleet.path("pods"), version, 60):
        if pod["metadata"].get("uid") == uid and "worker" in exits(pod):
            return exits(pod)["worker"][0]
    return None


@step
def evicted(fleet):
    """An evicted server drains with 143, its pod is replaced and not counted, and the Job goes on."""
    fleet.install(pools(pool("a", sim={"PROFILE": "l40s"}), run={"config": LONG, "format": "toml"}))
    pod = working(fleet)[0]
    version = fleet.api.get(fleet.path("pods"))["metadata"]["resourceVersion"]
    evict(fleet, pod)
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    fleet.until("another pod is there", lambda: [each for each in fleet.servers("a") if each["metadata"]["uid"] != uid], 240)
    code = code_of(fleet, uid, version)
    expect(code == 143, f"{name} ended with {code}")
    job = fleet.jobs("a")
    expect(len(job) == 1 and ended(job[0]) is None, fleet.picture())
    working(fleet)
    job = fleet.jobs("a")[0]
    counted = job["status"].get("failed", 0)
    expect(ended(job) is None and not counted, f"{counted} failures counted\n{fleet.picture()}")
    return f"{name} ended with {code}, Job {job['metadata']['name']} goes on, failures counted: {counted}"


@step
def part_evicted(fleet):
    """A part of a server over two nodes is evicted: the whole Job fails at once, and another one is started and ends the run."""
    gang = {"requestGPU": 8, "multiNodeSize": 2, "vllmConfig": {"tensorParallelSize": 8, "pipelineParallelSize": 2}}
    fleet.install(pools(pool("a", **gang, sim={"PROFILE": "l40s"}), run={"config": benchmark("part", ["org/a"], 200), "format": "toml"}))
    fleet.until("both parts have nodes", lambda: placed(fleet, "a", 2), 120)
    parts = working(fleet)
    second = next(pod for pod in parts if pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1")
    evict(fleet, second)
    state = fleet.until("its Job has failed", lambda: next((ended(job) for job in fleet.jobs("a") if ended(job)), None), 240)
    expect(state == "Failed: PodFailurePolicy", state)
    view = fleet.until_finished(420)
    fleet.until("the last Job is complete", lambda: ended(fleet.jobs("a")[-1]) == "Complete", 120)
    names = {job["metadata"]["name"]: ended(job) for job in fleet.jobs("a")}
    expect(len(names) > 1 and not view["failed"], f"{names}, {view['failed']} failed")
    return f"{names}, {view['scored']} of {view['planned']} scored"


@step
def cannot_load(fleet):
    """A model that cannot load fails with what its server said, and no pod of it is left; the others are done meanwhile."""
    config = benchmark("broken", ["org/good", "org/bad"], 3)
    broken = pool("bad", sim={"BROKEN": "the architecture is not supported"})
    fleet.install(pools(pool("good"), broken, run={"config": config, "format": "toml"}))
    fleet.until("the good model is done", lambda: any(ended(job) == "Complete" for job in fleet.jobs("good")), 240)

    def told():
        why = fleet.pools()["bad"].get("last_failure") or ""
        return why if "not supported" in why else None

    why = fleet.until("launch --status says why the other does not load", told, 600)
    fleet.until("no pod of it is left", lambda: not fleet.servers("bad"), 120)
    return f"good is done; bad failed: {why!r}"


@step
def cannot_start(fleet):
    """Pools whose pods do not start say why within a minute, in the words of Kubernetes; the one whose image is mended is made anew and done."""
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {f"requests.{GPU}": "2"}}}
    fleet.api.post(fleet.path("resourcequotas"), {"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    specs = [pool("image", tag="no-such"), pool("nowhere", nodeSelector={"no": "such"}), pool("quota", requestGPU=4)]
    config = benchmark("kept", ["org/image", "org/nowhere", "org/quota"], 3)
    fleet.install(pools(*specs, run={"config": config, "format": "toml"}))
    expected = {"image": "ImagePull", "nowhere": "Unschedulable", "quota": "exceeded quota"}
    fleet.until("there are three Jobs", lambda: len(fleet.jobs()) >= 3, 240)

    def told():
        rows = fleet.pools()
        said = {name: rows[name].get("not_starting") or "" for name in expected}
        return said if all(word in said[name] for name, word in expected.items()) else None

    said = fleet.until("launch --status says why", told, 60)
    shown = fleet.kgfleet("status", "latest")
    expect(shown.count("does not start") == 3, shown)
    expect(all(row["gpu_hours"]["load"] == 0 for name, row in fleet.pools().items() if name != "image"), str(fleet.pools()))
    fleet.upgrade(pools(pool("image"), *specs[1:], run={"config": config, "format": "toml"}))
    fleet.until("the mended one is done", lambda: any(ended(job) == "Complete" for job in fleet.jobs("image")), 240)
    return str(said)


@step
def too_large(fleet):
    """Weights that outgrow their volume are evicted without being tried for ever; the pool is given up, and the reason names the volume."""
    config = benchmark("large", ["org/a"], 3)
    fleet.install(pools(pool("a", cache={"size": "20Mi"}, sim={"FILL": 60, "LOAD": 300}), run={"config": config, "format": "toml"}))
    row = fleet.until("the pool is given up", lambda: next((row for row in fleet.pools().values() if row["is_given_up"]), None), 600)
    pods = [pod for pod in fleet.pods("worker") if pod["status"].get("reason") == "Evicted"]
    expect("volume" in row["last_failure"], str(row))
    return f"{len(pods)} pods evicted; {row['last_failure']!r}"


@on_own_nodes
def server_crashes(fleet):
    """A server that crashes is started again in its place; its pod and its worker stay."""
    fleet.install(pools(pool("a", sim={"PROFILE": "l40s"}), run={"config": LONG, "format": "toml"}))
    pod = working(fleet)[0]
    name = pod["metadata"]["name"]
    kill(fleet, pod, "vllm")
    fleet.until("it was started again", lambda: restarts(fleet.get("pods", name), "vllm") == 1, 60)
    working(fleet)
    after = fleet.get("pods", name)
    expect(after["metadata"]["uid"] == pod["metadata"]["uid"] and restarts(after, "worker") == 0, fleet.picture())
    return f"{name}: vllm started again once, its worker never"


@on_own_nodes
def worker_crashes(fleet):
    """A worker that crashes is started again beside its loaded server."""
    fleet.install(pools(pool("a", sim={"PROFILE": "l40s"}), run={"config": LONG, "format": "toml"}))
    pod = working(fleet)[0]
    name = pod["metadata"]["name"]
    kill(fleet, pod, "worker")
    fleet.until("it was started again", lambda: restarts(fleet.get("pods", name), "worker") == 1, 60)
    working(fleet)
    after = fleet.get("pods", name)
    expect(restarts(after, "vllm") == 0, fleet.picture())
    return f"{name}: worker started again once, vllm never"


def kill(fleet, pod, container):
    """Ends the processes of a container as the kernel would."""
    statuses = pod["status"].get("containerStatuses", []) + pod["status"].get("initContainerStatuses", [])
    identity = next(each["containerID"] for each in statuses if each["name"] == container).split("//")[1]
    fleet.cluster.node(pod["spec"]["nodeName"]).ctr("tasks", "kill", "--all", "--signal", "SIGKILL", identity)


def restarts(pod, container):
    statuses = pod["status"].get("containerStatuses", []) + pod["status"].get("initContainerStatuses", [])
    return next(each["restartCount"] for each in statuses if each["name"] == container)


@step
def by_hand(fleet):
    """A Job that somebody makes from the stored one is a server as any other, and stays when it has ended."""
    fleet.install(pools(pool("a"), conductor={"enabled": False}, run={"config": benchmark("hand", ["org/a"], 3), "format": "toml"}))
    for number in range(1, 5):
        fleet.kubectl("create", "job", f"bench-a-{number}", "--from=cronjob/bench-a")
    view = fleet.until_finished(240)
    fleet.until("all have ended", lambda: all(ended(job) for job in fleet.jobs("a")), 180)
    states = [ended(job) for job in fleet.jobs("a")]
    expect(states == ["Complete"] * 4, f"{states}\n{fleet.picture()}")
    return f"{view['scored']} of {view['planned']} scored; all four Jobs are still there, complete"
