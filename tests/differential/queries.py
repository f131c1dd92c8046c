"""Queries by a grammar."""

import random

from graphs import E, NODES, NUMBERS, SHAPES, TEXTS


class Query:
    """Writes one query. What is chosen depends on the seed alone."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.graph = self.r.choice(sorted(SHAPES))
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
