"""Documents of the kinds that suites of syntax tests have: what parsers take for correct, or for wrong, in different ways."""

import json
import random

from graphs import E

# A statement a line; a line within a statement ends with this mark.
END = "⏎"
TURTLE = r"""
:a :p "\a\t\v" .
:a :p "\u00e9\U0001F600" .
:a :p "\u12" .
:a :p "\uWXYZ" .
:a :p "\q" .
:a :p '''it's "so"''' , "it's" .
:a :p ""\"one""\"" .
:a :p ""\"two
lines\""\" .
:a :p "x"@en , "x"@EN-gb , "x"@en-1 .
:a :p "x" @en .
:a :p "x"^^xsd:token , "5"^^ xsd:integer .
:a :p "x" ^^xsd:token .
:a :p 1 , +1 , -1 , 1. , 1.0 , .5 , 1e0 , 1.E3 , +.7e-1 .
:a :p 01 , "01"^^xsd:integer , 1.50 .
:a :p true , false , "1"^^xsd:boolean .
:a :p True .
:-a :p :b .
:a- :p :b-c .
:a.b :p :c.d .
:a :p :b. :c :p :d.
:1 :p :2a .
:a\-b\~c :p :d\, .
:a\. :p :c .
:a%20b :p :c%C3 .
:a:b :p :c: .
: :p : .
_:a :p _:b-c , _:d.e .
_:a:b :p :c .
_:1 :p _:_x .
_: :p :c .
[] :p :c .
[] .
[ :p :c ] .
[ :p :c ] :q :d .
[ :p [ :q [ ] ] , [] ] :r () .
( :a :b ) .
( 1 "x" ( ) ) :p ( [ :q :c ] ( :d ) ) .
() :p :c .
:a ;; :p :c ; ; .
:a :p :c ; .
:a :p :c , .
:a :p .
:a :p :b :c .
:a a :T ; a :U .
:a A :T .
a :p :c .
:a :p :b ; a .
:a!:p :q :c .
:a^:p :q :c .
:a :q :b!:p!:r .
:a = :b .
:a => :b .
{ :a :p :b } :q :c .
@prefix x: <x#> . x:a :p x:b .
@prefix x: <http://e/x#>⏎x:a :p x:b .
PREFIX x: <http://e/x#> x:a :p x:b .
PREFIX x: <http://e/x#> . x:a :p x:b .
prefix X: <http://e/x#>⏎X:a :p X:b .
@PREFIX x: <http://e/x#> .
@prefix : <http://e/other#> . :a :p :b .
@prefix _: <http://e/u#> . _:a :p _:b .
@prefix x.y: <http://e/x#> . x.y:a :p :b .
@base <http://e/dir/file> . <a> :p <../b> , <#c> , <?d> , <> .
BASE <http://e/dir/>⏎<a> :p </b> , <//f/g> .
@base "http://e/" .
<http://e/a b> :p :c .
<http://e/\u0061> :p <http://e/\U00000062> .
<http://e/{a}> :p :c .
<http://e/é> :é :größe .
undeclared:a :p :c .
"x" :p :c .
:a "p" :c .
:a _:p :c .
:a [] :c .
:a :p <http://e/c>. # so
#:a :p :c .
""".strip("\n").replace(r'\"', '"').split("\n")

N_TRIPLES = r"""
<http://e/a> <http://e/p> "\t\b\n\r\f\"\'\\" .
<http://e/a> <http://e/p> "\u00e9\U0001F600" .
<http://e/a> <http://e/p> "\q" .
<http://e/a> <http://e/p> "\u12" .
<http://e/a> <http://e/p> "\uD800" .
<http://e/a> <http://e/p> 'x' .
<http://e/a> <http://e/p> "x"@en .
<http://e/a> <http://e/p> "x"@en-GB .
<http://e/a> <http://e/p> "x"@en_US .
<http://e/a> <http://e/p> "x"@1 .
<http://e/a> <http://e/p> "x" @en .
<http://e/a> <http://e/p> "007"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://e/a> <http://e/p> "+1.50"^^<http://www.w3.org/2001/XMLSchema#decimal> .
<http://e/a> <http://e/p> "5"^^ <http://www.w3.org/2001/XMLSchema#integer> .
<http://e/a> <http://e/p> "5"^^xsd:integer .
<http://e/a> <http://e/p> 5 .
<http://e/a> <http://e/p> "x"^^<t> .
<http://e/a><http://e/p><http://e/b>.
<http://e/a>	<http://e/p>	<http://e/b>	.
 <http://e/a> <http://e/p> <http://e/b> . # so
<http://e/a> <http://e/p> <http://e/b>
<http://e/a> <http://e/p> <http://e/b> ; <http://e/q> <http://e/c> .
<http://e/a> <http://e/p> <http://e/b> . <http://e/c> <http://e/p> <http://e/d> .
<http://e/a> a <http://e/b> .
<a> <http://e/p> <http://e/b> .
<http://e/a b> <http://e/p> <http://e/b> .
<http://e/\u0061> <http://e/p> <http://e/b> .
<http://e/\n> <http://e/p> <http://e/b> .
<http://e/a> "p" <http://e/b> .
"x" <http://e/p> <http://e/b> .
<http://e/a> _:p <http://e/b> .
_:a <http://e/p> _:b.c .
_:a:b <http://e/p> _:1 .
_:-a <http://e/p> _:b .
_:é <http://e/p> <http://e/b> .
<http://e/é> <http://e/p> "é" .
@prefix : <http://e/> .
# <http://e/a> <http://e/p> <http://e/b> .
<http://e/a> <http://e/p> "two⏎lines" .
""".strip("\n").split("\n")

# Entries of a context, and members of a node.
CONTEXT = [
    {"": "http://e/"}, {"@vocab": "http://e/v#"}, {"@vocab": ""}, {"@vocab": "v/"}, {"@vocab": None}, {"@base": "http://e/dir/"}, {"@base": None},
    {"@language": "en"}, {"@language": None}, {"@language": "en_US"}, {"@version": 1.1}, {"@version": 1.0}, {"t": None}, {"t": {"@id": None}},
    {"p": "http://e/p"}, {"p": {"@id": "http://e/p", "@type": "@id"}}, {"p": {"@id": "http://e/p", "@type": "@vocab"}},
    {"p": {"@id": "http://e/p", "@type": "http://e/t"}}, {"p": {"@id": "http://e/p", "@type": "@json"}},
    {"p": {"@id": "http://e/p", "@type": "@none"}}, {"p": {"@id": "http://e/p", "@language": "de"}}, {"p": {"@id": "http://e/p", "@language": None}},
    {"p": {"@id": "http://e/p", "@container": "@list"}}, {"p": {"@id": "http://e/p", "@container": "@set"}},
    {"p": {"@id": "http://e/p", "@container": "@language"}}, {"p": {"@id": "http://e/p", "@container": "@index"}},
    {"p": {"@id": "http://e/p", "@container": "@id"}}, {"p": {"@id": "http://e/p", "@container": "@type"}}, {"p": {"@reverse": "http://e/p"}},
    {"p": {"@id": "e:p"}, "e": "http://e/"}, {"e": {"@id": "http://e/", "@prefix": True}}, {"id": "@id", "type": "@type"}, {"p": "@type"},
    {"p": {"@id": "http://e/p", "@context": {"q": "http://e/inner"}}}, {"T": {"@id": "http://e/T", "@context": {"q": "http://e/of-T"}}}, {"p": 5},
    "http://e/elsewhere", None,
]
MEMBERS = [
    {"@id": "http://e/a"}, {"@id": ":a"}, {"@id": "a"}, {"@id": ""}, {"@id": "#a"}, {"@id": None}, {"@id": 5}, {"@id": "_:x"}, {"@id": "<http://e/a>"},
    {"@id": "http://e/a b"}, {"id": "http://e/a"}, {"@type": "http://e/T"}, {"@type": ["T", ":T"]}, {"@type": None}, {"@type": []},
    {"@type": {"@id": "http://e/T"}}, {"@type": "_:t"}, {"type": "http://e/T"}, {"q": "unknown"}, {":p": "x"}, {"e:p": "x"}, {"http://e/p q": "x"},
    {"@graph": [{"@id": "http://e/g", "http://e/p": 1}]}, {"@included": [{"@id": "http://e/i", "http://e/p": 1}]}, {"@index": "one"},
    {"@reverse": {"http://e/p": {"@id": "http://e/b"}}}, {"@nest": {"http://e/n": 1}}, {"@odd": 1}, {"http://e/p": []}, {"http://e/p": None},
]
VALUES = [
    "x", "http://e/b", "_:x", ":b", 5, 5.0, 5.5, 1e21, -0.0, True, None, [], {}, ["x", ["y"]], {"@value": "x"}, {"@value": 5}, {"@value": None}, {"@value": True},
    {"@value": "x", "@language": "en"}, {"@value": "x", "@language": None}, {"@value": "x", "@language": ""}, {"@value": 5, "@language": "en"},
    {"@value": "x", "@type": None}, {"@value": "x", "@type": "http://e/t"}, {"@value": 5, "@type": "http://www.w3.org/2001/XMLSchema#double"},
    {"@value": "x", "@type": "@id"}, {"@value": "x", "foo": 1}, {"@value": ["x"]}, {"@value": {"a": 1}, "@type": "@json"}, {"@value": "x", "@index": "i"},
    {"@id": "http://e/b"}, {"@id": "b"}, {"@id": None}, {"@list": ["x", 5, {"@id": "http://e/b"}]}, {"@list": []}, {"@list": "x"}, {"@list": [["x"], "y"]},
    {"@set": ["x", None]}, {"@set": []}, {"en": "x", "de": ["y", "z"]}, {"one": {"@id": "http://e/b"}, "two": "x"}, {"http://e/b": {"http://e/q": 1}},
    {"@type": "http://e/T"}, {"q": "inner"}, {"@type": "T", "q": "inner"},
]


class OddDocument:
    """Writes one document."""

    def __init__(self, seed):
        self.r = random.Random(f"odd document {seed}")
        self.format = self.r.choice(["turtle", "nt", "json-ld", "json-ld"])

    def pick(self, choices):
        return self.r.choice(choices)

    def write(self):
        if self.format == "json-ld":
            return json.dumps(self.json_ld(), ensure_ascii=False)
        lines = self.r.sample(TURTLE if self.format == "turtle" else N_TRIPLES, self.pick([1, 2, 3]))
        text = self.pick(["\n"] * 6 + ["\r\n", "\r"]).join(lines).replace(END, "\n")
        if self.format == "turtle":
            return f"@prefix : <{E}> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n" + text
        return text + self.pick(["", "\n"])

    def json_ld(self):
        node = {"@context": self.context()}
        for member in [*self.r.sample(MEMBERS, self.pick([1, 2])), *({self.pick(["p", "p", "http://e/q"]): self.pick(VALUES)} for _ in range(self.pick([1, 2])))]:
            node.update(member)
        if self.r.random() < 0.2:
            return {"@context": node.pop("@context"), "@graph": [node]}
        return node

    def context(self):
        chosen = self.r.sample(CONTEXT, self.pick([1, 2, 3]))
        if not all(isinstance(one, dict) for one in chosen) or self.r.random() < 0.15:
            return [one for one in chosen if not isinstance(one, str)]
        return {key: value for one in chosen for key, value in one.items()}
