"""Prints intervals, differences and gates of the published files of six models, computed with numpy and scipy alone.

    pip install numpy scipy pyzipper
    python shared/report/testdata/published.py FOLDER PASSWORD > shared/report/testdata/published.json

FOLDER holds the archives of the published results. Only names of models and numbers are printed, no text of an exercise. Tests read
what it wrote. The definition of an interval is that of intervals.py.
"""

import itertools
import json
import pathlib
import sys
from collections import defaultdict

import numpy as np
import pyzipper

from intervals import interval

HEADLINES = {
    "RdfConnectionExplainStatic": ["listTrimF1"],
    "RdfFriendCount": ["f1"],
    "RdfSyntaxFixList": ["max", "combined"],
    "SparqlSyntaxFixingListLcQuad": ["max", "combined"],
    "Text2SparqlExecEvalList": ["max", "combined"],
    "Sparql2AnswerListOrga": ["combinedF1"],
    "Text2AnswerListOrga": ["combinedF1"],
}

GATE = 0.01


def records(folder, password):
    for archive in sorted(pathlib.Path(folder).glob("*.zip")):
        with pyzipper.AESZipFile(archive) as opened:
            opened.setpassword(password.encode())
            for name in sorted(opened.namelist()):
                if name.endswith("_result.json"):
                    yield from json.loads(opened.read(name))


def headline(label, scores):
    path = next(path for begin, path in HEADLINES.items() if label.startswith(begin))
    for key in path:
        scores = scores.get(key) if isinstance(scores, dict) else None
    return scores if isinstance(scores, (int, float)) else None


def case_of(record):
    data = record.get("taskData") or {}
    named = data.get("uid") or data.get("taskUid")
    return named if isinstance(named, str) else json.dumps(data)


def read(folder, password):
    """model -> task -> {(case, turn): score}, turn being how often the case came before."""
    found = defaultdict(lambda: defaultdict(dict))
    turns = defaultdict(int)
    for record in records(folder, password):
        model = record["modelId"].split("--", 1)[1].rsplit("--", 1)[0]
        label, case = record["taskInfo"]["taskLabel"], case_of(record)
        turn = turns[model, label, case]
        turns[model, label, case] += 1
        score = headline(label, record["scores"])
        if score is not None:
            found[model][label][case, turn] = score
    return found


def strata(tasks):
    named = []
    for values in tasks:
        cases = sorted({case for (case, _) in values})
        ordered = sorted(values)
        named.append((1.0, [cases.index(case) for (case, _) in ordered], [values[key] for key in ordered]))
    return named


def main():
    found = read(sys.argv[1], sys.argv[2])
    models = {}
    for model, tasks in sorted(found.items()):
        models[model] = {
            "tasks": {label: interval(strata([values]), 0.0, 1.0)[:3] for label, values in sorted(tasks.items())},
            "all": interval(strata(tasks.values()), 0.0, 1.0)[:3],
        }
    pairs = []
    for a, b in itertools.combinations(sorted(found), 2):
        differences = []
        for label in sorted(found[a]):
            first, second = found[a][label], found[b].get(label, {})
            differences.append({key: second[key] - first[key] for key in first if key in second})
        mean, low, high, p = interval(strata([d for d in differences if d]), -1.0, 1.0)
        within = np.mean([np.var(list(d.values()), ddof=1) for d in differences if len(d) > 1])
        effect = mean / np.sqrt(within)
        holds = {"forth": high >= -GATE, "back": low <= GATE}
        pairs.append({"first": a, "second": b, "expected": [mean, low, high, p, float(effect)], "holds": holds})
    json.dump({"gate": GATE, "models": models, "pairs": pairs}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
