#!/usr/bin/env python3
"""Invented queries and documents, and what rdflib makes of them.

    generate.py freeze FOLDER              write queries.jsonl.zst and documents.jsonl.zst: what the tests read
    generate.py run COUNT SEED FILE.zst     one large set of queries, for a run by hand
    generate.py again FILE.zst              ask again, in another order; prints the seeds whose answer stays

Needs rdflib as pinned in requirements.txt. A query whose answer depends on the order in which rdflib happens to look
at triples has no answer to compare with: `freeze` asks twice, with other hashes and other orders, and drops what differs.
All graphs and names are invented here.
"""

import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import warnings

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")

E = "http://example.org/fair/"
PREFIXES = f"""@prefix : <{E}> .
@prefix v: <http://example.org/vocab#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""

# A fair with stalls, wares and keepers; a small weather station; a library.
GRAPHS = {
    "fair": PREFIXES + """
:ada a v:Keeper ; v:name 'Ada' ; rdfs:label 'Ada'@en, 'Adele'@de ; v:age 41 ; v:knows :ben, :cleo ; v:born '1983-04-05'^^xsd:date .
:ben a v:Keeper ; v:name 'Ben' ; rdfs:label 'Ben'@en ; v:age 35 ; v:knows :cleo ; v:active true .
:cleo a v:Keeper, v:Guest ; v:name 'Cleo' ; v:age 29 ; v:knows :ada ; v:active false ; v:nick 'C.', 'Cle' .
:dov a v:Guest ; v:name 'Dov' ; v:age 35 .
:s1 a v:Stall ; v:keeper :ada ; v:area 12.5 ; v:sells :pear, :plum ; v:rank 1 .
:s2 a v:Stall ; v:keeper :ben ; v:area 8.0 ; v:sells :plum ; v:rank 2 ; v:open '2024-06-01T09:30:00'^^xsd:dateTime .
:s3 a v:Stall ; v:keeper :cleo ; v:area 20.25 ; v:rank 3 ; v:open '2023-06-01T10:00:00Z'^^xsd:dateTime .
:pear v:name 'Pear' ; v:price 1.5e0 ; v:stock 20 ; rdfs:label 'pear'@en, 'Birne'@de .
:plum v:name 'Plum' ; v:price 2.25e0 ; v:stock 0 ; v:partOf :fruit .
:fruit v:name 'Fruit' ; v:partOf :goods . :goods v:name 'Goods' .
[] a v:Note ; v:name 'Closed on Monday' ; v:about :s1 .
""",
    "weather": PREFIXES + """
:st1 v:name "North Ridge" ; v:height 1200 ; v:near :st2 ; v:code "N-01" .
:st2 v:name "South Lake" ; v:height 450 ; v:near :st1, :st3 ; v:code "S-02" .
:st3 v:name "East (old)" ; v:height 450 ; v:code "e-03" ; v:closed true .
:m1 v:at :st1 ; v:temp -3 ; v:wind 12.5 ; v:day "2024-01-01"^^xsd:date .
:m2 v:at :st1 ; v:temp 4 ; v:wind 3.0 ; v:day "2024-01-02"^^xsd:date .
:m3 v:at :st2 ; v:temp 7 ; v:wind 8.25 ; v:day "2024-01-01"^^xsd:date ; v:note "calm", "fog"@en .
:m4 v:at :st2 ; v:temp 7 ; v:day "2023-12-31"^^xsd:date .
:m5 v:at :st3 ; v:temp 0 ; v:wind 0.5 .
""",
    "library": PREFIXES + """
:b1 v:title 'Tides' ; v:author :ann, :bo ; v:pages 320 ; v:year 1999 ; v:tag 'sea', 'science' .
:b2 v:title 'Dunes' ; v:author :bo ; v:pages 180 ; v:year 2005 ; v:tag 'sand' ; v:cites :b1 .
:b3 v:title 'Reefs' ; v:author :cy ; v:pages 250 ; v:year 2005 ; v:cites :b1, :b2 ; v:price 12.00 .
:b4 v:title 'Moors' ; v:pages 90 ; v:year 1987 ; v:cites :b3 ; v:price 3.5 .
:ann v:name 'Ann' ; v:from :oslo . :bo v:name 'Bo' ; v:from :riga . :cy v:name 'Cy' ; v:from :oslo ; v:friend :ann .
:oslo v:name 'Oslo' ; v:people 700000 . :riga v:name 'Riga' ; v:people 600000 .
""",
}

# Per graph: kinds of node with their properties, and the kind of value that each of these has.
SHAPES = {
    "fair": {
        "person": {"v:name": "text", "rdfs:label": "tagged", "v:age": "number", "v:knows": "person", "a": "class",
                   "v:active": "flag", "v:nick": "text", "v:born": "date"},
        "stall": {"v:keeper": "person", "v:sells": "ware", "v:area": "number", "v:rank": "number", "v:open": "time", "a": "class"},
        "ware": {"v:name": "text", "rdfs:label": "tagged", "v:price": "number", "v:stock": "number", "v:partOf": "ware"},
    },
    "weather": {
        "station": {"v:name": "text", "v:height": "number", "v:near": "station", "v:code": "text", "v:closed": "flag"},
        "measure": {"v:at": "station", "v:temp": "number", "v:wind": "number", "v:day": "date", "v:note": "tagged"},
    },
    "library": {
        "book": {"v:title": "text", "v:author": "writer", "v:pages": "number", "v:year": "number", "v:tag": "text",
                 "v:cites": "book", "v:price": "number"},
        "writer": {"v:name": "text", "v:from": "town", "v:friend": "writer"},
        "town": {"v:name": "text", "v:people": "number"},
    },
}
NODES = {
    "person": [":ada", ":ben", ":cleo", ":dov"], "stall": [":s1", ":s2", ":s3"], "ware": [":pear", ":plum", ":fruit"],
    "class": ["v:Keeper", "v:Guest", "v:Stall"], "station": [":st1", ":st2", ":st3"], "measure": [":m1", ":m3"],
    "book": [":b1", ":b2", ":b3"], "writer": [":ann", ":bo", ":cy"], "town": [":oslo", ":riga"],
}
TEXTS = ["Ada", "Plum", "e", "o", "North", "sea", "Tides", "B", "an", "N-01"]
NUMBERS = ["0", "1", "2", "35", "7", "450", "2005", "3.0", "12.5", "1e2", "-3", "+4", "100.0"]


class Query:
    """Writes one query. What is chosen depends on the seed alone."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.graph = self.r.choice(sorted(GRAPHS))
        self.shapes = SHAPES[self.graph]
        self.kinds = {}  # what a variable is bound to
        self.count = 0

    def chance(self, share):
        return self.r.random() < share

    def pick(self, choices):
        return self.r.choice(choices)

    def fresh(self, kind):
        self.count += 1
        name = self.pick(["x", "y", "name", "n", "value", "item", "größe", "p_1"]) + str(self.count)
        self.kinds[name] = kind
        return name

    def var(self, name):
        return ("$" if self.chance(0.03) else "?") + name

    def of_kind(self, *kinds):
        found = [name for name, kind in self.kinds.items() if kind in kinds]
        return self.pick(found) if found else None

    def any_var(self):
        if self.kinds and not self.chance(0.05):
            return self.pick(sorted(self.kinds))
        return "unbound"

    # -- terms

    def node(self, kind=None):
        node = self.pick(NODES[kind or self.pick(sorted(self.shapes))])
        if self.chance(0.1) and node.startswith(":"):
            return f"<{E}{node[1:]}>"
        return node

    def literal(self, kind):
        if kind == "number":
            return self.pick(NUMBERS)
        if kind == "flag":
            return self.pick(["true", "false", "True", "TRUE"])
        if kind == "date":
            return '"2024-01-01"^^xsd:date'
        if kind == "time":
            return '"2024-01-01T00:00:00"^^xsd:dateTime'
        text = self.pick(TEXTS)
        form = self.pick(["'{}'", '"{}"', '"""{}"""', "'''{}'''"] + ['"{}"'] * 5)
        suffix = self.pick(["", "", "", "", "@en", "@de"]) if kind == "tagged" else ""
        return form.format(text) + suffix

    # -- patterns

    def subject(self):
        """A subject and its shape."""
        name = self.of_kind(*self.shapes)
        if name and self.chance(0.8):
            return self.var(name), self.kinds[name]
        shape = self.pick(sorted(self.shapes))
        return (self.node(shape) if self.chance(0.12) else self.var(self.fresh(shape))), shape

    def path(self, shape, name):
        if name == "a" or self.chance(0.82):
            return name
        links = [n for n, kind in self.shapes[shape].items() if kind in self.shapes] or ["v:knows"]
        other = self.pick(links)
        return self.pick([
            f"^{other}", f"{other}/{name}", f"({other}|{name})", f"{other}*", f"{other}+", f"{other}?",
            f"({other}|{other})", f"{other}|{name}", f"^{other}/{name}", f"!({other})", f"!(^{other}|{name})",
            f"({other}/{other})*", f"{other}*/{name}", f"({other}|^{other})+", f"!{other}",
        ])

    def triple(self):
        subject, shape = self.subject()
        parts = []
        for _ in range(self.pick([1, 1, 1, 2, 2, 3])):
            names = sorted(self.shapes[shape if not self.chance(0.03) else self.pick(sorted(self.shapes))])
            name = self.pick(names)
            kind = self.shapes[shape].get(name, "text")
            roll = self.r.random()
            if roll < 0.86:
                known = self.of_kind(kind) if kind in self.shapes and self.chance(0.3) else None
                value = self.var(known or self.fresh(kind))
            elif roll < 0.93:
                value = self.node(kind) if kind in NODES else self.literal(kind)
            elif roll < 0.96 or kind not in self.shapes:
                value = "[]"
            else:
                inner = self.pick(sorted(self.shapes[kind]))
                value = f"[ {inner} {self.var(self.fresh(self.shapes[kind][inner]))} ]"
            verb = self.path(shape, name) if not self.chance(0.03) else self.var(self.fresh("predicate"))
            parts.append(f"{verb} {value}")
        return subject + " " + self.pick([" ; ", ";", " ;\n    "]).join(parts) + (" ;" if self.chance(0.04) else "")

    def triples(self):
        return " .\n  ".join(self.triple() for _ in range(self.pick([1, 1, 2, 3]))) + self.pick([" .", " .", ""])

    def group(self, depth=0):
        parts = [self.triples()]
        for _ in range(self.pick([0, 0, 1, 1, 2]) if depth < 2 else self.pick([0, 0, 0, 1])):
            parts.append(self.part(depth))
        if self.chance(0.15):
            parts.append(self.triples())
        elif self.chance(0.1):
            self.r.shuffle(parts)
        return "{\n  " + "\n  ".join(parts) + "\n}"

    def part(self, depth):
        roll = self.r.random()
        if depth > 2 or roll < 0.38:
            return "FILTER" + self.blank() + self.constraint(depth) + self.pick(["", "", " ."])
        if roll < 0.52:
            return "OPTIONAL " + self.group(depth + 1)
        if roll < 0.64:
            return self.bind()
        if roll < 0.73:
            return self.group(depth + 1) + " UNION " + self.group(depth + 1)
        if roll < 0.78:
            return self.group(depth + 1)
        if roll < 0.83:
            return "MINUS " + self.group(depth + 1)
        if roll < 0.91:
            return self.values()
        if roll < 0.98:
            return "{ " + self.select(depth + 1) + " }"
        return "GRAPH ?g " + self.group(depth + 1)

    def bind(self):
        expression = self.expression(self.pick(["text", "number", "any"]), 2)
        if self.chance(0.05):
            expression = self.aggregate()
        target = self.pick(sorted(self.kinds)) if self.kinds and self.chance(0.2) else self.fresh("any")
        return f"BIND({expression}{self.pick([' ', ' ', chr(10)])}AS {self.var(target)})"

    def values(self):
        if self.chance(0.7):
            name = self.of_kind(*self.shapes) or self.fresh(self.pick(sorted(self.shapes)))
            kind = self.kinds[name]
            rows = " ".join(self.node(kind) if not self.chance(0.05) else "UNDEF" for _ in range(self.pick([1, 2, 3])))
            return f"VALUES {self.var(name)} {{ {rows} }}"
        one, two = self.fresh(self.pick(sorted(self.shapes))), self.fresh("text")
        rows = " ".join(f"({self.node()} {self.literal('text')})" for _ in range(self.pick([1, 2])))
        return f"VALUES (?{one} ?{two}) {{ {rows} }}"

    # -- expressions

    def blank(self):
        return self.pick([" ", " ", " ", "", "\n  ", "  # and so\n "])

    def call(self, name, *arguments):
        if self.chance(0.15):
            name = self.pick([name.lower(), name.capitalize()])
        return name + self.pick([""] * 12 + [" "]) + "(" + self.pick([", ", ","]).join(arguments) + ")"

    def constraint(self, depth):
        roll = self.r.random()
        if roll < 0.07:
            return self.pick(["NOT EXISTS ", "EXISTS "]) + "{ " + self.triple() + " }"
        if roll < 0.1:
            return f"({self.aggregate()} > 1)"
        if roll < 0.25:
            return self.test(0)
        return "(" + self.condition(2) + ")"

    def condition(self, depth):
        roll = self.r.random()
        if depth and roll < 0.2:
            return self.condition(depth - 1) + self.pick([" && ", " || ", "&&"]) + self.condition(depth - 1)
        if depth and roll < 0.27:
            return "!" + self.pick(["", " "]) + "(" + self.condition(depth - 1) + ")"
        if roll < 0.45:
            return self.test(depth)
        kind = self.pick(["number", "number", "text", "node", "any"])
        if kind == "node":
            return f"{self.var(self.any_var())} {self.pick(['=', '!='])} {self.pick([self.node(), self.var(self.any_var())])}"
        if self.chance(0.1):
            items = ", ".join(self.literal("number" if kind == "number" else "text") for _ in range(self.pick([0, 1, 2, 3])))
            return f"{self.expression(kind, 1)} {self.pick(['IN', 'NOT IN', 'in'])} ({items})"
        operator = self.pick(["=", "!=", "<", ">", "<=", ">="])
        space = self.pick([" ", " ", ""])
        return f"{self.expression(kind, 1)}{space}{operator}{space}{self.expression(kind, 1)}"

    def test(self, depth):
        text = self.expression("text", 1)
        needle = self.literal("text")
        return self.pick([
            lambda: self.call("CONTAINS", text, needle),
            lambda: self.call("STRSTARTS", text, needle),
            lambda: self.call("STRENDS", text, needle),
            lambda: self.call("REGEX", text, self.pick(["'^A'", "'e'", "'[a-m]'", '"o.*e"', "'A'@en", "'(n|l)'"])),
            lambda: self.call("REGEX", text, needle, self.pick(['"i"', "'gi'", "'i'", "'s'", "''", "'x'"])),
            lambda: self.call("BOUND", self.var(self.any_var())),
            lambda: self.call("isIRI", self.var(self.any_var())),
            lambda: self.call("isLiteral", self.var(self.any_var())),
            lambda: self.call("isNumeric", self.var(self.any_var())),
            lambda: self.call("LANGMATCHES", self.call("LANG", self.var(self.any_var())), self.pick(['"en"', "'*'", "'EN'"])),
            lambda: self.call("sameTerm", self.var(self.any_var()), self.node()),
        ])()

    def expression(self, kind, depth):
        if depth <= 0 or self.chance(0.35):
            if kind == "number":
                name = self.of_kind("number")
                return self.var(name) if name and self.chance(0.75) else self.pick(NUMBERS)
            if kind == "text":
                name = self.of_kind("text", "tagged")
                if name and self.chance(0.8):
                    return self.var(name)
                return self.call("STR", self.var(self.any_var()))
            return self.pick([self.var(self.any_var()), self.literal(self.pick(["text", "number", "flag", "tagged"]))])
        one = lambda kind: self.expression(kind, depth - 1)
        if kind == "number":
            return self.pick([
                lambda: f"{one('number')} {self.pick(['+', '-'])} {one('number')}",
                lambda: f"{one('number')} * {one('number')}",
                lambda: f"({one('number')} / {one('number')})",
                lambda: self.call("STRLEN", one("text")),
                lambda: self.call("ABS", one("number")),
                lambda: self.call("ROUND", one("number")),
                lambda: self.call("CEIL", one("number")),
                lambda: self.call("FLOOR", one("number")),
                lambda: self.call("YEAR", self.var(self.of_kind("date", "time") or self.any_var())),
                lambda: self.call("MONTH", self.var(self.of_kind("date", "time") or self.any_var())),
                lambda: self.call("xsd:integer", one("any")),
                lambda: self.call("xsd:double", one("any")),
                lambda: self.call("xsd:decimal", one("number")),
                lambda: self.call("COALESCE", self.var(self.any_var()), "0"),
                lambda: "-" + self.var(self.of_kind("number") or self.any_var()),
            ])()
        if kind == "text":
            return self.pick([
                lambda: self.call("STR", self.var(self.any_var())),
                lambda: self.call("UCASE", one("text")),
                lambda: self.call("LCASE", one("text")),
                lambda: self.call("CONCAT", one("text"), self.literal("text")),
                lambda: self.call("CONCAT", self.call("STR", self.var(self.any_var())), "' '", one("text")),
                lambda: self.call("SUBSTR", one("text"), self.pick(["1", "2"]), self.pick(["1", "3"])),
                lambda: self.call("SUBSTR", one("text"), "2"),
                lambda: self.call("STRBEFORE", one("text"), self.literal("text")),
                lambda: self.call("STRAFTER", one("text"), self.literal("text")),
                lambda: self.call("REPLACE", one("text"), self.pick(["'a'", "'[aeiou]'", "'(.)$'"]), self.pick(["''", "'-'", "'<$1>'"])),
                lambda: self.call("LANG", self.var(self.any_var())),
                lambda: self.call("COALESCE", self.var(self.any_var()), "'none'"),
                lambda: self.call("xsd:string", one("any")),
                lambda: self.call("ENCODE_FOR_URI", one("text")),
            ])()
        return self.pick([
            lambda: self.call("IF", self.condition(1), one("any"), one("any")),
            lambda: self.call("COALESCE", one("any"), one("any")),
            lambda: self.call("DATATYPE", self.var(self.any_var())),
            lambda: self.call("IRI", self.call("STR", self.var(self.any_var()))),
            lambda: self.call("STRDT", one("text"), "xsd:integer"),
            lambda: self.call("STRLANG", one("text"), '"en"'),
            lambda: self.call("v:unknown", self.var(self.any_var())),
            lambda: self.call("xsd:date", self.var(self.any_var())),
            lambda: self.call("xsd:boolean", one("any")),
            lambda: "(" + self.condition(1) + ")",
            lambda: one("number"),
            lambda: one("text"),
        ])()

    def aggregate(self):
        name = self.pick(["COUNT", "COUNT", "COUNT", "SUM", "AVG", "MIN", "MAX", "GROUP_CONCAT", "SAMPLE"])
        distinct = "DISTINCT " if self.chance(0.3) else ""
        if name == "COUNT" and self.chance(0.3):
            return self.call(name, distinct + "*")
        wants = "number" if name in ("SUM", "AVG") and not self.chance(0.1) else "any"
        name_of = self.of_kind("number") if wants == "number" else self.any_var()
        inner = self.var(name_of or self.any_var())
        if self.chance(0.1):
            inner = self.expression("number" if wants == "number" else "text", 1)
        if name == "GROUP_CONCAT":
            inner += self.pick(["", "; separator=', '", ' ; SEPARATOR = "|"'])
        return self.call(name, distinct + inner)

    # -- the whole

    def select(self, depth=0):
        outer = dict(self.kinds)
        if depth and self.chance(0.4):
            self.kinds = {}
        body = self.group(depth + 1)
        names = sorted(self.kinds) or ["unbound"]
        grouped = self.chance(0.3)
        keys = [self.pick(names)] if grouped and self.chance(0.75) else []
        if keys and self.chance(0.2):
            keys.append(self.pick(names))
        items, made = [], {}
        if grouped:
            items += [self.var(key) for key in keys if not self.chance(0.1)]
            for _ in range(self.pick([1, 1, 2])):
                made_name = self.fresh("any")
                expression = self.aggregate()
                if self.chance(0.15):
                    expression = self.pick([f"{expression} + 1", f"ROUND({expression})", f"STR({expression})", f"IF({expression} > 1, 'many', 'few')"])
                items.append(f"({expression} AS {self.var(made_name)})")
            if self.chance(0.12):
                items.append(self.var(self.pick(names)))
        elif not self.chance(0.15):
            items = [self.var(name) for name in self.r.sample(names, min(len(names), self.pick([1, 1, 2, 3])))]
            if self.chance(0.15):
                items.append(f"({self.expression(self.pick(['number', 'text', 'any']), 2)} AS {self.var(self.fresh('any'))})")
            if self.chance(0.03):
                items.append(items[0])
            if self.chance(0.03):
                name = self.pick(names)
                items = [item for item in items if item != "?" + name] + [f"(STR(?{name}) AS ?{name})"]
        separator = self.pick([" ", " ", "\n  ", "  "])
        text = self.pick(["SELECT", "SELECT", "SELECT", "select", "Select"])
        text += self.pick([" ", " ", " DISTINCT ", " DISTINCT ", " REDUCED "]) + (separator.join(items) or "*")
        text += self.pick(["\nWHERE ", " ", " where", "\nWHERE"]) + body
        if keys:
            text += "\nGROUP BY " + " ".join(
                self.pick([f"?{key}"] * 10 + [f"(STR(?{key}) AS ?k{key})", f"STR(?{key})"]) for key in keys)
        if (grouped and self.chance(0.25)) or self.chance(0.01):
            condition = f"{self.aggregate()} {self.pick(['>', '<', '>=', '='])} {self.pick(['0', '1', '2', '10'])}"
            if self.chance(0.2):
                condition = self.condition(0)
            text += f"\nHAVING{self.blank()}({condition})"
        if self.chance(0.3):
            by = self.pick([f"?{self.pick(names)}", f"DESC(?{self.pick(names)})", f"ASC(?{self.pick(names)})"] * 4
                           + [f"DESC({self.aggregate()})", f"LCASE(STR(?{self.pick(names)}))"])
            text += f"\nORDER BY {by}"
            if self.chance(0.2):
                text += f" ?{self.pick(names)}"
        if self.chance(0.1):
            text += self.pick(["\nLIMIT 1000", "\nLIMIT 1000 OFFSET 0", "\nOFFSET 0", "\nlimit 1", "\nLIMIT 2"])
        if depth:
            projected = {name: kind for name, kind in self.kinds.items() if "?" + name in " ".join(items) or not items}
            self.kinds = {**outer, **projected}
        return text

    def write(self):
        text = self.select()
        if self.chance(0.25):
            text = f"PREFIX : <{E}>\nPREFIX v:<http://example.org/vocab#>\n" + text
        if self.chance(0.04):
            text = "# a question\n" + text
        if self.chance(0.02):
            text = text.replace("v:name", "v:n\\u0061me")
        if self.chance(0.02):
            text = text.replace(" .\n", " . # so\n", 1)
        if self.chance(0.02):
            text = text.replace("WHERE", f"FROM <{E}data> WHERE", 1)
        if self.chance(0.06):
            text = self.spoil(text)
        return text

    def spoil(self, text):
        """A slip of the kind that models make."""
        at = self.r.randrange(len(text))
        return self.pick([
            lambda: text[:at] + text[at + 1:],
            lambda: text + " }",
            lambda: text.replace("}", "", 1),
            lambda: text.replace("?", "", 1),
            lambda: text.replace(" AS ", " as ", 1),
            lambda: text.replace("(", "", 1),
            lambda: text.replace(" .\n", " . .\n", 1),
            lambda: text.replace("v:", "w:", 1),
            lambda: text.replace("FILTER", "FILTER FILTER", 1),
            lambda: text.replace(" ", "\u00a0", 1),
            lambda: text.replace("SELECT ?", "SELECT ??", 1),
            lambda: text.replace("GROUP BY", "GROUPBY", 1),
            lambda: text.replace("'", "\\'", 1),
            lambda: text + "\nLIMIT ten",
            lambda: text.replace("?", "? ", 1),
        ])()


class Document:
    """Writes one document."""

    def __init__(self, seed):
        self.r = random.Random(f"document {seed}")
        self.format = self.r.choice(["turtle", "json-ld", "json-ld", "nt"])

    def pick(self, choices):
        return self.r.choice(choices)

    def chance(self, share):
        return self.r.random() < share

    def write(self):
        text = {"turtle": self.turtle, "json-ld": self.json_ld, "nt": self.n_triples}[self.format]()
        if self.chance(0.25):
            text = self.spoil(text)
        return text

    def spoil(self, text):
        at = self.r.randrange(len(text))
        return self.pick([
            lambda: text[:at] + text[at + 1:],
            lambda: text.replace(" .", "", 1),
            lambda: text.replace('"', "", 1),
            lambda: text.replace(",", "", 1),
            lambda: text.replace("}", "", 1),
            lambda: text.replace("<", "", 1),
            lambda: text.replace(";", ".", 1),
            lambda: text + " }",
            lambda: text.replace('"', "'", 2),
            lambda: text.replace("@prefix", "prefix", 1),
            lambda: text.replace("\\", "\\\\x", 1),
            lambda: text.replace(": ", ":: ", 1),
        ])()

    def iri(self):
        return self.pick([f"<{E}{self.pick('abcdef')}>"] * 3 + [f":{self.pick('abcdef')}", f"v:{self.pick('PQR')}"])

    def value(self, nodes=True):
        text = self.pick(["one", "two words", "größer", "a \\\"quoted\\\" word", "line\\nbreak", "", "\\u00e9t\\u00e9"])
        return self.pick([
            f'"{text}"', f'"{text}"@en', f'"{text}"@de-AT', '"5"^^xsd:integer', '"2.50"^^xsd:decimal',
            '"1.0E3"^^xsd:double', '"true"^^xsd:boolean', '"2024-02-29"^^xsd:date', '"x"^^v:unit',
        ] + ([self.iri(), self.iri(), "_:n1", "_:n2"] if nodes else []))

    def turtle(self):
        lines = [PREFIXES]
        if self.chance(0.2):
            lines = [PREFIXES.replace("@prefix v:", "PREFIX v:").replace("vocab#> .", "vocab#>")]
        if self.chance(0.1):
            lines.append("@base <http://example.org/base2/> .")
        for _ in range(self.r.randint(1, 6)):
            subject = self.pick([self.iri(), self.iri(), "_:n1", "[]", "[ a v:Thing ]"])
            properties = []
            for _ in range(self.r.randint(1, 4)):
                verb = self.pick(["a", "v:p", "v:q", "v:r", "rdfs:label", f"<{E}s>"])
                objects = ", ".join(self.pick([
                    self.value, self.value, lambda: "5", lambda: "-3.5", lambda: "1e3", lambda: "true",
                    lambda: "( 1 2 :c )", lambda: "()", lambda: f"[ v:in {self.value()} ]", lambda: '"""long\ntext"""',
                    lambda: "'single'", lambda: "<relative>",
                ])() for _ in range(self.pick([1, 1, 2])))
                if verb == "a":
                    objects = self.iri()
                properties.append(f"{verb} {objects}")
            lines.append(subject + " " + " ;\n    ".join(properties) + self.pick([" .", " .", " ; .", " . # end"]))
        return "\n".join(lines)

    def n_triples(self):
        def full(term):
            for prefix, namespace in (("xsd:", "http://www.w3.org/2001/XMLSchema#"), ("v:", "http://example.org/vocab#")):
                term = term.replace("^^" + prefix, "^^<" + namespace)
            return term + ">" if "^^<" in term else term
        node = lambda: self.pick([f"<{E}{self.pick('abcdef')}>"] * 3 + ["_:n1", "_:n2"])
        lines = []
        for _ in range(self.r.randint(1, 10)):
            value = full(self.value(nodes=False)) if self.chance(0.6) else node()
            space = self.pick([" ", " ", " ", "\t", "  "])
            lines.append(f"{node()}{space}<http://example.org/vocab#{self.pick('pqr')}>{space}{value} ." + self.pick(["", "", " # end"]))
        return "\n".join(lines) + self.pick(["\n", "", "\n\n"])

    def json_ld(self):
        context = {"v": "http://example.org/vocab#", "name": "v:name", "xsd": "http://www.w3.org/2001/XMLSchema#"}
        for key, value in (
            ("@vocab", "http://example.org/vocab#"), ("@language", "en"), ("@base", E),
            ("knows", {"@id": "v:knows", "@type": "@id"}), ("age", {"@id": "v:age", "@type": "xsd:integer"}),
            ("list", {"@id": "v:list", "@container": "@list"}), ("label", {"@id": "v:label", "@container": "@language"}),
            ("set", {"@id": "v:set", "@container": "@set"}), ("back", {"@reverse": "v:of"}), ("gone", None),
            ("id", "@id"), ("type", "@type"), ("size", {"@id": "v:size", "@type": "xsd:double"}),
        ):
            if self.chance(0.45):
                context[key] = value
        graph = [self.node(2) for _ in range(self.r.randint(1, 4))]
        roll = self.r.random()
        if roll < 0.35:
            document = {"@context": context, "@graph": graph}
        elif roll < 0.45:
            document = {"@context": context, "@graph": graph, "v:about": "all of it"}
        elif roll < 0.53:
            document = {"@context": context, "@id": E + "named", "@graph": graph}
        elif roll < 0.6:
            document = [{"@context": context, "@graph": graph}]
        elif roll < 0.8:
            document = [dict(node, **{"@context": context}) for node in graph]
        else:
            document = dict({"@context": context}, **graph[0])
        text = json.dumps(document, indent=self.pick([None, 1, 2]), ensure_ascii=self.chance(0.5))
        if self.chance(0.06):
            text = text.replace('"@id"', '"@id": "http://example.org/fair/first", "@id"', 1)
        return text

    def node(self, depth):
        node = {}
        if self.chance(0.85):
            node["@id"] = self.pick([E + self.pick("abcdef"), "_:n1", "_:n2", "v:thing", self.pick("ghi"), "#here"])
        if self.chance(0.6):
            node["@type"] = self.pick(["v:Thing", ["v:Thing", "v:Other"], "http://example.org/vocab#Full", "Plain"])
        for _ in range(self.r.randint(0, 4)):
            key = self.pick(["v:p", "v:q", "name", "http://example.org/vocab#r", "plain", "knows", "age", "list", "set", "label", "gone", "size", "back"])
            if key == "label":
                node[key] = self.pick([{"en": "one", "de": ["eins", "ein"]}, "bare"])
            else:
                node[key] = self.member(key, depth)
        return node

    def member(self, key, depth):
        simple = [
            "text", "größer", 5, -2, 2.5, 1.0, 1e30, True, False, None, "", "http://example.org/fair/a",
            {"@value": "x", "@language": "de"}, {"@value": "7", "@type": "xsd:integer"}, {"@value": True},
            {"@value": "x", "@type": "v:unit"}, {"@value": 5}, {"@id": E + "b"}, {"@id": "_:n1"}, {"@value": None},
            {"@value": "y"}, {"@list": [1, "two", {"@id": E + "c"}]}, {"@list": []}, {"@set": ["p", "q"]}, {},
        ]
        if key == "back":
            return {"@id": E + self.pick("abc")}
        if depth and self.chance(0.25):
            return self.node(depth - 1)
        if self.chance(0.2):
            return [self.pick(simple) for _ in range(self.r.randint(0, 3))]
        return self.pick(simple)


# -- what rdflib says


class TooSlow(Exception):
    pass


def alarm(_signal, _frame):
    raise TooSlow


def text_of(term):
    from rdflib.term import BNode, Literal

    if isinstance(term, BNode):
        return "_:b"
    if isinstance(term, Literal):
        return str(term)
    return f"<{term}>"


def graphs(order):
    import rdflib

    loaded = {}
    for name, text in GRAPHS.items():
        parsed = rdflib.Graph()
        parsed.parse(data=text, format="turtle")
        triples = sorted(parsed)
        random.Random(order).shuffle(triples)
        graph = rdflib.Graph()
        for prefix, namespace in parsed.namespaces():
            graph.bind(prefix, namespace, replace=True)
        for triple in triples:
            graph.add(triple)
        loaded[name] = graph
    return loaded


def answer(graph, text):
    """`parse`: whether it parses; `rows` and `values`: its result; `raised` instead if it has none."""
    import pyparsing
    from rdflib.plugins.sparql import parser

    signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 3)
    try:
        try:
            parser.parseQuery(text)
        except (pyparsing.ParseException, ValueError):
            return {"parse": False}
        try:
            result = graph.query(text)
            rows = [row for row in result]
        except TooSlow:
            return None
        except RecursionError:
            return None
        except Exception as error:
            if str(error).startswith("Unknown namespace prefix"):
                return {"parse": False}
            return {"parse": True, "raised": type(error).__name__}
        rows = [row for row in rows if any(cell is not None for cell in row)]
        if len(rows) > 2000:
            return None
        values = sorted({text_of(cell) for row in rows for cell in row if cell is not None})
        return {"parse": True, "rows": len(rows), "values": values}
    except TooSlow:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def triples_of(text, format):
    import rdflib
    from rdflib.term import BNode, Literal

    signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 3)
    try:
        graph = rdflib.Graph()
        graph.parse(data=text, format=format, publicID="http://example.org/base/")
        lines = set()
        for triple in graph:
            parts = []
            for term in triple:
                if isinstance(term, BNode):
                    parts.append("_:b")
                elif isinstance(term, Literal):
                    tail = "@" + term.language.lower() if term.language else "^^" + str(term.datatype or "http://www.w3.org/2001/XMLSchema#string")
                    parts.append(f'"{term}"{tail}')
                else:
                    parts.append(f"<{term}>")
            lines.add(" ".join(parts))
        return {"parse": True, "triples": sorted(lines)}
    except TooSlow:
        return None
    except Exception:
        return {"parse": False}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def worker(order):
    """Answers what comes on standard input, one JSON line each."""
    sys.setrecursionlimit(5000)
    loaded = graphs(order)
    for line in sys.stdin:
        asked = json.loads(line)
        if "query" in asked:
            said = answer(loaded[asked["graph"]], asked["query"])
        else:
            said = triples_of(asked["document"], asked["format"])
        print(json.dumps(said))


def ask(items, order, hash_seed, processes=3):
    """The answers of processes with their own order of triples and their own hashes, beside the items."""
    environment = dict(os.environ, PYTHONHASHSEED=str(hash_seed))
    shards = []
    for part in range(processes):
        share = items[part::processes]
        asked, said = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        asked.writelines(json.dumps(item) + "\n" for item in share)
        asked.seek(0)
        process = subprocess.Popen(
            [sys.executable, __file__, "worker", str(order)], stdin=asked, stdout=said, stderr=subprocess.DEVNULL,
            env=environment)
        shards.append((share, said, process))

    def answers():
        lines = []
        for share, said, process in shards:
            process.wait()
            said.seek(0)
            lines.append(iter(zip(share, map(json.loads, said), strict=True)))
        for index in range(len(items)):
            yield next(lines[index % processes])

    return answers()


def query_items(seeds):
    for seed in seeds:
        query = Query(seed)
        text = query.write()
        yield {"seed": seed, "graph": query.graph, "query": text}


def document_items(seeds):
    for seed in seeds:
        document = Document(seed)
        text = document.write()
        yield {"seed": seed, "format": document.format, "document": text}


def write(path, lines):
    import zstandard

    with open(path, "wb") as raw, zstandard.ZstdCompressor(level=19).stream_writer(raw) as file:
        for line in lines:
            file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())


def read(path):
    import zstandard

    with zstandard.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def frozen(items):
    items = list(items)
    first = ask(items, 1, 1)
    second = ask(items, 2, 2)
    dropped = 0
    for (item, one), (_, two) in zip(first, second):
        if one is None or one != two:
            dropped += 1
            continue
        yield dict(item, **one)
    print(f"{dropped} of {len(items)} dropped: too slow, or depending on an order", file=sys.stderr)


def main():
    mode = sys.argv[1]
    if mode == "worker":
        worker(int(sys.argv[2]))
    elif mode == "freeze":
        folder = sys.argv[2]
        head = [{"graph": name, "turtle": text} for name, text in sorted(GRAPHS.items())]
        write(f"{folder}/queries.jsonl.zst", head + list(frozen(query_items(range(3700)))))
        write(f"{folder}/documents.jsonl.zst", list(frozen(document_items(range(700)))))
    elif mode == "run":
        count, seed = int(sys.argv[2]), int(sys.argv[3])
        head = [{"graph": name, "turtle": text} for name, text in sorted(GRAPHS.items())]
        answers = ask(list(query_items(range(seed, seed + count))), 1, 1)
        write(sys.argv[4], iter(head + [dict(item, **said) for item, said in answers if said is not None]))
    elif mode == "again":
        said_first = {item["seed"]: item for item in read(sys.argv[2])}
        queries = [{key: item[key] for key in ("seed", "graph", "query")} for item in said_first.values()]
        stable = [item["seed"] for item, said in ask(queries, 2, 2) if dict(item, **(said or {})) == said_first[item["seed"]]]
        print(*stable, sep="\n")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
