"""Tries the chart on a Kubernetes of this machine's own, step by step, and says of each what was expected and what was seen.

    try.py                 all steps
    try.py STEP...         these
    try.py --list          what there is
    try.py --keep STEP...  leaves the cluster, and what the last step installed, for people to look at; `cluster.py down` ends it
    try.py --again STEP... uses the cluster that is there
    try.py --images DIR    only writes the images, for a cluster of yours
    try.py --kubeconfig=FILE STEP...
                           uses a cluster of yours, which has the images and a resource nvidia.com/gpu; without steps, all that
                           do nothing to its nodes
"""

import contextlib
import pathlib
import shutil
import subprocess
import sys
import time
import traceback

import helm_python

import image
from cluster import Cluster
from fleet import CHART, GPU, GPUS, KGFLEET, KUBECTL, Failed, Fleet
from foreign import foreign
from steps import STEPS


def images(folder):
    """The fleet's program without its debug information, a server that simulates, and Redis, under the names that the chart gives them; their archives."""
    binary = folder / "kgfleet"
    subprocess.run(["strip", "--strip-all", "-o", binary, KGFLEET], check=True)
    program = {"/usr/local/bin/kgfleet": binary}
    defaults = helm_python.Chart.load(str(CHART)).values
    served = defaults["servingEngineSpec"]["modelDefaults"]
    redis = defaults["redis"]["image"]
    made = {
        "kgfleet": ([f"docker.io/library/kgfleet:{tag}" for tag in (version(), "next")], program, []),
        "vllm": ([f"{served['repository']}:{served['tag']}"], program, ["vllm", "hf"]),
        "redis": ([f"{redis['repository']}:{redis['tag']}"], {"/usr/local/bin/redis-server": shutil.which("redis-server")}, []),
    }
    archives = []
    for name, (names, programs, scripts) in made.items():
        archives.append(folder / f"{name}.tar")
        image.archive(names, programs, archives[-1], scripts=scripts)
    binary.unlink()
    return archives


def version():
    return helm_python.Chart.load(str(CHART)).metadata["appVersion"]


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


@contextlib.contextmanager
def own(keep, again):
    """The cluster of this machine, made for this try unless one is there."""
    cluster, begun = Cluster(), time.monotonic()
    try:
        if not again:
            cluster.up(2)
            archives = images(cluster.folder)
            for node in cluster.nodes():
                node.promise({GPU: str(GPUS)})
                for archive in archives:
                    node.take(archive)
            print(f"a cluster of {len(cluster.nodes())} nodes is up after {time.monotonic() - begun:.0f} s", flush=True)
        yield cluster
    finally:
        if not keep and not again:
            cluster.down()


def main():
    options = {word.partition("=")[0]: word.partition("=")[2] for word in sys.argv[1:] if word.startswith("--")}
    names = [word for word in sys.argv[1:] if not word.startswith("--")]
    if not set(options) <= {"--list", "--keep", "--again", "--images", "--kubeconfig"}:
        print(f"unknown: {' '.join(options)}\n\n{__doc__.strip()}", file=sys.stderr)
        return 2
    if "--images" in options:
        folder = pathlib.Path(names[0])
        folder.mkdir(parents=True, exist_ok=True)
        print("\n".join(str(archive) for archive in images(folder)))
        return 0
    kubeconfig = options.get("--kubeconfig")
    names = names or [name for name, function in STEPS.items() if not (kubeconfig and hasattr(function, "on_own_nodes"))]
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        print(f"no step: {' '.join(unknown)}; --list prints them", file=sys.stderr)
        return 2
    if "--list" in options:
        for name in names:
            print(f"{name}: {STEPS[name].__doc__.strip()}")
        return 0
    keep = "--keep" in options
    with foreign(kubeconfig, KUBECTL) if kubeconfig else own(keep, "--again" in options) as cluster:
        results = {name: try_step(cluster, name, keep and name == names[-1]) for name in names}
    failed = [name for name, right in results.items() if not right]
    print(f"\n{len(results) - len(failed)} of {len(results)} steps as expected" + (f"; FAILED: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
