"""More nodes than this machine can be: kwok pretends them, and the workers on them are played."""

import subprocess
import time
import tomllib

import yaml

from cluster import ROOT
from fleet import GPUS, KGFLEET, SMALL, TASKS, Failed, benchmark, merged
from pretended import PLACED, PlayedKubelets, nodes
from steps import expect, on_own_nodes
from steps.working import all_complete

NODES = 8
# Seconds that may pass without a dialogue that ends. The run takes a few minutes on two cores that have nothing else to do.
STILL_MAX = 300
# Seconds between looks at the run, each of which starts two programs.
LOOK = 4


def launched(fleet, config, gpus):
    """The values that `kgfleet launch` writes for a configuration, with its pools on nodes that are pretended."""
    benchmark_file, values_file = fleet.folder / "run.toml", fleet.folder / "values.yaml"
    benchmark_file.write_text(config)
    command = [KGFLEET, "launch", benchmark_file, "--gpus", gpus, "--values", values_file]
    said = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, check=False)
    if said.returncode:
        raise Failed(f"kgfleet launch ended with {said.returncode}: {said.stderr}")
    # Servers ask for what they would need. Only what runs on this machine's own nodes is made small.
    small = {key: value for key, value in SMALL.items() if key != "servingEngineSpec"}
    mine = {
        # Two dozen workers on two cores may be silent for longer than the few seconds of other steps.
        "coordinator": {"leaseSeconds": 30},
        "servingEngineSpec": {"modelDefaults": PLACED},
        "run": {"config": config, "format": "toml"},
    }
    return merged(small, yaml.safe_load(values_file.read_text()), mine)


def worked_off(fleet, kubelets):
    """Waits until the run is finished and its servers are gone; the seconds until it was finished."""

    def look():
        kubelets.check()
        time.sleep(LOOK)

    begun = time.monotonic()
    try:
        fleet.until_finished(STILL_MAX, look=look)
        took = time.monotonic() - begun
        fleet.until("no server is left", lambda: not fleet.servers(), 120)
    except Failed as error:
        said = f"workers ended with {kubelets.ends}, the API refused last: {kubelets.refused}, logs are in {kubelets.folder}"
        raise Failed(f"{error}\n{said}") from None
    kubelets.check()
    return took


@on_own_nodes
def thirty_one_pools_on_eight_nodes(fleet):
    """31 pools end on eight pretended nodes without a hand, within their GPUs; servers over two nodes get these in turn."""
    models = tomllib.loads((ROOT / "deploy/launch/models.toml").read_text())["models"]
    gpus, spanning = NODES * GPUS, [name for name, entry in models.items() if entry["gpus"] > GPUS]
    expect(len(models) == 31 and spanning, f"{len(models)} models, {len(spanning)} of them over several nodes")
    values = launched(fleet, benchmark("night", list(models), 1), gpus)
    pools = values["servingEngineSpec"]["modelSpec"]
    expect(len(pools) == len(models), f"kgfleet launch makes {len(pools)} pools of {len(models)} models")
    with nodes(fleet.cluster, NODES) as names, PlayedKubelets(fleet, list(models)) as kubelets:
        fleet.install(values)
        took = worked_off(fleet, kubelets)
        count, view, rows = all_complete(fleet), fleet.status(), fleet.pools()
    seen = kubelets.placements
    expect(seen.most_of_a_node <= GPUS, f"{seen.most_of_a_node} GPUs of a node with {GPUS} were in use at once")
    # The limit counts servers that wait for nodes, too.
    expect(seen.most <= seen.most_asked <= gpus, f"{seen.most_asked} GPUs were asked for at once, and the limit is {gpus}")
    expect(seen.nodes <= set(names), f"servers were on {', '.join(sorted(seen.nodes))}")
    expect(not seen.side_by_side, f"waited for their nodes side by side: {'; '.join(sorted(seen.side_by_side))}")
    expect(len(seen.whole) >= len(spanning), f"only {', '.join(sorted(seen.whole))} had all of their nodes")
    planned = len(models) * len(TASKS)
    done = f"{view['scored']} of {planned} scored"
    expect(view["scored"] == view["planned"] == planned and not view["failed"], f"{done}, {view['failed']} failed")
    trouble = [view.get("trouble"), *(f"{each['model']}: {each['blocked']}" for each in view["models"] if each.get("blocked"))]
    expect(not any(trouble), f"the run is finished, and has trouble: {trouble}")
    failed = {name: row.get("last_failure") for name, row in rows.items() if row["failures"] or row["is_given_up"]}
    expect(not failed, f"pools that failed: {failed}")
    # Each Job had one worker, and it ended by itself.
    wrong = {name: code for name, code in kubelets.ends.items() if code}
    expect(len(kubelets.ends) == count and not wrong, f"{len(kubelets.ends)} workers of {count} Jobs, not with 0: {wrong}")
    at_once = f"at most {seen.most} of {gpus} GPUs at once, on {len(seen.nodes)} nodes"
    return f"{len(pools)} pools, {count} Jobs, {len(seen.whole)} of them over two nodes: {done} in {took:.0f} s, {at_once}"
