"""Pools that work a run off by themselves."""

import tomllib

from cluster import ROOT
from fleet import GPU, RELEASE, benchmark, ended, pool, pools
from steps import expect, on_own_nodes, step


def gpus_in_use(fleet):
    """GPUs of pods that have a node and have not ended."""
    total = 0
    for pod in fleet.servers():
        if pod["spec"].get("nodeName"):
            server = next(each for each in pod["spec"]["initContainers"] if each["name"] == "vllm")
            total += int(server["resources"]["limits"][GPU])
    return total


def all_complete(fleet):
    fleet.until("every Job has ended", lambda: all(ended(job) for job in fleet.jobs()), 120)
    states = {job["metadata"]["name"]: ended(job) for job in fleet.jobs()}
    wrong = {name: state for name, state in states.items() if state != "Complete"}
    expect(not wrong, f"Jobs that are not complete: {wrong}\n{fleet.picture()}")
    return len(states)


@step
def two_models_one_gpu(fleet):
    """Two models take turns on one GPU without a hand: both Jobs are complete, and the GPU is free."""
    models = ["a", "b"]
    config = benchmark("turns", [f"org/{each}" for each in models], 5)
    fleet.install(pools(*(pool(each) for each in models), gpus=1, run={"config": config, "format": "toml"}))
    view = fleet.until_finished(300)
    fleet.until("no server is left", lambda: not fleet.servers(), 120)
    count = all_complete(fleet)
    return f"{view['scored']} of {view['planned']} scored by {count} Jobs, {gpus_in_use(fleet)} GPUs in use"


@step
def over_two_nodes(fleet):
    """A model over two nodes: both parts meet under the first one's name, its Job is complete by its success policy, and the other part goes."""
    config = benchmark("gang", ["org/large"], 5)
    fleet.install(pools(pool("large", requestGPU=8, multiNodeSize=2, vllmConfig={"tensorParallelSize": 8, "pipelineParallelSize": 2}), run={"config": config, "format": "toml"}))
    nodes = fleet.until("both parts have nodes", lambda: placed(fleet, "large", 2), 120)
    view = fleet.until_finished(240)
    fleet.until("no part is left", lambda: not fleet.servers(), 120)
    all_complete(fleet)
    reasons = [each.get("reason") for job in fleet.jobs() for each in job["status"]["conditions"] if each["type"] == "Complete"]
    return f"on {', '.join(nodes)}: {view['scored']} of {view['planned']} scored; {reasons[0]}"


def placed(fleet, name, parts):
    nodes = sorted(pod["spec"].get("nodeName") or "" for pod in fleet.servers(name))
    return nodes if len(nodes) == parts and all(nodes) else None


@step
def three_gangs_two_nodes(fleet):
    """Three models over two nodes each, on two nodes: one after the other, none holds half of what it needs, and all end."""
    models = ["x", "y", "z"]
    config = benchmark("gangs", [f"org/{each}" for each in models], 3)
    gang = {"requestGPU": 8, "multiNodeSize": 2, "vllmConfig": {"tensorParallelSize": 8, "pipelineParallelSize": 2}}
    # The limit lies above what the nodes have, so that only the conductor's order keeps them apart.
    fleet.install(pools(*(pool(each, **gang) for each in models), gpus=64, run={"config": config, "format": "toml"}))
    view = fleet.until_finished(420)
    fleet.until("no server is left", lambda: not fleet.servers(), 120)
    return f"{view['scored']} of {view['planned']} scored by {all_complete(fleet)} Jobs"


@step
def pools_of_the_paper(fleet):
    """31 pools end without a hand on two nodes with 8 GPUs each: never more than 16 GPUs in use, every Job complete."""
    table = tomllib.loads((ROOT / "deploy/launch/models.toml").read_text())["models"]
    named = {f"m{index}": entry for index, entry in enumerate(table.values())}
    specs = []
    for name, entry in named.items():
        gpus, parts = min(entry["gpus"], 8), max(1, entry["gpus"] // 8)
        specs.append(pool(name, requestGPU=gpus, multiNodeSize=parts, vllmConfig={"tensorParallelSize": gpus, "pipelineParallelSize": parts}))
    config = benchmark("paper", [f"org/{name}" for name in named], 1)
    fleet.install(pools(*specs, run={"config": config, "format": "toml"}))
    most = 0

    def look():
        nonlocal most
        most = max(most, gpus_in_use(fleet))

    view = fleet.until_finished(400, look=look)
    fleet.until("no server is left", lambda: not fleet.servers(), 180)
    count = all_complete(fleet)
    expect(most <= 16 and view["failed"] == 0, f"{most} GPUs in use at once, {view['failed']} failed")
    return f"{len(specs)} pools, {count} Jobs, {view['scored']} of {view['planned']} scored, at most {most} GPUs at once"


@step
def paused(fleet):
    """A paused run's GPUs are free when its servers were idle for `idleAfter`; it is resumed, and servers come by themselves."""
    config = benchmark("pause", ["org/a"], 400)
    fleet.install(pools(pool("a", sim={"PROFILE": "l40s"}), workerSpec={"idleAfter": 20}, run={"config": config, "format": "toml"}))
    fleet.until("there are records", lambda: fleet.status()["scored"] > 5, 180)
    fleet.kgfleet("pause", "latest")
    fleet.until("no server is left", lambda: not fleet.servers(), 180)
    done = fleet.status()["scored"]
    fleet.kgfleet("resume", "latest")
    fleet.until("there are more records", lambda: fleet.status()["scored"] > done, 180)
    return f"GPUs free at {done} records; Jobs {[job['metadata']['name'] for job in fleet.jobs()]}"


@step
def extended(fleet):
    """A finished run gets another model by an upgrade; its server comes, and the first model is asked nothing again."""
    both = ["org/a", "org/b"]
    fleet.install(pools(pool("a"), pool("b"), run={"config": benchmark("more", both[:1], 3), "format": "toml"}))
    first = fleet.until_finished(240)
    fleet.upgrade({"run": {"config": benchmark("more", both, 3), "extend": first["run"]}})
    fleet.until("the run has more dialogues", lambda: fleet.status()["planned"] > first["planned"], 120)
    view = fleet.until_finished(240)
    made = sorted(job["metadata"]["name"] for job in fleet.jobs())
    expect(view["run"] == first["run"] and len(made) == 2, f"{view['run']} after {first['run']}, Jobs {made}")
    return f"{first['planned']} dialogues, then {view['planned']}; Jobs {made}"


@step
def budget(fleet):
    """With no GPU-hours left nothing is started, and the conductor tells so."""
    config = benchmark("dear", ["org/a"], 3)
    fleet.install(pools(pool("a", estimate={"loadMinutes": 60}), conductor={"gpuHours": 0.1}, run={"config": config, "format": "toml"}))
    conductor = fleet.ready("conductor")[0]["metadata"]["name"]
    fleet.until("the conductor tells that the budget is spent", lambda: "budget-spent" in fleet.logs(conductor, "conductor"), 120)
    expect(not fleet.jobs(), fleet.picture())
    return "no Job, and the event budget-spent"


def fetched(fleet):
    """When each index of the Job that fetches weights was done, and what it said."""
    job = fleet.get("cronjobs", f"{RELEASE}-a")["metadata"]["annotations"]["kgfleet/weights"].split("/")[0]
    done = {}
    for pod in fleet.pods("weights"):
        labels, statuses = pod["metadata"]["labels"], pod["status"].get("containerStatuses", [])
        ends = [each["state"]["terminated"] for each in statuses if "terminated" in each["state"]]
        if labels["batch.kubernetes.io/job-name"] == job and any(end["exitCode"] == 0 for end in ends):
            said = fleet.logs(pod["metadata"]["name"], "fetch").strip()
            done[labels["batch.kubernetes.io/job-completion-index"]] = (ends[0]["finishedAt"], said)
    return done


def all_fetched(fleet, count):
    done = fetched(fleet)
    return done if len(done) == count else None


@on_own_nodes
def weights(fleet):
    """Weights are fetched by a Job without GPUs into a volume that all servers share, and no server begins before its own are there; a further model makes nobody fetch again."""
    little = {"cpu": "10m", "memory": "256Mi", "ephemeral-storage": "1Gi", GPU: 1}
    resources = {"requests": little, "limits": {key: value for key, value in little.items() if key != "cpu"}}
    # The largest first: `b` is index 0.
    specs = [pool(name, weightsGi=size, resources=resources) for name, size in (("a", 1), ("b", 2), ("c", 3))]
    config = benchmark("weights", ["org/a", "org/b"], 5)
    shared = {"sharedPvcStorage": {"enabled": True, "size": "1Gi"}}
    fleet.install(pools(*specs[:2], run={"config": config, "format": "toml"}, **shared))
    first = fleet.until("both are fetched", lambda: all_fetched(fleet, 2), 120)
    expect("org/b" in first["0"][1] and "org/a" in first["1"][1], str(first))
    view = fleet.until_finished(300)
    for name, index in (("a", "1"), ("b", "0")):
        began = fleet.jobs(name)[0]["metadata"]["creationTimestamp"]
        expect(began >= first[index][0], f"a server of {name} began at {began}, and its weights came at {first[index][0]}")
    fleet.values["servingEngineSpec"]["modelSpec"].append(specs[2])
    fleet.upgrade()
    again = fleet.until("the third is fetched", lambda: all_fetched(fleet, 3), 120)
    said = [again[index][1] for index in ("0", "1", "2")]
    expect("org/c" in said[0] and not said[1] and not said[2], f"of the third, second and first model: {said}")
    return f"{view['scored']} of {view['planned']} scored by servers that began after their weights had come; the third model's alone were fetched then"
