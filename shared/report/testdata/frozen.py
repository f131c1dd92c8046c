"""Prints statistics of random samples as scipy gives them. Run once; tests read what it wrote.

    pip install numpy scipy
    python shared/report/testdata/frozen.py > shared/report/testdata/scipy.json
"""

import json
import sys

import numpy as np
import scipy
from scipy import stats


def number(value):
    return float(value)


def case(random):
    size_a, size_b = (int(n) for n in random.integers(3, 40, 2))
    # Scores of a benchmark: many ties at 0 and 1, some between.
    steps = int(random.choice([2, 5, 11, 1000]))
    a = random.integers(0, steps, size_a) / (steps - 1)
    b = np.clip(random.integers(0, steps, size_b) / (steps - 1) + random.choice([0, 0.1]), 0, 1)
    if a.std() == 0 or b.std() == 0:
        return None
    welch = stats.ttest_ind(a, b, equal_var=False)
    interval = welch.confidence_interval(0.95)
    paired = min(size_a, size_b)
    differences = a[:paired] - b[:paired]
    out = {
        "a": a.tolist(),
        "b": b.tolist(),
        "summary": [number(v) for v in (a.mean(), a.std(ddof=1), a.std(), *np.quantile(a, [0.25, 0.5, 0.75]))],
        "welch": [number(v) for v in (welch.statistic, welch.df, welch.pvalue, interval.low, interval.high)],
    }
    if differences.std() > 0:
        t = stats.ttest_1samp(differences, 0)
        out["paired"] = [number(t.statistic), number(t.pvalue)]
        w = stats.wilcoxon(differences, zero_method="wilcox", correction=False, method="approx")
        out["wilcoxon"] = [number(w.statistic), number(w.pvalue)]
    u = stats.mannwhitneyu(a, b).statistic
    out["cliff"] = number(2 * u / (size_a * size_b) - 1)
    out["holm"] = [sorted_ps(random) for _ in range(1)][0]
    return out


def sorted_ps(random):
    ps = random.uniform(0, 0.2, 6)
    order = np.argsort(ps)
    corrected = np.minimum(1, np.maximum.accumulate(ps[order] * np.arange(6, 0, -1)))
    back = np.empty(6)
    back[order] = corrected
    return [ps.tolist(), back.tolist()]


def main():
    random = np.random.default_rng(20261122)
    cases = []
    while len(cases) < 120:
        found = case(random)
        if found:
            cases.append(found)
    json.dump({"scipy": scipy.__version__, "numpy": np.__version__, "cases": cases}, sys.stdout)


main()
