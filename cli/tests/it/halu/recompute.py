#!/usr/bin/env python3
"""Computes KGHaluBench's tables again from its table of verdicts, with nothing but the standard library.

usage: recompute.py FOLDER

The folder holds what `kgfleet table NAME --show SHOW --format csv` prints: halu-verdicts.csv, and
any of halu.csv, halu-answers.csv, halu-stages.csv, halu-rates.csv and halu-groups.csv, which are compared with what follows from
it. Ends with 1 and names every number that differs.

Wa is checked up to one factor: the mean difficulty of the scale, which is not in the verdicts where weights bring it.
"""

import csv
import math
import os
import sys
from collections import defaultdict

FACTS = 3
TOLERANCE = 1e-9
FILTERS = ["nli", "llm", "expert"]


def read(folder, name):
    path = os.path.join(folder, name + ".csv")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def deviation(values):
    values = [value for value in values if value is not None]
    if len(values) < 2:
        return None
    middle = sum(values) / len(values)
    return math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1))


def share(part, whole):
    return part / whole if whole else None


class Counts:
    """What became of some answers."""

    def __init__(self, rows):
        outcome = lambda name: [row for row in rows if row["outcome"] == name]
        scored = [row for row in rows if row["outcome"] != "not scored"]
        aligned = outcome("aligned")
        wrong = [sum(row[f"fact {n + 1}"] == "wrong" for n in range(FACTS)) for row in aligned]
        self.scored = len(scored)
        self.not_scored = len(rows) - len(scored)
        self.aligned = len(aligned)
        self.other = len(outcome("other entity"))
        self.abstentions = len(outcome("abstained"))
        self.accuracy = share(sum(int(row["points"]) for row in scored), FACTS * len(scored))
        self.difficulty = mean([float(row["difficulty"]) for row in scored])
        self.abstained = share(self.abstentions, self.scored)
        self.bok = share(self.other, self.scored - self.abstentions)
        self.dok = share(sum(wrong), FACTS * self.aligned)
        self.wrong = [wrong.count(n) for n in range(FACTS + 1)]
        self.decided = {
            name: sum(row[f"fact {n + 1} decided by"] == name for row in aligned for n in range(FACTS))
            for name in FILTERS
        }


class Model:
    """The numbers of a model: of all answers, and over assessments."""

    def __init__(self, rows):
        by_assessment = defaultdict(list)
        for row in rows:
            by_assessment[row["assessment"]].append(row)
        parts = [Counts(rows) for rows in by_assessment.values()]
        self.all = Counts(rows)
        self.over = {
            "accuracy": [part.accuracy for part in parts],
            "abstained": [part.abstained for part in parts],
            "Halu_BOK": [part.bok for part in parts],
            "Halu_DOK": [part.dok for part in parts],
            # Up to the mean difficulty of the scale.
            "Wa": [
                None if part.accuracy is None else part.accuracy * part.difficulty for part in parts
            ],
        }
        self.pooled = {
            "accuracy": self.all.accuracy,
            "abstained": self.all.abstained,
            "Halu_BOK": self.all.bok,
            "Halu_DOK": self.all.dok,
        }


class Check:
    """Compares numbers, and remembers those that differ."""

    def __init__(self):
        self.equal = 0
        self.wrong = []

    def number(self, where, told, expected):
        told = float(told) if told not in ("", None) else None
        same = told == expected if told is None or expected is None else abs(told - expected) < TOLERANCE
        if same:
            self.equal += 1
        else:
            self.wrong.append(f"{where}: the table says {told}, from the verdicts follows {expected}")

    def percent(self, where, told, expected):
        self.number(where, told, None if expected is None else 100 * expected)


def main(folder):
    verdicts = read(folder, "halu-verdicts")
    if verdicts is None:
        sys.exit(f"{folder} has no halu-verdicts.csv")
    rows_of = defaultdict(list)
    for row in verdicts:
        rows_of[row["model"]].append(row)
    if len({row["pipeline"] for row in verdicts}) > 1:
        sys.exit("the verdicts are of several benchmarks; this script reads those of one")
    models = {name: Model(rows) for name, rows in rows_of.items()}
    check = Check()

    # The factor between accuracy times difficulty and Wa is one number for all models.
    factor = None
    for row in read(folder, "halu") or []:
        model, name = models[row["model"]], row["model"]
        for column, key in [
            ("accuracy %", "accuracy"),
            ("abstained %", "abstained"),
            ("Halu_BOK %", "Halu_BOK"),
            ("Halu_DOK %", "Halu_DOK"),
        ]:
            check.percent(f"halu, {name}, {column}", row[column], mean(model.over[key]))
        check.percent(f"halu, {name}, accuracy sd", row["accuracy sd"], deviation(model.over["accuracy"]))
        check.number(f"halu, {name}, scored", row["scored"], model.all.scored)
        check.number(f"halu, {name}, not scored", row["not scored"], model.all.not_scored)
        weighed = mean(model.over["Wa"])
        if row["Wa %"] and weighed:
            factor = factor or float(row["Wa %"]) / 100 / weighed
            check.percent(f"halu, {name}, Wa %", row["Wa %"], factor * weighed)
            spread = deviation(model.over["Wa"])
            check.percent(f"halu, {name}, Wa sd", row["Wa sd"], None if spread is None else factor * spread)

    for row in read(folder, "halu-answers") or []:
        counts, name = models[row["model"]].all, row["model"]
        for column, part in [
            ("aligned %", counts.aligned),
            ("other entity %", counts.other),
            ("abstained %", counts.abstentions),
        ]:
            check.percent(f"halu-answers, {name}, {column}", row[column], share(part, counts.scored))
        for n, part in enumerate(counts.wrong):
            check.percent(f"halu-answers, {name}, {n} wrong %", row[f"{n} wrong %"], share(part, counts.aligned))

    facts = sum(FACTS * model.all.aligned for model in models.values())
    for row in read(folder, "halu-stages") or []:
        if row["stage"] in FILTERS:
            decided = sum(model.all.decided[row["stage"]] for model in models.values())
            check.number(f"halu-stages, {row['stage']}, facts decided", row["facts decided"], decided)
            check.percent(f"halu-stages, {row['stage']}, share %", row["share %"], share(decided, facts))

    scaled = lambda key, values: [
        value if value is None or key != "Wa" else (factor or 0) * value for value in values
    ]
    for row in read(folder, "halu-rates") or []:
        model, key = models[row["model"]], row["number"]
        where = f"halu-rates, {row['model']}, {key}"
        check.percent(f"{where}, mean %", row["mean %"], mean(scaled(key, model.over[key])))
        check.percent(f"{where}, sd %", row["sd %"], deviation(scaled(key, model.over[key])))
        check.percent(f"{where}, pooled %", row["pooled %"], model.pooled.get(key))

    for row in read(folder, "halu-groups") or []:
        if row["models"] == "all models":
            key = row["number"]
            over = [scaled(key, model.over[key]) for model in models.values()]
            check.percent(f"halu-groups, {key}, mean %", row["mean %"], mean([mean(values) for values in over]))
            check.percent(f"halu-groups, {key}, sd %", row["sd %"], mean([deviation(values) for values in over]))

    for text in check.wrong:
        print(text)
    print(f"{check.equal} numbers are equal, {len(check.wrong)} differ")
    return 1 if check.wrong or not check.equal else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
