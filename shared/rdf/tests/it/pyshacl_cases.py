"""Writes random shapes and graphs with what pySHACL finds in them: `pyshacl_cases.py COUNT > pyshacl.jsonl`.

Each line has `shapes` and `data` in Turtle without their prefixes, and `violating`, the focus nodes with a result. Needs pySHACL 0.40. The same count
gives the same cases.
"""

import json
import random
import sys

from pyshacl import validate
from rdflib import Graph, Namespace

SH = Namespace("http://www.w3.org/ns/shacl#")
PREFIXES = (
    "@prefix : <http://e/> . @prefix sh: <http://www.w3.org/ns/shacl#> . "
    "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
)
NODES = [":a", ":b", ":c", ":d"]
PREDICATES = [":p", ":q", ":r"]
CLASSES = [":K", ":L"]
VALUES = NODES + [
    "1", "2", "2.0", "3", "-1", "1.5", "4e0", "'x'", "'xyz'", "'abc'", "'x'@en", "'y'@en", "'x'@de-AT", "true",
    "'2031-05-02'^^xsd:date", "'in May'^^xsd:date", "'300'^^xsd:byte", "'7'^^xsd:byte",
]
COMPARABLE = ["1", "2", "2.0", "3", "-1", "1.5", "4e0"]


def value(draw):
    return draw.choice(VALUES)


def path(draw, depth=0):
    kind = draw.randrange(9) if depth < 2 else 0
    inner = lambda: path(draw, depth + 1)
    if kind == 1:
        # pySHACL follows the inverse of a sequence in the wrong order.
        return f"[ sh:inversePath {draw.choice(PREDICATES)} ]"
    if kind == 2:
        return f"({inner()} {inner()})"
    if kind == 3:
        return f"[ sh:alternativePath ({inner()} {inner()}) ]"
    if kind == 4:
        return f"[ sh:{draw.choice(['zeroOrMorePath', 'oneOrMorePath', 'zeroOrOnePath'])} {inner()} ]"
    return draw.choice(PREDICATES)


def of_values(draw, depth):
    number = lambda: draw.choice(["0", "1", "2", "2.5", "3"])
    simple = [
        lambda: f"sh:class {draw.choice(CLASSES)}",
        lambda: f"sh:datatype xsd:{draw.choice(['integer', 'decimal', 'string', 'date', 'byte', 'boolean'])}",
        lambda: f"sh:nodeKind sh:{draw.choice(['IRI', 'Literal', 'BlankNodeOrIRI', 'IRIOrLiteral', 'BlankNodeOrLiteral'])}",
        lambda: f"sh:{draw.choice(['min', 'max'])}{draw.choice(['In', 'Ex'])}clusive {number()}",
        lambda: f"sh:{draw.choice(['min', 'max'])}Length {draw.randrange(4)}",
        lambda: f"sh:pattern '{draw.choice(['^a', 'x', 'b', '^.$', '[0-9]'])}'",
        lambda: "sh:languageIn ('en' 'de')",
        lambda: f"sh:in ({' '.join(draw.sample(VALUES, draw.randrange(1, 6)))})",
        lambda: f"sh:hasValue {value(draw)}",
        lambda: f"sh:{draw.choice(['equals', 'disjoint'])} {draw.choice(PREDICATES)}",
    ]
    if depth < 2:
        shapes = lambda: " ".join(f"[ {of_values(draw, depth + 1)} ]" for _ in range(draw.randrange(1, 4)))
        simple += [
            lambda: f"sh:not [ {of_values(draw, depth + 1)} ]",
            lambda: f"sh:node [ {of_values(draw, depth + 1)} ]",
            lambda: f"sh:{draw.choice(['and', 'or', 'xone'])} ({shapes()})",
            lambda: f"sh:property [ {of_property(draw, depth + 1)} ]",
        ]
    return draw.choice(simple)()


def of_property(draw, depth):
    own = [
        lambda: f"sh:minCount {draw.randrange(3)}",
        lambda: f"sh:maxCount {draw.randrange(3)}",
        lambda: "sh:uniqueLang true",
        lambda: f"sh:{draw.choice(['lessThan', 'lessThanOrEquals'])} {draw.choice(PREDICATES)}",
        lambda: f"sh:qualifiedValueShape [ {of_values(draw, depth + 1)} ] ; sh:qualified{draw.choice(['Min', 'Max'])}Count 1",
        lambda: of_values(draw, depth),
    ]
    chosen = draw.sample(own, draw.randrange(1, 3))
    return f"sh:path {path(draw)} ; " + " ; ".join(one() for one in chosen)


def target(draw):
    return draw.choice([
        f"sh:targetClass {draw.choice(CLASSES)}",
        f"sh:targetNode {', '.join(draw.sample(NODES, 2))}",
        f"sh:targetSubjectsOf {draw.choice(PREDICATES)}",
        f"sh:targetObjectsOf {draw.choice(PREDICATES)}",
    ])


def case(draw):
    shapes = "".join(
        f":S{number} a sh:NodeShape ; {target(draw)} ; "
        + (f"sh:property [ {of_property(draw, 0)} ]" if draw.random() < 0.7 else of_values(draw, 0))
        + (" ; sh:closed true ; sh:ignoredProperties (:q)" if draw.random() < 0.1 else "")
        + " .\n"
        for number in range(draw.randrange(1, 3))
    )
    # rdflib orders values that SPARQL cannot compare, such as dates and numbers, so pySHACL accepts what SHACL does not.
    compares = "clusive" in shapes or "lessThan" in shapes
    objects = COMPARABLE if compares else VALUES
    data = "".join(
        f"{draw.choice(NODES)} {draw.choice(PREDICATES)} {draw.choice(objects)} .\n" for _ in range(draw.randrange(3, 12))
    )
    data += "".join(f"{draw.choice(NODES)} a {draw.choice(CLASSES)} .\n" for _ in range(draw.randrange(0, 4)))
    if draw.random() < 0.3:
        data += ":K rdfs:subClassOf :L .\n"
    return shapes, data


def main():
    draw, written = random.Random(1), 0
    while written < int(sys.argv[1]):
        shapes, data = case(draw)
        shapes_graph, data_graph = Graph().parse(data=PREFIXES + shapes), Graph().parse(data=PREFIXES + data)
        try:
            conforms, report, _ = validate(data_graph, shacl_graph=shapes_graph, inference="none")
        except Exception:  # What pySHACL refuses to validate says nothing about others.
            continue
        # Results within `sh:detail` are none of the report.
        nodes = {report.value(result, SH.focusNode).n3() for result in report.objects(None, SH.result)}
        print(json.dumps({"shapes": shapes, "data": data, "conforms": conforms, "violating": sorted(nodes)}))
        written += 1


main()
