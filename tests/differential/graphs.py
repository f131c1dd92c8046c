"""The invented graphs, and what queries about them are made of."""

E = "http://example.org/fair/"
PREFIXES = f"""@prefix : <{E}> .
@prefix v: <http://example.org/vocab#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""

# A fair with stalls, wares and keepers; a small weather station; a library; a shop whose values have odd forms.
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
    "shop": PREFIXES + """
:tea a :Thing ; :kind :k1 ; :price 12.50 ; :code 007 ; :mass '1.0'^^xsd:double ; :sold '2026-03-01T10:30:00.50'^^xsd:dateTime ;
  :day '2026-03-01'^^xsd:date ; :open '1'^^xsd:boolean ; :note 'x' ; :in :box ; :near :jam .
:jam a :Thing ; :kind :k1 ; :price 9.00 ; :code 42 ; :mass '0.50'^^xsd:double ; :sold '2026-03-01T10:30:00Z'^^xsd:dateTime ;
  :day '2026-03-02'^^xsd:date ; :open false ; :note 'x'@en ; :in :box .
:rye a :Thing ; :kind :k2 ; :price 7.250 ; :code -3 ; :mass '1E1'^^xsd:double ; :sold '2026-03-01T12:45:00+02:00'^^xsd:dateTime ;
  :open true ; :note 1 ; :on :shelf ; :near :tea .
:box :on :shelf . :shelf :in :shop .
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
