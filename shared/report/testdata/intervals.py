"""Prints intervals of means of tasks for random scores, computed with numpy alone. Run once; tests read what it wrote.

    pip install numpy scipy
    python shared/report/testdata/intervals.py > shared/report/testdata/intervals.json

The same definition as shared/report/src/stats/interval.rs, written independently, matrix by matrix: a regression of the values on
one constant for each task, to which an imaginary exercise at each end of the scale is added. Tasks share it in proportion to the
square of their weight over the number of their exercises (of a single one, of their values).
"""

import json
import sys

import numpy as np
from scipy import stats


def interval(tasks, low, high):
    units = np.array([len(set(cases)) if len(set(cases)) > 1 else len(values) for _, cases, values in tasks])
    shares = np.array([task[0] for task in tasks]) ** 2 / units
    centers, variances, freedoms = [], [], []
    for (weight, cases, values), share in zip(tasks, shares / shares.sum()):
        cases, values = np.asarray(cases), np.asarray(values)
        if len(set(cases)) == 1:
            sizes, means = np.ones(len(values)), values
        else:
            names = sorted(set(cases))
            sizes = np.array([(cases == name).sum() for name in names])
            means = np.array([values[cases == name].mean() for name in names])
        exercises = len(means)
        weights = np.concatenate([sizes / sizes.mean(), [share, share]])
        points = np.concatenate([means, [low, high]])
        center = np.average(points, weights=weights)
        residuals = points - center
        # An imaginary exercise counts for its share once, not squared: it is a part of one exercise, not a small one.
        squares = np.concatenate([weights[:-2] ** 2, [share, share]])
        freedom = max(exercises - 1, 2 * share)
        centers.append(center)
        variances.append((squares * residuals**2).sum() / (exercises + 2 * share - 1) / (exercises + 2 * share))
        freedoms.append(freedom)
    weights = np.array([task[0] for task in tasks])
    weights = weights / weights.sum()
    variance = (weights**2 * variances).sum()
    freedom = variance**2 / ((weights**2 * variances) ** 2 / freedoms).sum()
    center, reach = (weights * centers).sum(), min(stats.t.ppf(0.975, freedom), 1000) * np.sqrt(variance)
    mean = sum(weight * np.mean(values) for weight, (_, _, values) in zip(weights, tasks))
    ends = np.clip([center - reach, center + reach], low, high)
    p = 2 * stats.t.sf(abs(center) / np.sqrt(variance), freedom)
    return [float(mean), float(min(ends[0], mean)), float(max(ends[1], mean)), float(p)]


def main():
    random = np.random.default_rng(20261124)
    found = []
    for _ in range(60):
        is_difference = bool(random.integers(2))
        tasks = []
        for _ in range(int(random.choice([1, 2, 5, 26]))):
            exercises, dialogues = int(random.choice([1, 3, 5, 20])), int(random.integers(2, 30))
            cases = random.integers(0, exercises, dialogues)
            values = np.clip(random.normal(random.uniform(), 0.3, dialogues), 0, 1)
            if random.integers(2):
                values = np.round(values)
            if is_difference:
                values = values - np.clip(random.normal(0.5, 0.3, dialogues), 0, 1)
            tasks.append((float(random.integers(1, 4)), cases.tolist(), values.tolist()))
        low = -1.0 if is_difference else 0.0
        found.append({"low": low, "tasks": tasks, "expected": interval(tasks, low, 1.0)})
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
