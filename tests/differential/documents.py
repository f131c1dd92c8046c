"""Documents by a grammar."""

import json
import random

from graphs import E, PREFIXES


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
