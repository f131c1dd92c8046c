"""Tries the chart on a Kubernetes of this machine's own, step by step, and says of each what was expected and what was seen.

    try.py                 all steps
    try.py STEP...         these
    try.py --list          what there is
    try.py --keep STEP...  leaves the cluster, and what the last step installed, for people to look at; `cluster.py down` ends it
    try.py --again STEP... uses the cluster that is there
"""

import shutil
import subprocess
import sys
import time
import traceback

import helm_python

import image
from cluster import Cluster
from fleet import GPU, KGFLEET, Failed, Fleet
from steps import STEPS
from steps import objects

# GPUs that a node is said to have.
GPUS = 8


def images(cluster):
    """The fleet's program without its debug information, a server that simulates, and Redis, under the names that the chart gives them."""
    binary = cluster.folder / "kgfleet"
    subprocess.run(["strip", "--strip-all", "-o", binary, KGFLEET], check=True)
    program = {"/usr/local/bin/kgfleet": binary}
    defaults = helm_python.Chart.load(str(objects.CHART)).values
    served = defaults["servingEngineSpec"]["modelDefaults"]
    redis = defaults["redis"]["image"]
    made = {
        "kgfleet": ([f"docker.io/library/kgfleet:{tag}" for tag in (version(), "next")], program, []),
        "vllm": ([f"{served['repository']}:{served['tag']}"], program, ["vllm", "hf"]),
        "redis": ([f"{redis['repository']}:{redis['tag']}"], {"/usr/local/bin/redis-server": shutil.which("redis-server")}, []),
    }
    for name, (names, programs, scripts) in made.items():
        archive = cluster.folder / f"{name}.tar"
        image.archive(names, programs, archive, scripts=scripts)
        for node in cluster.nodes():
            node.take(archive)
        archive.unlink()


def version():
    return helm_python.Chart.load(str(objects.CHART)).metadata["appVersion"]


def try_step(cluster, name, keep):
    function = STEPS[name]
    fleet, begun = Fleet(cluster, f"try-{name}", labels=getattr(function, "labels", None)), time.monotonic()
    print(f"\n{name}\n  expected  {function.__doc__.strip()}", flush=True)
    try:
        seen, right = function(fleet), True
    except (Failed, helm_python.HelmError, OSError, subprocess.SubprocessError) as error:
        seen, right = f"{error}\n{fleet.picture()}", False
    except Exception:  # noqa: BLE001 one step's mistake is not the end of the others
        seen, right = traceback.format_exc(), False
    took = time.monotonic() - begun
    print(f"  {'seen' if right else 'FAILED'}      {seen} ({took:.0f} s)", flush=True)
    if not keep:
        fleet.remove()
    return right


def main():
    options = {word for word in sys.argv[1:] if word.startswith("--")}
    names = [word for word in sys.argv[1:] if not word.startswith("--")] or list(STEPS)
    unknown = [name for name in names if name not in STEPS]
    if unknown or not options <= {"--list", "--keep", "--again"}:
        print(f"unknown: {unknown or options}\n\n{__doc__.strip()}", file=sys.stderr)
        return 2
    if "--list" in options:
        for name in names:
            print(f"{name}: {STEPS[name].__doc__.strip()}")
        return 0
    cluster, begun = Cluster(), time.monotonic()
    results = {}
    try:
        if "--again" not in options:
            cluster.up(2)
            for node in cluster.nodes():
                node.promise({GPU: str(GPUS)})
            images(cluster)
            print(f"a cluster of {len(cluster.nodes())} nodes is up after {time.monotonic() - begun:.0f} s", flush=True)
        for name in names:
            results[name] = try_step(cluster, name, "--keep" in options and name == names[-1])
    finally:
        if "--keep" not in options and "--again" not in options:
            cluster.down()
    failed = [name for name, right in results.items() if not right]
    print(f"\n{len(results) - len(failed)} of {len(results)} steps as expected" + (f"; FAILED: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
