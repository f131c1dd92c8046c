"""A first installation, and what it leaves alone."""

from fleet import RELEASE, SMALL, benchmark, exits, merged, pool, pools
from steps import expect, step

RUN = benchmark("first", ["org/a"], 1)


def secrets(fleet):
    return {each["metadata"]["name"]: each["data"] for each in fleet.list("secrets") if each["type"] != "helm.sh/release.v1"}


@step
def no_values(fleet):
    """Without values a coordinator and a Redis are ready, nothing was started twice, and no pod failed."""
    # These only say that the machine has little CPU.
    fleet.install(SMALL)
    expect(fleet.ready("coordinator") and fleet.ready("redis"), fleet.picture())
    expect(not fleet.restarts(), "; ".join(fleet.restarts()))
    return f"{len(fleet.ready('coordinator'))} coordinator, {len(fleet.ready('redis'))} Redis, no restart"


@step
def helm_test(fleet):
    """`helm test` passes, and what NOTES.txt prints works as it is printed."""
    fleet.install(pools(pool("a")))
    said = fleet.test()
    notes = fleet.helm.status(RELEASE)
    text = notes.get("notes") or notes.get("info", {}).get("notes") or notes.get("release", {}).get("info", {}).get("notes") or ""
    commands = [line.strip() for line in text.splitlines() if line.startswith("  ")]
    expect(any("kgfleet status" in line for line in commands), f"no commands in the notes: {notes.keys()}")
    script = "\n".join(["set -e", f"cd {fleet.folder}", *(line + (" &" if "port-forward" in line else "") for line in commands if "helm test" not in line)])
    script = script.replace("\nkgfleet status", "\nfor i in 1 2 3 4 5 6 7 8 9; do sleep 1; kgfleet status") + " && break; done; code=$?; kill %1; exit $code"
    seen = fleet.shell(script)
    expect(seen.returncode == 0, f"as printed in the notes: {seen.stdout}{seen.stderr}")
    return f"passed: {str(said.get('logs', '')).strip()[:60]!r}; the notes' commands ended with 0"


@step
def second_install(fleet):
    """Another upgrade, and two renders, leave every Secret as it was."""
    fleet.install(pools(pool("a")))
    before = secrets(fleet)
    fleet.upgrade({"commonLabels": {"again": "yes"}})
    expect(secrets(fleet) == before, f"other Secrets: {before.keys()} and {secrets(fleet).keys()}")
    renders = [fleet.rendered(fleet.values) for _ in range(2)]
    expect(renders[0] == renders[1], "two renders of the same values differ")
    return f"{len(before)} Secrets unchanged: {', '.join(sorted(before))}"


@step
def only_rendered(fleet):
    """Objects that are only rendered and applied, hooks first, as Argo CD does, make a fleet that works; applied again they change no Secret."""
    values = pools(pool("a"), run={"config": RUN, "format": "toml"})
    before = None
    for _ in range(2):
        hooks, others = [], []
        for each in fleet.rendered(values):
            phase = each["metadata"].get("annotations", {}).get("helm.sh/hook", "")
            if phase.startswith("pre-install"):
                hooks.append(each)
            elif not phase:
                others.append(each)
        hooks.sort(key=lambda each: int(each["metadata"]["annotations"].get("helm.sh/hook-weight", 0)))
        for each in hooks:
            if each["kind"] == "Job":
                fleet.kubectl("delete", "job", each["metadata"]["name"], "--ignore-not-found", "--wait")
            fleet.apply(each)
        job = next(each["metadata"]["name"] for each in hooks if each["kind"] == "Job")
        fleet.until(f"{job} is complete", lambda: (fleet.get("jobs", job) or {}).get("status", {}).get("succeeded"), 120)
        if before is not None:
            expect(secrets(fleet) == before, "Secrets were changed")
        before = secrets(fleet)
        for each in others:
            fleet.apply(each)
    fleet.until("a coordinator is ready", lambda: fleet.ready("coordinator"), 120)
    fleet.until("a conductor is ready", lambda: fleet.ready("conductor"), 120)
    view = fleet.until_finished(300)
    return f"{view['scored']} of {view['planned']} dialogues scored, {len(before)} Secrets made once"


@step
def bad_configuration(fleet):
    """A configuration that cannot be used is submitted once, its Job is failed, and its pod says why."""
    fleet.install(merged(SMALL, {"run": {"config": "name = 'x'\niterations = 1\nfrobnicate = 1\n", "format": "toml"}}), wait=None)

    def failed():
        jobs = fleet.list("jobs", **{"app.kubernetes.io/component": "command"})
        return [job for job in jobs if any(each["type"] == "Failed" for each in job["status"].get("conditions", []))]

    job = fleet.until("the submitting Job is failed", failed, 180)[0]
    pods = fleet.pods("command")
    expect(len(pods) == 1, fleet.picture())
    code, message = exits(pods[0])["submit"]
    expect(code == 2 and "frobnicate" in message, f"exit code {code}: {message}")
    return f"{job['metadata']['name']} failed after one pod, exit code 2: {message[-90:]!r}"


@step
def submitted_at_once(fleet):
    """A run that is submitted with the installation is submitted by one pod, and every container was started once."""
    fleet.install(pools(pool("a"), run={"config": RUN, "format": "toml"}))
    view = fleet.until_finished(240)
    pods = fleet.pods("command")
    expect(len(pods) == 1 and not fleet.restarts(), "; ".join(fleet.restarts()) or fleet.picture())
    return f"{view['scored']} of {view['planned']} dialogues scored, one submitting pod, no restart"
