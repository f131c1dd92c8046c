"""Queries of kinds that the grammar does not come to: values in other forms than the usual one, and paths of no length from
and to terms that the graph has or lacks."""

import random

# Forms of values, of which the graph of the shop has some; beside each property, what it is compared with.
FORMS = {
    ":price": ["12.50", "12.5", "9.00", "9", "07.250", "'9.0'^^xsd:decimal", "'+9.00'^^xsd:decimal", "9.0e0", "-0.50"],
    ":code": ["007", "7", "'+7'^^xsd:integer", "42", "'042'^^xsd:integer", "7.0", "-0"],
    ":mass": ["'1.0'^^xsd:double", "1.0e0", "1e0", "'0.50'^^xsd:double", "0.5", "'1E1'^^xsd:double", "10"],
    ":sold": ["'2026-03-01T10:30:00.50'^^xsd:dateTime", "'2026-03-01T10:30:00.5'^^xsd:dateTime",
              "'2026-03-01T10:30:00Z'^^xsd:dateTime", "'2026-03-01T10:30:00+00:00'^^xsd:dateTime",
              "'2026-03-01T12:30:00+02:00'^^xsd:dateTime", "'2026-03-01T10:30:00'^^xsd:dateTime"],
    ":day": ["'2026-03-01'^^xsd:date", "'2026-03-02Z'^^xsd:date", "'2026-03-02'^^xsd:date"],
    ":open": ["true", "'1'^^xsd:boolean", "'0'^^xsd:boolean", "false"],
    ":note": ["'x'", "'x'^^xsd:string", "'x'@en", "'x'@EN", "'1'", "1", "'x'^^:unit"],
}
PLAIN = [":tea", ":jam", ":rye"]
ITEMS = [*PLAIN, ":box", ":none", ":lost"]
LINKS = [":in", ":on", ":near", ":never"]


class Family:
    """Writes one query about the shop."""

    graph = "shop"

    def __init__(self, seed):
        self.r = random.Random(f"family {seed}")

    def pick(self, choices):
        return self.r.choice(choices)

    def write(self):
        return self.pick([self.value, self.value, self.path])()

    # -- values

    def value(self):
        name = self.pick(sorted(FORMS))
        form = lambda: self.pick(FORMS[name])
        forms = " ".join(form() for _ in range(self.pick([1, 2, 3])))
        chosen = self.pick(["MAX", "MIN", "SAMPLE", "MAX", "MIN"])
        return self.pick([
            lambda: f"SELECT ?i ?m {{ {{ SELECT ({chosen}(?v) AS ?m) {{ {self.few()} ?x {name} ?v }} }} ?i {name} ?m }}",
            lambda: f"SELECT ?i {{ {{ SELECT ?k ({chosen}(?v) AS ?m) {{ ?x {name} ?v ; :kind ?k }} GROUP BY ?k }} ?i {name} ?m }}",
            lambda: f"SELECT ?i {{ ?x {name} ?v BIND({self.handed(name)} AS ?m) ?i {name} ?m }}",
            lambda: f"SELECT ?i {{ BIND({form()} AS ?m) ?i {name} ?m }}",
            lambda: f"SELECT ?i {{ VALUES ?m {{ {forms} }} ?i {name} ?m }}",
            lambda: f"SELECT ?i {{ ?i {name} {form()} }}",
            lambda: f"SELECT ?i {{ ?i {name} ?v FILTER({self.test(name)}) }}",
            lambda: f"SELECT ({self.made(name)} AS ?o) {{ {self.few()} ?x {name} ?v }}",
            lambda: f"SELECT ({self.made(name)} AS ?o) {{ VALUES ?v {{ {forms} }} }}",
            lambda: f"SELECT (COUNT(DISTINCT ?v) AS ?n) (SUM(?v) AS ?s) (AVG(?v) AS ?a) {{ ?x {name} ?v }}",
            lambda: f"SELECT ?v (COUNT(?x) AS ?n) {{ ?x {name} ?v }} GROUP BY ?v HAVING(COUNT(?x) > {self.pick('01')})",
            lambda: f"SELECT DISTINCT ?v {{ ?x {name} ?v }} ORDER BY {self.pick(['?v', 'DESC(?v)', 'STR(?v)'])}",
            lambda: f"SELECT ?i ?j {{ ?i {name} ?v . ?j {name} ?w FILTER({self.pick(['?v < ?w', '?v = ?w && ?i != ?j', 'sameTerm(?v, ?w)'])}) }}",
            lambda: f"SELECT ?i {{ ?i a :Thing MINUS {{ ?i {name} {form()} }} }}",
            lambda: f"SELECT ?i ?v {{ ?i a :Thing OPTIONAL {{ ?i {name} ?v FILTER({self.test(name)}) }} }}",
            lambda: f"SELECT ?i {{ ?i a :Thing FILTER({self.pick(['', 'NOT '])}EXISTS {{ ?i {name} ?v FILTER({self.test(name)}) }}) }}",
            lambda: f"SELECT (GROUP_CONCAT(STR(?v); separator='|') AS ?t) {{ {self.pick(PLAIN)} {name} ?v }}",
        ])()

    def few(self):
        return self.pick(["", f"VALUES ?x {{ {self.pick(ITEMS)} }}"])

    def handed(self, name):
        return self.pick([
            "?v", "IF(true, ?v, 0)", f"IF(BOUND(?z), {self.pick(FORMS[name])}, ?v)", "COALESCE(?z, ?v)", "?v + 0", "ABS(?v)",
            "STRDT(STR(?v), DATATYPE(?v))", "xsd:decimal(?v)", "xsd:integer(?v)", "xsd:double(?v)", "xsd:dateTime(?v)",
        ])

    def made(self, name):
        return self.pick([
            self.handed(name), "STR(?v)", "xsd:string(?v)", "CONCAT('a', STR(?v))", "STRLEN(STR(?v))", "ROUND(?v)", "CEIL(?v)",
            "FLOOR(?v)", "?v * 2", "-?v", "?v / 2", "YEAR(?v)", "SECONDS(?v)", "HOURS(?v)", "TZ(?v)", "TIMEZONE(?v)", "LANG(?v)",
            "REPLACE(STR(?v), '0$', '')", "SUBSTR(STR(?v), 2)", "isNumeric(?v)", f"?v = {self.pick(FORMS[name])}", "xsd:boolean(?v)",
        ])

    def test(self, name):
        form = self.pick(FORMS[name])
        return self.pick([
            f"?v {self.pick(['=', '!=', '<', '>', '<=', '>='])} {form}", f"STR(?v) = STR({form})", "REGEX(STR(?v), '0$')",
            f"?v IN ({form}, {self.pick(FORMS[name])})", f"sameTerm(?v, {form})", f"?v NOT IN ({form})", f"DATATYPE(?v) = DATATYPE({form})",
        ])

    # -- paths

    def step(self, depth=2):
        if not depth or self.r.random() < 0.3:
            return self.pick(LINKS) if self.r.random() < 0.85 else self.pick(["!:in", "!^:in", "!(:in|^:on)"])
        inner = self.step(depth - 1)
        return self.pick([
            f"({inner})*", f"({inner})*", f"({inner})?", f"({inner})+", f"^({inner})", f"({inner}/{self.step(depth - 1)})",
            f"({inner}|{self.step(depth - 1)})",
        ])

    def path(self):
        one, other, path = self.pick(ITEMS), self.pick(ITEMS), self.step()
        some = " ".join(self.r.sample(ITEMS, 2))
        return self.pick([
            f"SELECT ?y {{ {one} {path} ?y }}", f"SELECT ?x {{ ?x {path} {one} }}", f"SELECT ?z {{ :tea :in ?z . {one} {path} {other} }}",
            f"SELECT ?x ?y {{ VALUES ?x {{ {some} }} ?x {path} ?y }}", f"SELECT ?x ?y {{ VALUES ?y {{ {some} }} ?x {path} ?y }}",
            f"SELECT ?y {{ BIND({one} AS ?x) ?x {path} ?y }}", f"SELECT ?x {{ VALUES ?x {{ {some} }} ?x {path} ?x }}",
            f"SELECT ?x ?y {{ VALUES ?x {{ {some} }} OPTIONAL {{ ?x {path} ?y }} }}",
            f"SELECT ?x {{ VALUES ?x {{ {some} }} FILTER {self.pick(['', 'NOT '])}EXISTS {{ ?x {path} {other} }} }}",
            f"SELECT (COUNT(*) AS ?n) {{ {one} {path} ?y }}", f"SELECT ?x ?y {{ ?x {path} ?y FILTER(?x = {one}) }}",
            f"SELECT ?y {{ {{ {one} {path} ?y }} UNION {{ {other} {self.step(1)} ?y }} }}",
            f"SELECT ?y {{ {one} {path} ?z . ?z {self.step(1)} ?y }}", f"SELECT ?x ?k {{ ?x {path} {one} ; :kind ?k }}",
        ])
