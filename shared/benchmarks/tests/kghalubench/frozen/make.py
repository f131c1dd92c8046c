"""Makes the expectations of tests/reference.rs: token-set ratios by RapidFuzz 3, rank correlations by SciPy.

Needs `pip install rapidfuzz scipy numpy`; not a need of the tests. Run in this folder: python make.py
"""

import json
import random

import numpy
from rapidfuzz import fuzz, utils
from scipy import stats

WORDS = "amber bridge canal dawn Élan ferry grain harbour ink jetty kiln lamp mill näive oar pier quay rope sail tide 1934 x2".split()
SEPARATORS = [" ", "  ", ", ", ". ", "; ", "\n", " - ", "/", "'"]


def text(draw, words):
    parts = []
    for word in words:
        parts += [word.upper() if draw.random() < 0.1 else word, draw.choice(SEPARATORS)]
    return "".join(parts)


def pairs(draw):
    yield "", ""
    yield "", "word"
    yield "!!!", "..."
    yield "the same text", "text the same, the"
    for _ in range(400):
        first = draw.choices(WORDS, k=draw.randint(0, 40))
        second = draw.choices(WORDS, k=draw.randint(0, 40))
        if draw.random() < 0.3:
            second += ["".join(draw.choices("abcdefgh", k=draw.randint(1, 12))) for _ in range(draw.randint(1, 30))]
        yield text(draw, first), text(draw, second)


def main():
    draw = random.Random(1)
    ratios = []
    for first, second in pairs(draw):
        ratio = fuzz.token_set_ratio(first, second, processor=utils.default_process) / 100
        ratios.append({"first": first, "second": second, "ratio": ratio})
    ranks = []
    for seed in range(40):
        generator = numpy.random.default_rng(seed)
        size = int(generator.integers(3, 60))
        levels = int(generator.choice([3, 10, 1000]))
        x = generator.integers(0, levels, size)
        y = (x * (seed % 3 - 1) + generator.integers(0, levels, size)).astype(float)
        if len(set(x)) == 1 or len(set(y)) == 1:
            continue
        ranks.append({
            "x": [float(value) for value in x],
            "y": [float(value) for value in y],
            "spearman": float(stats.spearmanr(x, y).statistic),
            "kendall": float(stats.kendalltau(x, y).statistic),
        })
    with open("reference.json", "w", encoding="utf-8") as out:
        json.dump({"token_set_ratio": ratios, "ranks": ranks}, out, ensure_ascii=False, indent=0)
        out.write("\n")


if __name__ == "__main__":
    main()
