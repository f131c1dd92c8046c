"""Compares the answers of the task OwlReading with what HermiT and Pellet infer: `authoring_gold.py TASK_FILE`.

The task file is the entry `task-file.toml` of the pack `authoring`. Needs rdflib, owlready2 0.47 (which brings both reasoners) and
Java 17.
"""

import sys
import tempfile
import tomllib

import owlready2
from rdflib import Graph

with open(sys.argv[1], "rb") as file:
    tasks = tomllib.load(file)
prefix = tasks["prefixes"][""]
OWL = "@prefix owl: <http://www.w3.org/2002/07/owl#> . "
HEAD = f"@prefix : <{prefix}> . {OWL}@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
wrong = 0
for task in tasks["task"]:
    for case in task.get("case", []):
        if "ontology" not in case:
            continue
        graph = Graph().parse(data=HEAD + case["ontology"])
        graph.parse(data=f"{OWL}<{prefix[:-1]}> a owl:Ontology .")
        found = {}
        for name in ["hermit", "pellet"]:
            world = owlready2.World()
            with tempfile.NamedTemporaryFile(suffix=".rdf") as written:
                graph.serialize(written.name, format="xml")
                world.get_ontology("file://" + written.name).load()
            reason = owlready2.sync_reasoner_hermit if name == "hermit" else owlready2.sync_reasoner_pellet
            with next(iter(world.ontologies.values())):
                reason(world, debug=0)
            asked = world[prefix + case["asked"][1:]]
            found[name] = sorted(":" + one.name for one in asked.instances(world=world))
        right = all(members == sorted(case["members"]) for members in found.values())
        wrong += not right
        print(case["id"], "agrees" if right else f"differs: file {case['members']}, {found}")
sys.exit(wrong > 0)
