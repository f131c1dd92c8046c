#!/usr/bin/env python3
"""Generates queries and documents, and evaluates them with rdflib.

    generate.py freeze FOLDER [COUNT]       write queries.jsonl.zst and documents.jsonl.zst: what the tests read; with
                                           COUNT the first of them only, to compare with the whole files
    generate.py run COUNT SEED FILE.zst     a large set of queries, for a comparison by hand
    generate.py documents COUNT SEED FILE.zst
                                           the same of documents, half of them of families
    generate.py again FILE.zst              evaluate again in another order; prints the seeds with the same result

Needs rdflib as pinned in requirements.txt. A query whose result depends on the order in which rdflib meets triples has no
result to compare with: `freeze` evaluates everything twice, with different hash seeds and orders of triples, and drops
what differs. All graphs and names are invented.
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

from cases import CASES
from documents import Document
from families import Family
from graphs import GRAPHS
from odd_documents import OddDocument
from queries import Query

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")

# Seeds of the first query written by hand, and of the first query or document of a family.
CASE_SEED = 5_000_000
FAMILY_SEED = 6_000_000

# Seeds of frozen queries and documents: from 0 to these, and so many of families.
QUERIES = 4200
DOCUMENTS = 1000
FAMILY_QUERIES = 1500
FAMILY_DOCUMENTS = 600

# Children of this process answer one question.
ASKED_IN = os.getpid()

# Processor time of one answer. The wall clock would make the set depend on how busy the machine is.
SECONDS_MAX = 3


# -- evaluation by rdflib


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
    from rdflib.plugins.sparql import algebra, parser

    signal.signal(signal.SIGPROF, alarm)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
    try:
        try:
            parsed = parser.parseQuery(text)
        except (pyparsing.ParseException, ValueError, TypeError):
            return {"parse": False}
        try:
            # What `graph.query(text)` does, without parsing, the slowest part, for a second time.
            result = graph.query(algebra.translateQuery(parsed, None, dict(graph.namespaces())))
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
        signal.setitimer(signal.ITIMER_PROF, 0)


def standard_store(text):
    """Oxigraph's own store of a graph, with the prefixes of its document."""
    import pyoxigraph

    parsed = pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.TURTLE)
    store = pyoxigraph.Store()
    store.extend(pyoxigraph.Quad(*triple) for triple in map(lambda quad: quad.triple, parsed))
    return store, parsed.prefixes


def standard_answer(store, prefixes, text):
    """The same of Oxigraph, by the standard. The store writes numbers and times in its own forms."""
    import pyoxigraph

    # Oxigraph aborts the process where the sort of the standard library finds that its order is none.
    if "ORDER BY" in text and os.getpid() == ASKED_IN:
        return apart(standard_answer, store, prefixes, text)
    try:
        rows = [list(row) for row in store.query(text, prefixes=prefixes)]
    except SyntaxError:
        return {"parse": False}
    except (RuntimeError, OSError, ValueError, TypeError) as error:
        return {"parse": True, "raised": type(error).__name__}
    rows = [row for row in rows if any(cell is not None for cell in row)]
    text_of = lambda term: "_:b" if isinstance(term, pyoxigraph.BlankNode) else term.value if isinstance(term, pyoxigraph.Literal) else str(term)
    return {"parse": True, "rows": len(rows), "values": sorted({text_of(cell) for row in rows for cell in row if cell is not None})}


def apart(call, *arguments):
    """The answer of a call in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_REAL, SECONDS_MAX)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.write(writing, json.dumps(call(*arguments)).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as said:
        text = said.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"parse": True, "raised": "abort"}


def triples_of(text, format):
    import rdflib
    from rdflib.term import BNode, Literal

    signal.signal(signal.SIGPROF, alarm)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
    try:
        graph = rdflib.Graph()
        graph.parse(data=text, format=format, publicID="http://example.org/base/")
        # What cannot be written cannot be compared: the evaluator writes each graph.
        graph.serialize(format="nt", encoding="utf-8")
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
        signal.setitimer(signal.ITIMER_PROF, 0)


def worker(order):
    """Answers what comes on standard input, one JSON line each."""
    sys.setrecursionlimit(5000)
    loaded = graphs(order)
    stores = {name: standard_store(text) for name, text in GRAPHS.items()}
    for line in sys.stdin:
        asked = json.loads(line)
        if "query" in asked:
            said = answer(loaded[asked["graph"]], asked["query"])
            if said is not None:
                said["standard"] = standard_answer(*stores[asked["graph"]], asked["query"])
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
        query = (Family if seed >= FAMILY_SEED else Query)(seed)
        text = query.write()
        yield {"seed": seed, "graph": query.graph, "query": text}


def case_items():
    """The queries written by hand. Their seeds begin where no run by hand has any."""
    for number, text in enumerate(CASES):
        yield {"seed": CASE_SEED + number, "graph": "fair", "query": text}


def document_items(seeds):
    for seed in seeds:
        document = (OddDocument if seed >= FAMILY_SEED else Document)(seed)
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
        most = int(sys.argv[3]) if len(sys.argv) > 3 else sys.maxsize
        queries, documents = min(QUERIES, most), min(DOCUMENTS, most)
        of_family = lambda count: range(FAMILY_SEED, FAMILY_SEED + min(count, most))
        head = [{"graph": name, "turtle": text} for name, text in sorted(GRAPHS.items())]
        write(f"{folder}/queries.jsonl.zst", head + list(frozen([*query_items([*range(queries), *of_family(FAMILY_QUERIES)]), *case_items()])))
        write(f"{folder}/documents.jsonl.zst", list(frozen(document_items([*range(documents), *of_family(FAMILY_DOCUMENTS)]))))
    elif mode == "run":
        count, seed = int(sys.argv[2]), int(sys.argv[3])
        head = [{"graph": name, "turtle": text} for name, text in sorted(GRAPHS.items())]
        answers = ask(list(query_items(range(seed, seed + count))), 1, 1)
        write(sys.argv[4], iter(head + [dict(item, **said) for item, said in answers if said is not None]))
    elif mode == "documents":
        count, seed = int(sys.argv[2]) // 2, int(sys.argv[3])
        asked = document_items([*range(seed, seed + count), *range(FAMILY_SEED + seed, FAMILY_SEED + seed + count)])
        write(sys.argv[4], [dict(item, **said) for item, said in ask(list(asked), 1, 1) if said is not None])
    elif mode == "again":
        said_first = {item["seed"]: item for item in read(sys.argv[2]) if "seed" in item}
        queries = [{key: item[key] for key in ("seed", "graph", "query")} for item in said_first.values()]
        stable = [item["seed"] for item, said in ask(queries, 2, 2) if dict(item, **(said or {})) == said_first[item["seed"]]]
        print(*stable, sep="\n")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
