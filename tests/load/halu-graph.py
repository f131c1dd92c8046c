#!/usr/bin/env python3
"""Draws 10 x 150 questions from graphs of Wikidata's shape: how long it takes, and how much memory, with the bounds beside.

    tests/load/halu-graph.py [--entities 100000 1000000] [--endpoint 2000] [--kgfleet target/release/kgfleet]

A graph is written by the example `wikidata-graph`, compressed, and drawn from twice: the first time it is sorted. The graph of
--endpoint is drawn from as a document and behind an endpoint that refuses every seventh request, and the questions are compared.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Seconds for sorting a million entities and drawing from them, and megabytes of memory.
SECONDS_MAX = 600
MEGABYTES_MAX = 1024


def example(name, features, *arguments, **more):
    command = ["cargo", "run", "-q", "--release", "-p", "harness", "--features", features, "--example", name, "--"]
    return subprocess.Popen(command + list(arguments), cwd=ROOT, stdout=subprocess.PIPE, **more)


def write(path, entities):
    with example("wikidata-graph", "invented-graph", str(entities), "1", "statistics") as made:
        with gzip.open(path, "wb", compresslevel=1) if path.endswith(".gz") else open(path, "wb") as out:
            while piece := made.stdout.read(1 << 20):
                out.write(piece)
    assert made.returncode == 0


def draw(kgfleet, folder, graph, cache="cache"):
    """Seconds, megabytes, the number of entities, and some of the questions."""
    pack = os.path.join(folder, "drawn.kgpack")
    command = [kgfleet, "halu", "generate", "--kg", graph, "--mapping", "wikidata", "--source", "a graph"]
    command += ["--cache", os.path.join(folder, cache), "--out", pack, "--json"]
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    told = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - begin
    if status:
        sys.exit(f"{graph}: kgfleet ended with {status}")
    questions = []
    for case in (f"KGHalu-{task:02}/q{case:03}" for task in (1, 10) for case in (1, 75, 150)):
        shown = subprocess.run([kgfleet, "pack", "show", pack, case], check=True, capture_output=True, text=True)
        # The parameters name the document.
        questions += [line for line in shown.stdout.splitlines() if not line.startswith("parameters")]
    return seconds, usage.ru_maxrss / 1024, json.loads(told)["entities"], questions


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--endpoint", type=int, default=2_000)
    parser.add_argument("--kgfleet", default=os.path.join(ROOT, "target/release/kgfleet"))
    arguments = parser.parse_args()
    fine = True

    def row(name, measured):
        nonlocal fine
        seconds, megabytes, entities, _ = measured
        is_fine = seconds <= SECONDS_MAX and megabytes <= MEGABYTES_MAX
        fine &= is_fine
        word = "ok" if is_fine else "TOO MUCH"
        print(
            f"{name:40} {seconds:8.1f} s (at most {SECONDS_MAX}) {megabytes:8.0f} MB (at most {MEGABYTES_MAX})"
            f" {entities:6} entities {word}",
            flush=True,
        )

    with tempfile.TemporaryDirectory() as folder:
        for entities in arguments.entities:
            graph = os.path.join(folder, f"{entities}.nt.gz")
            write(graph, entities)
            row(f"{entities} entities, sorted and drawn", draw(arguments.kgfleet, folder, graph))
            row(f"{entities} entities, drawn again", draw(arguments.kgfleet, folder, graph))
            os.remove(graph)
        if arguments.endpoint:
            graph = os.path.join(folder, "endpoint.nt")
            write(graph, arguments.endpoint)
            document = draw(arguments.kgfleet, folder, graph)
            row(f"{arguments.endpoint} entities, a document", document)
            server = example("sparql-endpoint", "sparql-endpoint", graph, "7", text=True)
            try:
                endpoint = draw(arguments.kgfleet, folder, server.stdout.readline().strip())
                row(f"{arguments.endpoint} entities, an endpoint", endpoint)
                if endpoint[3] != document[3]:
                    sys.exit("the endpoint and the document draw different questions")
            finally:
                server.kill()
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
