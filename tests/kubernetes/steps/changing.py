"""Upgrades, removals and the end of a release, while it works."""

import concurrent.futures
import time

from fleet import RELEASE, benchmark, ended, pool, pools
from steps import expect, step
from steps.failing import LONG, working

NEXT = {"image": {"tag": "next"}}


def uids(fleet):
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in fleet.servers()}


@step
def upgraded(fleet):
    """An upgrade with another image and other values replaces coordinator and conductor, and no server that runs; a rollback neither."""
    fleet.install(pools(pool("a", sim={"PROFILE": "l40s"}), run={"config": LONG, "format": "toml"}))
    working(fleet)
    before = uids(fleet)
    fleet.upgrade(NEXT, {"workerSpec": {"graceSeconds": 50}})
    images = {pod["spec"]["containers"][0]["image"] for component in ("coordinator", "conductor") for pod in fleet.ready(component)}
    working(fleet)
    expect(uids(fleet) == before and images == {"kgfleet:next"}, f"{before} became {uids(fleet)}, images {images}")
    fleet.helm.rollback(RELEASE, version=1, timeout=300, wait="watcher")
    working(fleet)
    expect(uids(fleet) == before, f"{before} became {uids(fleet)} by the rollback")
    return f"{', '.join(before)} went on; others run {images}, then the first again"


@step
def pool_removed(fleet):
    """A pool that is taken out of the values while it serves: its servers drain and go, its records stay, and the others go on."""
    config = benchmark("fewer", ["org/a", "org/b"], 200)
    fleet.install(pools(pool("a", sim={"PROFILE": "l40s"}), pool("b", sim={"PROFILE": "l40s"}), run={"config": config, "format": "toml"}))
    working(fleet)
    fleet.until("both serve", lambda: len(fleet.servers()) == 2, 120)
    fleet.values["servingEngineSpec"]["modelSpec"].pop()
    before = fleet.status()["scored"]
    fleet.upgrade()
    fleet.until("its server is gone", lambda: not fleet.servers("b"), 180)
    models = {each["model"]: each for each in fleet.status()["models"]}
    expect(models["org/b"]["scored"] < models["org/b"]["planned"], "the removed pool had nothing left to do, so nothing was tried")
    done = {"scored": 0}

    def other_done():
        done.update(fleet.status())
        return any(ended(job) == "Complete" for job in fleet.jobs("a"))

    fleet.until("the other is done", other_done, 240, count=lambda: done["scored"])
    view = fleet.status()
    kept, mine = view["scored"] >= before, next(each for each in view["models"] if each["model"] == "org/a")
    expect(kept and view["failed"] == 0, f"{view['scored']} after {before}, {view['failed']} failed")
    expect(mine["scored"] == mine["planned"], f"{mine['scored']} of {mine['planned']} of the other scored")
    return f"b is gone; {view['scored']} of {view['planned']} scored, 0 failed"


def while_uninstalled(fleet):
    """Uninstalls the release; the pods that there were meanwhile, look by look."""
    looks = []
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        uninstalled = beside.submit(fleet.uninstall)
        while not uninstalled.done():
            looks.append([pod for pod in fleet.pods() if pod["status"]["phase"] in ("Pending", "Running")])
            time.sleep(0.2)
        uninstalled.result()
    return looks


def of(pods, component, going=None):
    found = [pod["metadata"] for pod in pods if pod["metadata"]["labels"].get("app.kubernetes.io/component") == component]
    return [each["name"] for each in found if going is None or going == ("deletionTimestamp" in each)]


@step
def uninstalled(fleet):
    """Uninstalled in the middle, the conductor ends first, and servers end while a coordinator takes their records; records, tokens and certificates stay, and an installation goes on from there."""
    fleet.install(pools(pool("a", sim={"PROFILE": "l40s"}), run={"config": benchmark("again", ["org/a"], 100), "format": "toml"}))
    working(fleet, more=20)
    before = fleet.status()
    token = fleet.secret("auth", "operator.token").read_text()
    looks = while_uninstalled(fleet)
    drained = [pods for pods in looks if of(pods, "worker", going=True)]
    expect(drained, "no server was seen that drained")
    expect(not any(of(pods, "conductor") for pods in drained), "a server drained while a conductor was there")
    alone = [of(pods, "worker") for pods in looks if of(pods, "worker") and not of(pods, "coordinator", going=False)]
    expect(not alone, f"without a coordinator: {alone[:1]}")
    fleet.until("all pods are gone", lambda: not fleet.pods(), 240)
    left = sorted(f"{kind} {each['metadata']['name']}" for kind in ("jobs", "cronjobs", "deployments", "persistentvolumeclaims") for each in fleet.list(kind))
    expect(left == ["persistentvolumeclaims bench-data"], f"left: {left}")
    values = fleet.values
    values["run"] = {}
    fleet.install(values)
    kept = fleet.status(before["run"])["scored"]
    expect(kept >= before["scored"], f"{kept} records after {before['scored']}")
    view = fleet.until_finished(400, before["run"])
    expect(fleet.secret("auth", "operator.token").read_text() == token, "another token")
    expect(view["scored"] == view["planned"] and view["failed"] == 0, f"{view['scored']} of {view['planned']}, {view['failed']} failed")
    return f"uninstalled at {before['scored']} records, drained in {len(drained)} looks; installed again, {view['scored']} of {view['planned']} scored"
