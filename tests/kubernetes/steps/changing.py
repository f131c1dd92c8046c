"""Upgrades, removals and the end of a release, while it works."""

from fleet import RELEASE, benchmark, ended, pool, pools
from steps import expect, step
from steps.failing import LONG, working

NEXT = {"image": {"tag": "next"}}


def uids(fleet):
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in fleet.servers()}


@step
def upgraded(fleet):
    """An upgrade with another image and other values replaces coordinators and conductor, and no server that runs; a rollback neither."""
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
    config = benchmark("fewer", ["org/a", "org/b"], 60)
    fleet.install(pools(pool("a", sim={"PROFILE": "l40s"}), pool("b", sim={"PROFILE": "l40s"}), run={"config": config, "format": "toml"}))
    working(fleet)
    fleet.until("both serve", lambda: len(fleet.servers()) == 2, 120)
    fleet.values["servingEngineSpec"]["modelSpec"].pop()
    before = fleet.status()["scored"]
    fleet.upgrade()
    fleet.until("its server is gone", lambda: not fleet.servers("b"), 180)
    fleet.until("the other is done", lambda: any(ended(job) == "Complete" for job in fleet.jobs("a")), 400)
    view = fleet.status()
    expect(view["scored"] >= before and view["failed"] == 0, f"{view['scored']} after {before}, {view['failed']} failed")
    return f"b is gone; {view['scored']} of {view['planned']} scored, 0 failed"


@step
def uninstalled(fleet):
    """Uninstalled in the middle, servers deliver what they finished; records, tokens and certificates stay, and an installation goes on from there."""
    fleet.install(pools(pool("a", sim={"PROFILE": "l40s"}), run={"config": benchmark("again", ["org/a"], 100), "format": "toml"}))
    working(fleet, more=20)
    before = fleet.status()
    token = fleet.secret("auth", "operator.token").read_text()
    fleet.uninstall()
    fleet.until("all pods are gone", lambda: not fleet.pods(), 240)
    left = sorted(f"{kind} {each['metadata']['name']}" for kind in ("jobs", "cronjobs", "deployments", "persistentvolumeclaims") for each in fleet.list(kind))
    expect(left == ["persistentvolumeclaims bench-data"], f"left: {left}")
    values = fleet.values
    values["run"] = {}
    fleet.install(values)
    view = fleet.until_finished(400, before["run"])
    expect(fleet.secret("auth", "operator.token").read_text() == token, "another token")
    expect(view["scored"] == view["planned"] and view["failed"] == 0, f"{view['scored']} of {view['planned']}, {view['failed']} failed")
    return f"uninstalled at {before['scored']} records; installed again, {view['scored']} of {view['planned']} scored"
