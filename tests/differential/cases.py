"""Queries written by hand, a rule each: what the grammar does not come to by chance.

One a line, about the fair; a line that begins with a blank goes on with the query before it.
"""

CASES = r"""
SELECT (COALESCE (?z, 0) AS ?x) { }
SELECT (CONCAT ('a', 'b') AS ?x) { }
SELECT (isBLANK(BNODE ()) AS ?x) { }
SELECT (STR (?n) AS ?x) { :ada v:name ?n }
SELECT (IF (?a > 30, 'old', 'young') AS ?x) { ?p v:age ?a }
SELECT ?x { ?x v:age ?a FILTER (BOUND (?a)) }
SELECT ?x { ?x v:age ?a FILTER REGEX (STR (?x), 'a') }
SELECT ?x (COUNT (?y) AS ?n) { ?x v:knows ?y } GROUP BY ?x
SELECT ?x (COUNT # how many
 (?y) AS ?n) { ?x v:knows ?y } GROUP BY ?x
SELECT (COALESCE # none
 (?z, 0) AS ?x) { }
SELECT (MAX (?a) AS ?m) { ?x v:age ?a }
SELECT (xsd:integer ('5') AS ?m) { }
SELECT ?x { ?x v:age ?a FILTER NOT  EXISTS { ?x v:active true } }
SELECT ?x { ?x v:age ?a FILTER NOTEXISTS { ?x v:active true } }
SELECT ?x { ?x v:age ?a FILTER (?a NOT  IN (35)) }
SELECT ?x { ?x v:knows ?y ; v:age 41 } ORDER BY DESC(COUNT(?y)) LIMIT 1
SELECT ?x { ?x v:knows ?y ; v:age 41 } ORDER BY COUNT(?y)
SELECT ?x ?a { ?x v:age ?a . ?x v:name 'Ada' } ORDER BY DESC(MAX(?a)) LIMIT 3
SELECT (COUNT(*) AS ?n) { ?x v:knows ?y } ORDER BY DESC(?n)
SELECT DISTINCT ?x { ?x v:knows ?y ; v:age 41 } ORDER BY DESC(COUNT(DISTINCT ?y)) OFFSET 0
SELECT * { ?x v:knows ?y } ORDER BY COUNT(?y)
SELECT ?n { ?x v:name ?n ; v:age 41 BIND(LCASE(?n) AS ?n) }
SELECT ?n { ?x v:name ?n ; v:age 41 BIND(?n + 1 AS ?n) }
SELECT ?n { ?x v:name ?n ; v:age 41 FILTER(?n = 'ada') BIND(LCASE(?n) AS ?n) }
SELECT ?n { ?x v:name ?n ; v:age 41 FILTER(?n = 'Ada') BIND(LCASE(?n) AS ?n) }
SELECT ?n { ?x v:name ?n ; v:age 41 BIND(LCASE(?n) AS ?n) FILTER(?n = 'ada') }
SELECT ?n ?m { ?x v:name ?n ; v:age 41 BIND(?n AS ?m) BIND(LCASE(?n) AS ?n) }
SELECT ?n { ?x v:name ?n . { ?x v:age 41 BIND('x' AS ?n) } }
SELECT ?n { ?x v:name ?n . OPTIONAL { ?x v:age 41 BIND('x' AS ?n) } }
SELECT ?n { ?x v:name ?n BIND(IF(?n = 'Ada', 'first', ?n) AS ?n) OPTIONAL { ?x v:nick ?k BIND(?k AS ?n) } }
SELECT ?x ?n { ?x v:age 41 BIND('none' AS ?n) OPTIONAL { ?x v:name ?n } }
SELECT ?x ?n { ?x v:age 41 OPTIONAL { ?x v:nick ?n } BIND(COALESCE(?n, 'none') AS ?n) }
SELECT ?x ?n { ?x a v:Keeper OPTIONAL { ?x v:nick ?n } BIND(COALESCE(?n, 'none') AS ?n) }
SELECT ?x { ?x v:age ?a BIND(?a + 1 AS ?a) } ORDER BY ?a LIMIT 1
SELECT ?a { ?x v:age ?a BIND(1/0 AS ?a) }
SELECT (SUM(?a) AS ?s) { ?x v:age ?a BIND(?a * 2 AS ?a) }
SELECT ?x (COUNT(?y) AS ?n) { ?x v:knows ?y BIND(COUNT(?y) AS ?m) } GROUP BY ?x
SELECT ?x (COUNT(?y) AS ?n) { ?x v:knows ?y FILTER(COUNT(?y) > 1) } GROUP BY ?x
SELECT ?x (COUNT(?y) AS ?n) { ?x v:nope ?y FILTER(COUNT(?y) > 1) } GROUP BY ?x
SELECT ?x { ?x v:age ?a FILTER(?a = MAX(?a)) }
SELECT ?x { ?x v:age ?a FILTER(COUNT(?a) > 0 || true) }
SELECT ?x { ?x v:age ?a FILTER(true || COUNT(?a) > 0) }
SELECT ?x { ?x v:age ?a OPTIONAL { ?x v:nick ?n FILTER(COUNT(?n) > 1) } }
SELECT ?x { ?x v:age ?a FILTER EXISTS { ?x v:knows ?y FILTER(COUNT(?y) > 1) } }
SELECT ?x { { ?x v:age 41 } UNION { ?x v:age 35 FILTER(MAX(?x) = ?x) } }
SELECT ?x ?m { { SELECT (MAX(?a) AS ?m) { ?y v:age ?a } } ?x v:age ?m }
SELECT ?x { ?x v:age ?a { SELECT (MAX(?a) AS ?m) { ?y v:age ?a } } FILTER(?a = ?m) }
SELECT ?x (COUNT(?y) AS ?n) { ?x v:knows ?y ; v:age ?a } GROUP BY ?x HAVING(?a > 30)
SELECT ?x { ?x v:knows ?y ; v:age ?a } GROUP BY ?x HAVING(COUNT(?y) > 1 && ?a > 30)
SELECT ?x (COUNT(?y) AS ?n) { ?x v:knows ?y } GROUP BY ?x HAVING(?n > 1)
SELECT ?x { ?x v:knows ?y } GROUP BY ?x HAVING(COUNT(?y) > 1)
SELECT ?x { ?x v:knows ?y } GROUP BY ?x HAVING COUNT(?y) > 1
SELECT ?x { ?x v:knows ?y } GROUP BY ?x HAVING(COUNT(?y) > 1) (COUNT(?y) < 5)
SELECT ?x { ?x v:age ?a } HAVING(MAX(?a) > 3)
SELECT ?x { ?x v:age 41 } HAVING(?x = :ada)
SELECT (MAX(?a) AS ?m) { ?x v:age ?a } HAVING(?m > 3)
SELECT ?x (COUNT(?y) AS ?n) { ?x v:knows ?y ; v:age 41 }
SELECT ?x ?y (COUNT(?y) AS ?n) { ?x v:knows ?y ; v:age 35 } GROUP BY ?x
SELECT * { ?x v:age ?a } GROUP BY ?x
SELECT (COUNT(*) AS ?n) { ?x v:age ?a } GROUP BY (STR(?x))
SELECT (COUNT(*) AS ?n) { ?x v:age ?a } GROUP BY STR(?x)
SELECT ?k (COUNT(*) AS ?n) { ?x v:age ?a } GROUP BY (STR(?x) AS ?k)
SELECT (STR(?n) AS ?n) { :ada v:name ?n }
SELECT (1 AS ?y) (2 AS ?y) { }
SELECT ?n ?n { :ada v:name ?n }
SELECT ?n (UCASE(?n) AS ?n) { :ada v:name ?n }
SELECT (?a + 1 AS ?b) (?b + 1 AS ?c) { :ada v:age ?a }
SELECT (COUNT(?y) AS ?y) { ?x v:knows ?y }
SELECT ?x { { _:n v:age 41 } { _:n v:name ?x } }
SELECT ?x { _:n v:age 41 ; v:name ?x }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, 'a', 'gi')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, 'a', 'ig')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, 'a', 'q')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, 'A d a', 'x')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, 'A'@en)) }
SELECT ?n { ?x rdfs:label ?n FILTER(REGEX(?n, 'A'@en)) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, 'a'@en, 'i'@en)) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?x, 'ada')) }
SELECT ?n { ?x v:age ?n FILTER(REGEX(?n, '3')) }
SELECT ?n { ?x v:age ?n FILTER(REGEX(STR(?n), 3)) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '^(?!A)')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '^(?=.*e)B')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '(?<=A)d')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '(?<!A)d')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '(.).*\\1')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '(o).*\\1')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '(?P<c>o).*(?P=c)')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '(?<c>o)')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '(?i)ADA')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, 'a(?i)D')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '\\p{Lu}')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '[')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '(')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '*a')) }
SELECT ?n { ?x v:nope ?n FILTER(REGEX(?n, '(')) }
SELECT ?n ?b { ?x v:name ?n BIND(REGEX(?n, '(') AS ?b) }
SELECT ?n ?b { ?x v:name ?n BIND(REGEX(?n, 'a{,2}$') AS ?b) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, 'a{')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '[[A]da')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '[a&&b]')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '[]A]')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, 'a\\Z')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, 'a\\z')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '\\AA')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '^\\w{3}$')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '\\bAda\\b')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, 'A\\d')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '^A', 'm')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, CONCAT('^(?!', 'A', ')'))) }
SELECT ?n { ?x v:name ?n ; v:nick ?k FILTER(REGEX(?k, SUBSTR(?n, 1, 1))) }
SELECT ?n { ?x v:name ?n FILTER(!REGEX(?n, '^A')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '/', 'i')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, 'A|B')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '\u0041')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '\\x41')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '\\Q.\\E')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '\\-')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '\\/')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '\\_')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '[[:upper:]]')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, 'a++')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '(?>a)')) }
SELECT ?n { ?x v:name ?n FILTER(REGEX(?n, '(?#note)A')) }
SELECT (REPLACE(?n, 'a', 'o') AS ?r) { :ada v:name ?n }
SELECT (REPLACE(?n, 'a', 'o', 'i') AS ?r) { :ada v:name ?n }
SELECT (REPLACE('aAaAa', 'a', 'o', 'i') AS ?r) { }
SELECT (REPLACE('aAaAa', 'a', 'o', 'g') AS ?r) { }
SELECT (REPLACE('aaaaaaaaaaaaaaaaaaaaaaaa', 'a', 'o', 'm') AS ?r) { }
SELECT (REPLACE('aaaaaaaaaaaaaaaaaaaaaaaa', 'a', 'o', 's') AS ?r) { }
SELECT (REPLACE('aaaaaaaaaaaaaaaaaaaaaaaa', 'a', 'o', 'is') AS ?r) { }
SELECT (REPLACE('aaaaaaaaaaaaaaaaaaaaaaaa', 'a', 'o', '') AS ?r) { }
SELECT (REPLACE('abc', '(b)', '[$1]') AS ?r) { }
SELECT (REPLACE('abc', '(b)', '[\\1]') AS ?r) { }
SELECT (REPLACE('abc', '(b)', '[$2]') AS ?r) { }
SELECT (REPLACE('abc', '(b)', '[$0]') AS ?r) { }
SELECT (REPLACE('abc', '(b)', '[$]') AS ?r) { }
SELECT (REPLACE('abc', '(b)', '[$1$1]') AS ?r) { }
SELECT (REPLACE('abc', '(b)', '[$12]') AS ?r) { }
SELECT (REPLACE('abc', '(b)', '\\$1') AS ?r) { }
SELECT (REPLACE('abc', '(b)', '\\n') AS ?r) { }
SELECT (REPLACE('abc', '(b)', '\\q') AS ?r) { }
SELECT (REPLACE('abc', '(x)?b', '[$1]') AS ?r) { }
SELECT (REPLACE('abc', '', '-') AS ?r) { }
SELECT (REPLACE('abc', 'x*', '-') AS ?r) { }
SELECT (REPLACE('abc', '(?=b)', '-') AS ?r) { }
SELECT (REPLACE('abcabc', '(a)(?=b)', '<$1>') AS ?r) { }
SELECT (REPLACE('aa bb ab', '(.)\\1', '<$1>') AS ?r) { }
SELECT (REPLACE('abc', '(', '-') AS ?r) { }
SELECT (REPLACE('abc'@en, 'b', '-') AS ?r) { }
SELECT (REPLACE('abc', 'b'@en, '-'@de) AS ?r) { }
SELECT (REPLACE(STR(?x), '^.*/', '') AS ?r) { ?x v:age ?a }
SELECT (REPLACE(STR(?x), '.*[/#]', '') AS ?r) { ?x v:age ?a }
SELECT (REPLACE(?x, 'a', '') AS ?r) { ?x v:age ?a }
SELECT (REPLACE(5, '5', '6') AS ?r) { }
SELECT ?y { :ben (v:knows|v:knows) ?y }
SELECT ?y { :ben v:knows|v:knows ?y }
SELECT ?y { :ben (v:knows|v:knows)+ ?y }
SELECT ?y { :ben v:knows/(v:name|v:name) ?y }
SELECT (COUNT(?y) AS ?n) { :ada (v:knows|v:knows|v:name) ?y }
SELECT ?y { :ada ^(v:knows|v:keeper) ?y }
SELECT (COUNT(*) AS ?n) { ?x (v:knows|^v:knows) ?y }
SELECT (COUNT(*) AS ?n) { ?x v:knows/v:knows ?y }
SELECT (COUNT(*) AS ?n) { ?x (v:knows/v:knows)? ?y }
SELECT ?y { :plum v:partOf{2} ?y }
SELECT ?y { :plum v:partOf+ ?y }
SELECT ?y { :plum v:partOf * ?y }
SELECT ?y { :plum v:partOf+/v:name ?y }
SELECT ?n { :ada v:n\u0061me ?n }
SELECT ?n { :ada v:name ?\u006e }
SELECT ?n { :ada v:name 'Ad\u0061' . BIND('yes' AS ?n) }
SELECT ?n { :ada v:name "\u0022" BIND('yes' AS ?n) }
SELECT ?n‍m { :ada v:name ?n‍m }
SELECTé ?n { :ada v:name ?n }
SELECT?n{:ada v:name ?n}
SELECT*{:ada v:name ?n}
SELECT DISTINCT?n{:ada v:name ?n}
SELECTDISTINCT ?n { :ada v:name ?n }
SELECT ?n WHERE{:ada v:name ?n}ORDER BY?n LIMIT 1
SELECT ?n { :ada v:name ?n } LIMIT 1 OFFSET 0
SELECT ?n { :ada v:name ?n } OFFSET 0 LIMIT 1
SELECT ?n { :ada v:name ?n } LIMIT 1;
SELECT ?n { :ada v:name ?n }.
SELECT ?n FROM <http://x/> { :ada v:name ?n }
SELECT ?n FROM NAMED <http://x/> { :ada v:name ?n }
SELECT ?n FROM <http://x/> WHERE { GRAPH <http://x/> { :ada v:name ?n } }
SELECT ?n { GRAPH ?g { :ada v:name ?n } }
SELECT ?n { :ada v:nope ?n . GRAPH ?g { :ada v:name ?n } }
SELECT ?n { GRAPH ?g { :ada v:name ?n } :ada v:nope ?n }
PREFIX e: <http://example.org/fair/> SELECT ?n { e:ada v:name ?n }
PREFIX e: <http://example.org/fair/> SELECT ?n { e:ada v:name ?n . :ada v:age ?a }
PREFIX : <http://example.org/fair/> PREFIX e: <http://example.org/fair/> SELECT ?n { e:ada v:name ?n . :ada v:age ?a }
PREFIX : <http://other.org/> SELECT ?n { :ada v:name ?n }
SELECT ?n { w:ada v:name ?n }
SELECT ?n { <ada> v:name ?n }
BASE <http://example.org/fair/> SELECT ?n { <ada> v:name ?n }
BASE <http://example.org/fair/x> SELECT ?n { <./ada> v:name ?n }
SELECT ?n { <http://example.org/fair/ada [1]> v:name ?n }
SELECT ?n { <http://example.org/fair/a[1]> v:name ?n }
SELECT (v:fun(?a) AS ?n) { :ada v:age ?a }
SELECT ?a { :ada v:age ?a FILTER(v:fun(?a)) }
SELECT ?a { :ada v:age ?a FILTER(v:fun(?a) || true) }
SELECT ?a { :ada v:age ?a FILTER(v:fun() || ?a > 40) }
SELECT (GROUP_CONCAT(?y) AS ?s) { :ben v:knows ?y }
SELECT (GROUP_CONCAT(?a; separator=',') AS ?s) { :ada v:age ?a }
SELECT (GROUP_CONCAT(DISTINCT ?l; separator='|') AS ?s) { :dov v:name ?l }
SELECT (GROUP_CONCAT(?l; separator=|) AS ?s) { :dov v:name ?l }
SELECT (GROUP_CONCAT(?l, ',') AS ?s) { :dov v:name ?l }
SELECT (SUM(?n) AS ?s) { ?x v:name ?n }
SELECT (SUM(?z) AS ?s) { ?x v:name ?n OPTIONAL { ?x v:nope ?z } }
SELECT (SUM(?p) AS ?s) { ?x v:price ?p }
SELECT (SUM(?p) AS ?s) { ?x v:nope ?p }
SELECT (SUM(DISTINCT ?a) AS ?s) { ?x v:age ?a }
SELECT (AVG(?a) AS ?s) { ?x v:age ?a }
SELECT (AVG(?p) AS ?s) { ?x v:price ?p }
SELECT (AVG(?p) AS ?s) { ?x v:nope ?p }
SELECT (MIN(?p) AS ?s) { ?x v:nope ?p }
SELECT (MAX(?b) AS ?s) { ?x v:born ?b }
SELECT (MIN(?n) AS ?s) { ?x v:name ?n }
SELECT (MAX(?n) AS ?s) { ?x v:age|v:name ?n }
SELECT (COUNT(?z) AS ?s) { ?x v:name ?n OPTIONAL { ?x v:nick ?z } }
SELECT (COUNT(DISTINCT *) AS ?s) { ?x v:knows ?y }
SELECT (COUNT(?x ?y) AS ?s) { ?x v:knows ?y }
SELECT COUNT(?x) { ?x v:knows ?y }
SELECT COUNT(?x) AS ?n { ?x v:knows ?y }
SELECT ?x AS ?y { ?x v:knows ?z }
SELECT (?x AS ?y) { ?x v:knows ?z }
SELECT ?x, ?y { ?x v:knows ?y }
SELECT ?x ?a { ?x v:age ?a FILTER ?a > 30 }
SELECT ?x ?a { ?x v:age ?a FILTER(?a<40&&?a>30) }
SELECT ?x ?a { ?x v:age ?a FILTER(?a <30 || ?a> 40) }
SELECT ?x { ?x v:age ?a FILTER(TRUE) }
SELECT ?x { ?x v:active True }
SELECT ?x { ?x v:active 'true'^^xsd:boolean }
SELECT ?x { ?x v:active 1 }
SELECT ?x { ?x v:age '41' }
SELECT ?x { ?x v:age 41.0 }
SELECT ?x { ?x v:age 041 }
SELECT ?x { ?x v:age ?a FILTER(?a = 41.0) }
SELECT ?x { ?x v:age ?a FILTER(?a = '41') }
SELECT ?x { ?x v:name ?a FILTER(?a = 'Ada'^^xsd:string) }
SELECT ?x { ?x v:name 'Ada'^^xsd:string }
SELECT ?x { ?x rdfs:label ?a FILTER(?a = 'Ada') }
SELECT ?x { ?x rdfs:label 'Ada'@EN }
SELECT ?x { ?x rdfs:label ?a FILTER(LANG(?a) = 'en') }
SELECT ?x { ?x rdfs:label ?a FILTER(LANGMATCHES(LANG(?a), 'EN')) }
SELECT ?x { ?x rdfs:label ?a FILTER(CONTAINS(?a, 'd')) }
SELECT ?x { ?x rdfs:label ?a FILTER(CONTAINS(?a, 'd'@de)) }
SELECT ?x { ?x rdfs:label ?a FILTER(STRSTARTS(?a, 'A'@en)) }
SELECT ?x { ?x v:age ?a FILTER(CONTAINS(?a, '4')) }
SELECT ?x { ?x v:age ?a FILTER(CONTAINS(?x, 'ada')) }
SELECT ?x { ?x v:age ?a FILTER(STRLEN(?a) = 2) }
SELECT ?x { ?x v:age ?a FILTER(?a IN (41.0, 29)) }
SELECT ?x { ?x v:name ?n FILTER(?n IN ('Ada', 'Ben'@en)) }
SELECT ?n { ?x v:name ?n FILTER(?n > 5) }
SELECT ?n { ?x v:name ?n FILTER(?n > 'Dov') }
SELECT ?n { ?x v:name ?n FILTER(?x > :dov) }
SELECT ?n { ?x v:born ?n FILTER(?n < '1990-01-01'^^xsd:date) }
SELECT ?n { ?x v:born ?n FILTER(?n < '1990-01-01') }
SELECT ?n { ?x v:born ?n FILTER(?n < xsd:date('1990-01-01')) }
SELECT ?n { ?x v:born ?n FILTER(YEAR(?n) = 1983) }
SELECT ?n { ?x v:open ?n FILTER(YEAR(?n) = 2024) }
SELECT (YEAR(?n) AS ?y) (MONTH(?n) AS ?m) (DAY(?n) AS ?d) { ?x v:born|v:open ?n }
SELECT (HOURS(?n) AS ?y) (MINUTES(?n) AS ?m) (SECONDS(?n) AS ?d) { ?x v:open ?n }
SELECT ?n { ?x v:open ?n } ORDER BY ?n
SELECT ?n { ?x v:open ?n FILTER(?n > '2023-12-01T00:00:00'^^xsd:dateTime) }
SELECT (YEAR('2020') AS ?y) { }
SELECT (xsd:integer('x') AS ?i) { }
SELECT (xsd:integer(3.7) AS ?i) (xsd:integer('3.7') AS ?j) { }
SELECT (xsd:decimal(?p) AS ?i) { ?x v:price ?p }
SELECT (xsd:double(?a) AS ?i) { ?x v:age ?a }
SELECT (xsd:string(?a) AS ?i) { ?x v:age ?a }
SELECT (xsd:boolean('yes') AS ?i) (xsd:boolean('1') AS ?j) { }
SELECT (?a / 2 AS ?h) { ?x v:age ?a }
SELECT (?a / 3 AS ?h) { ?x v:age ?a }
SELECT (?p * 2 AS ?h) { ?x v:price ?p }
SELECT (?p * ?s AS ?h) { ?x v:price ?p ; v:stock ?s }
SELECT (ROUND(?p) AS ?h) (CEIL(?p) AS ?c) (FLOOR(?p) AS ?f) { ?x v:price ?p }
SELECT (ROUND(2.5) AS ?h) (ROUND(-2.5) AS ?g) (ABS(-3) AS ?a) { }
SELECT (SUBSTR('Lantern', 2, 3) AS ?s) (SUBSTR('Lantern', 0) AS ?t) (SUBSTR('Lantern', 9) AS ?u) { }
SELECT (STRBEFORE('Lantern', 't') AS ?s) (STRAFTER('Lantern', 't') AS ?t) (STRAFTER('Lantern', 'q') AS ?u) { }
SELECT (STRBEFORE('Lantern'@en, 't'@en) AS ?s) (STRAFTER('Lantern'@en, 't'@de) AS ?t) { }
SELECT (UCASE('straße') AS ?s) (LCASE('ÄÖÜ') AS ?t) (STRLEN('größe') AS ?u) { }
SELECT (ENCODE_FOR_URI('a b/ü') AS ?s) { }
SELECT (CONCAT('a'@en, 'b'@en) AS ?s) (CONCAT('a', 1) AS ?t) (CONCAT() AS ?u) { }
SELECT (CONCAT(?x, 'b') AS ?s) { ?x v:age 41 }
SELECT (IRI('rel') AS ?s) (IRI('http://example.org/q') AS ?t) (URI('http://example.org/r') AS ?u) { }
SELECT (DATATYPE(?a) AS ?s) (DATATYPE('x'@en) AS ?t) (DATATYPE('x') AS ?u) { :ada v:age ?a }
SELECT (STRDT('5', xsd:integer) AS ?s) (STRLANG('a', 'en') AS ?t) { }
SELECT (MD5('a') AS ?s) (SHA1('a') AS ?t) (SHA256('a') AS ?u) { }
SELECT (isNUMERIC(?a) AS ?s) (isNUMERIC('5') AS ?t) { :ada v:age ?a }
SELECT (sameTerm(1, 1.0) AS ?s) (sameTerm('a', 'a') AS ?t) { }
SELECT (!?z AS ?s) (!'' AS ?t) (!0 AS ?u) { }
SELECT ('' || false AS ?s) ('x' && 1 AS ?t) { }
SELECT ?x { ?x v:name ?n FILTER(?n) }
SELECT ?x { ?x v:stock ?n FILTER(?n) }
SELECT ?x { ?x v:active ?n FILTER(!?n) }
SELECT ?x ?k { ?x v:age ?a OPTIONAL { ?x v:nick ?k } FILTER(!BOUND(?k)) }
SELECT ?x { ?x v:age ?a MINUS { ?x v:active ?b } }
SELECT ?x { ?x v:age ?a MINUS { ?y v:active ?b } }
SELECT ?x { ?x v:age ?a FILTER NOT EXISTS { ?x v:active ?b FILTER(?a > 30) } }
SELECT ?x ?k { ?x v:age ?a OPTIONAL { ?x v:nick ?k FILTER(?a > 30) } }
SELECT ?x { ?x v:age ?a { ?x v:name ?n FILTER(?a > 30) } }
SELECT ?x { ?x v:age ?a { ?x v:name ?n OPTIONAL { ?x v:nick ?k FILTER(?a > 30) } } }
SELECT ?x { { ?x v:age ?a } UNION { ?x v:area ?a } FILTER(?a > 20) }
SELECT ?x { ?x v:age ?a } VALUES ?x { :ada :ben }
SELECT ?x { ?x v:age ?a VALUES (?x) { (:ada) (UNDEF) } }
SELECT ?x ?n { VALUES (?x ?n) { (:ada 'A') (:ben) } }
SELECT ?x { VALUES ?x { _:b } }
SELECT ?x { VALUES ?x { ?y } }
SELECT ?x { ?x v:name 'Ada' , 'Ben' }
SELECT ?x { ?x v:name 'Ada' ; }
SELECT ?x { ?x v:name 'Ada' ; ; v:age ?a . }
SELECT ?x { ?x v:name 'Ada' .. }
SELECT ?x { ?x v:name 'Ada' ?x v:age ?a }
SELECT ?x { . }
SELECT ?x { }
SELECT * { }
SELECT ?x { ?x v:name "Ad\'a" }
SELECT ?x { ?x v:name 'Ad\"a' }
SELECT ?x { ?x v:name "C:\dir" }
SELECT ?x { ?x v:name 'Ada" }
SELECT ?x { ?x v:name "Ada'@en }
SELECT ?x { ?x v:name "Ada" @en }
SELECT ??x { ?x v:name "Ada" }
SELECT $x { ?x v:name "Ada" }
SELECT ?x-y { ?x v:name "Ada" }
SELECT ?x { ?x v:name "Ada" } # the end
SELECT ?x { ?x v:name "Ada" /* no comment */ }
SELECT ?x { << :ada v:name ?x >> v:age ?a }
SELECT ?x { 'Ada' ^v:name ?x }
SELECT ?x { 5 v:name ?x }
SELECT ?x { ?x 'name' ?y }
SELECT ?x { ?x a v:Keeper, v:Guest }
SELECT ?x { ?x A v:Keeper }
SELECT ?x { [] v:keeper ?x }
SELECT ?x { [ v:keeper ?x ] }
SELECT ?x { [ v:keeper ?x ; v:rank 2 ] . }
SELECT ?x { (1 2) v:keeper ?x }
INSERT DATA { :x v:name 'Y' }
DELETE WHERE { ?x v:name ?y }
SELECT (NOW() > '2000-01-01T00:00:00Z'^^xsd:dateTime AS ?b) { }
SELECT (TIMEZONE(?n) AS ?b) (TZ(?n) AS ?c) { ?x v:open ?n }
SELECT ?x { ?x v:age ?a } ORDER BY ?a ?x LIMIT 2
SELECT ?x { ?x v:age ?a } ORDER BY DESC ?a LIMIT 1
SELECT ?x { ?x v:age ?a } ORDER BY DESC(?a) ASC(?x) LIMIT 1
SELECT ?x { ?x v:age ?a } ORDER BY xsd:integer(?a) LIMIT 1
SELECT ?x { ?x v:age ?a } ORDER BY ?a + 1 LIMIT 1
SELECT ?x { ?x v:age ?a } ORDER BY (?a + 1) LIMIT 1
SELECT ?x (COUNT(?y) AS ?n) { ?x v:knows ?y } GROUP BY ?x ORDER BY DESC(?n) LIMIT 1
SELECT ?x (COUNT(?y) AS ?n) { ?x v:knows ?y } GROUP BY ?x ORDER BY DESC(COUNT(?y)) LIMIT 1
SELECT ?x { ?x v:knows ?y } GROUP BY ?x ORDER BY DESC(COUNT(?y)) LIMIT 1
SELECT (COUNT(?y) / COUNT(DISTINCT ?x) AS ?n) { ?x v:knows ?y }
SELECT (MAX(?a) - MIN(?a) AS ?n) { ?x v:age ?a }
SELECT (MAX(?n) AS ?m) { { SELECT ?x (COUNT(?y) AS ?n) { ?x v:knows ?y } GROUP BY ?x } }
SELECT ?x { ?x v:age ?a { SELECT (AVG(?b) AS ?m) { ?y v:age ?b } } FILTER(?a > ?m) }
SELECT ?x { { SELECT ?x { ?x v:age ?a } ORDER BY DESC(?a) LIMIT 1 } ?x v:knows ?y }
SELECT ?x (SAMPLE(?n) AS ?s) { ?x v:name ?n ; v:age ?a } GROUP BY ?x
SELECT (STR(COUNT(?x)) AS ?s) { ?x v:age ?a }
SELECT (IF(COUNT(?x) > 3, 'many', 'few') AS ?s) { ?x v:age ?a }
SELECT (COUNT(?x) AS ?s) { ?x v:nope ?a }
SELECT ?x (COUNT(?x) AS ?s) { ?x v:nope ?a } GROUP BY ?x
SELECT (COUNT(?x) AS ?s) { ?x v:nope ?a } GROUP BY ?x
SELECT ?o { ?s ?p ?o } ORDER BY ?o LIMIT 1000
SELECT ?o { ?s ?p ?o } ORDER BY DESC(?o) OFFSET 0
SELECT ?o { ?s ?p ?o } ORDER BY ?o LIMIT 40
SELECT DISTINCT ?o { ?s ?p ?o } ORDER BY DESC(?o) LIMIT 25
SELECT ?y { :ada v:knows+ ?y }
SELECT ?y { :ada v:knows{2} ?y }
SELECT ?x ?y { ?x v:partOf+ ?y }
SELECT ?x { ?x v:partOf/v:partOf :goods }
SELECT ?x { :ada (v:knows/v:knows)+ ?x }
SELECT ?x { :ada (v:knows|^v:keeper)/v:name ?x }
SELECT ?x ?y { ?x !(v:name|rdfs:label|v:age|a) ?y }
SELECT ?x ?y { ?x !(^v:knows|^v:keeper|^v:about) ?y }
SELECT ?x { :plum v:partOf* ?x }
SELECT ?x { ?x v:partOf? :goods }
SELECT (COUNT(*) AS ?n) { :ada v:knows/v:knows ?x }
SELECT (COUNT(*) AS ?n) { :ada (v:knows|v:knows) ?x }
SELECT ?x ?y { VALUES (?x ?y) { (:ada :cleo) (:ada :goods) } ?x v:knows+ ?y }
SELECT ?z { ?z v:knows|v:keeper ?z }
SELECT ?n { [ v:knows ?x ] v:knows/v:name ?n }
SELECT ?x { :ada ^v:keeper/v:sells/v:partOf* ?x }
SELECT ?x { { :ada v:knows ?x } UNION { :ada v:knows* ?x } FILTER(?x != :ada) }
SELECT (AVG(?p) AS ?x) { ?w v:price ?p }
SELECT (AVG(?p) AS ?x) { ?w v:nope ?p }
SELECT (SUM(?p) AS ?x) { ?w v:nope ?p }
SELECT (MIN(?p) AS ?x) (MAX(?p) AS ?y) (SAMPLE(?p) AS ?z) { ?w v:nope ?p }
SELECT (SUM(?a) AS ?x) { ?s v:area ?a }
SELECT (AVG(?a) AS ?x) { ?s v:area ?a }
SELECT (SUM(DISTINCT ?a) AS ?x) { ?s v:age ?a }
SELECT (AVG(?n) AS ?x) { ?s v:name ?n }
SELECT (SUM(?v) AS ?x) { VALUES ?v { 1 2.5 1.5e0 } }
SELECT (SUM(?v) AS ?x) { VALUES ?v { 1 'two' 3 } }
SELECT (COUNT(?v) AS ?x) (COUNT(DISTINCT ?v) AS ?y) (COUNT(*) AS ?z) { VALUES ?v { 1 1.0 1 UNDEF } }
SELECT (MIN(?v) AS ?x) (MAX(?v) AS ?y) { VALUES ?v { 'b' 'a' 'ab' } }
SELECT ?c (COUNT(?x) AS ?n) { ?x a ?c } GROUP BY ?c HAVING(COUNT(?x) > 2)
SELECT (COUNT(DISTINCT *) AS ?n) { ?x v:knows ?y }
SELECT ?c (AVG(?a) AS ?n) { ?x a ?c OPTIONAL { ?x v:age ?a } } GROUP BY ?c
SELECT ((COUNT(?x) + 1) AS ?n) { ?x v:age ?a } HAVING(SUM(?a) > 100)
SELECT (GROUP_CONCAT(?n; SEPARATOR='') AS ?g) { VALUES ?n { 'a' 'a' } }
SELECT (GROUP_CONCAT(DISTINCT ?n) AS ?g) { VALUES ?n { 'a' 'a' } }
SELECT (GROUP_CONCAT(?n) AS ?g) { ?x v:nope ?n }
SELECT ?k (SUM(?a) AS ?s) { ?x v:age ?a } GROUP BY (?a > 30 AS ?k)
SELECT (CONCAT('a'@en, 'b'@en) AS ?x) (CONCAT('a'@en, 'b') AS ?y) (CONCAT('a') AS ?z) { }
SELECT (SUBSTR('foobar', 4) AS ?x) (SUBSTR('foobar'@en, 2, 3) AS ?y) (SUBSTR('食べ物', 2, 1) AS ?z) { }
SELECT (UCASE('größe'@de) AS ?x) (LCASE('ÉCOLE') AS ?y) (STRLEN('größe') AS ?z) { }
SELECT (ENCODE_FOR_URI('a b/é~') AS ?x) { }
SELECT (STRBEFORE('abc', 'b') AS ?x) (STRAFTER('abc'@en, 'b') AS ?y) (STRBEFORE('abc', 'z') AS ?z) { }
SELECT (STRBEFORE('abc', '') AS ?x) (STRAFTER('abc'@en, '') AS ?y) (STRAFTER('abc'@en, 'z'@en) AS ?z) { }
SELECT (STRBEFORE('abc', 'b'@en) AS ?x) { }
SELECT (CONTAINS('foobar', 'bar') AS ?x) (STRSTARTS('foobar'@en, 'foo') AS ?y) (STRENDS('foobar', 'bar'@en) AS ?z) { }
SELECT (REPLACE('abcd', 'b', 'Z') AS ?x) (REPLACE('abab', 'B', 'Z', 'i') AS ?y) (REPLACE('aab', 'a+', 'Z') AS ?z) { }
SELECT (REPLACE('abcb', '([bc])', '<$1>') AS ?x) (REPLACE('A.b', '[.]', '') AS ?y) { }
SELECT (ABS(-2) AS ?x) (ABS(-1.5) AS ?y) (ABS(-1.5e0) AS ?z) { }
SELECT (CEIL(1.2) AS ?x) (FLOOR(-1.2) AS ?y) (ROUND(2.5) AS ?z) (ROUND(-2.5) AS ?w) { }
SELECT (YEAR(?t) AS ?y) (MONTH(?t) AS ?m) (DAY(?t) AS ?d) (HOURS(?t) AS ?h) (MINUTES(?t) AS ?i) (SECONDS(?t) AS ?s) { ?x v:open ?t }
SELECT (TZ(?t) AS ?x) (TIMEZONE(?t) AS ?y) { ?s v:open ?t }
SELECT (TZ('2024-01-01T00:00:00-08:00'^^xsd:dateTime) AS ?x) (TIMEZONE('2024-01-01T00:00:00-08:00'^^xsd:dateTime) AS ?y) { }
SELECT (MD5('foo') AS ?x) (SHA1('foo') AS ?y) (SHA256('foo') AS ?z) (SHA512('食') AS ?w) { }
SELECT (IF(1/0, 'a', 'b') AS ?x) (IF(false, 1/0, 'b') AS ?y) (COALESCE(1/0, 'c') AS ?z) { }
SELECT (2 IN (1, 2, 3) AS ?x) (2 NOT IN () AS ?y) (2 IN (1/0, 2) AS ?z) (2 IN (3, 1/0) AS ?w) { }
SELECT (STRDT('123', xsd:integer) AS ?x) (STRLANG('chat', 'fr') AS ?y) (STRDT('a'@en, xsd:string) AS ?z) { }
SELECT (isNumeric('1'^^xsd:int) AS ?x) (isNumeric('x'^^xsd:int) AS ?y) (isNumeric('1') AS ?z) { }
SELECT (BNODE('a') = BNODE('a') AS ?x) (BNODE() = BNODE() AS ?y) { }
SELECT (IRI('http://e/a') AS ?x) (URI(:ada) AS ?y) { }
SELECT (DATATYPE('a'@en) AS ?x) (DATATYPE('a') AS ?y) (DATATYPE(1.0) AS ?z) (DATATYPE(:ada) AS ?w) { }
SELECT (LANG('a'@en-GB) AS ?x) (LANGMATCHES('en-GB', 'en') AS ?y) (LANGMATCHES('', '*') AS ?z) { }
SELECT (xsd:integer('12') AS ?x) (xsd:integer(3.7) AS ?y) (xsd:integer('3.7') AS ?z) (xsd:integer(true) AS ?w) { }
SELECT (xsd:double('1e2') AS ?x) (xsd:float(1) AS ?y) (xsd:decimal(1e0) AS ?z) (xsd:decimal('1e0') AS ?w) { }
SELECT (xsd:boolean('true') AS ?x) (xsd:boolean(0) AS ?y) (xsd:boolean('x') AS ?z) (xsd:boolean(0.0e0) AS ?w) { }
SELECT (xsd:string(1) AS ?x) (xsd:string(:ada) AS ?y) (xsd:string(true) AS ?z) (xsd:string('a'@en) AS ?w) { }
SELECT (xsd:dateTime('2024-01-01T00:00:00Z') AS ?x) (xsd:dateTime('2024') AS ?y) { }
SELECT (1 + 1.0 AS ?x) (1 / 2 AS ?y) (1.0e0 + 1 AS ?z) (7 - -7 AS ?w) { }
SELECT (1 = 1.0 AS ?x) ('1' = 1 AS ?y) ('a' = 'a'@en AS ?z) (sameTerm(1, 1.0) AS ?w) { }
SELECT ('a' < 'b' AS ?x) (true > false AS ?y) ('2024-01-01'^^xsd:date < '2024-01-02'^^xsd:date AS ?z) { }
SELECT ((1/0 || true) AS ?x) ((1/0 && false) AS ?y) ((1/0 || false) AS ?z) (!(1/0) AS ?w) { }
SELECT ('x'^^v:t = 'x'^^v:t AS ?x) ('x'^^v:t = 'y'^^v:t AS ?y) ('x'^^v:t != 'y' AS ?z) { }
SELECT (COALESCE() AS ?x) { }
SELECT (CONCAT(3) AS ?x) (CONCAT(3, 'a') AS ?y) { }
""".strip("\n").replace("\n ", "\0").split("\n")
CASES = [case.replace("\0", "\n ") for case in CASES]
