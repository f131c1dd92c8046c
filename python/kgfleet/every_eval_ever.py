"""A run in the format of `Every Eval Ever <https://evalevalai.com>`_, a shared database of evaluation results.

One document for each model, valid by version 0.3.0 of their schema. A result is a task: the mean of what stands for its
dialogues, with the standard error of the means of cases, because dialogues about one case are not independent.
"""

from __future__ import annotations

import time
from collections import defaultdict
from math import sqrt
from typing import Any, Dict, List, Optional, Tuple

from kgfleet._runs import records

#: The version of their schema.
SCHEMA_VERSION = "0.3.0"


def to_every_eval_ever(
    run: str,
    *,
    organization: str,
    relationship: str = "third_party",
    data_dir: Optional[str] = None,
    fleet: Optional[str] = None,
) -> List[Dict[str, Any]]:
    """A document for each model of a run, in the order of the run.

    ``organization`` is who made the run, and ``relationship`` what it is to the models' makers: `first_party`, `third_party`,
    `collaborative` or `other`. Tasks without a scored dialogue are left out.
    """
    results: "Dict[str, Dict[str, Dict[str, List[float]]]]" = {}
    seen: Dict[Tuple[str, str], Dict[str, Any]] = {}
    for line in records(run, data_dir=data_dir, fleet=fleet):
        record, value = line["record"], line["headline"]["value"]
        key = record["key"]
        of_model = results.setdefault(key["model"], {})
        if value is None:
            continue
        of_case = of_model.setdefault(key["task"], defaultdict(list))
        of_case[record["provenance"]["task"]["case"]].append(value)
        seen.setdefault((key["model"], key["task"]), line)
    documents = []
    for model, tasks in results.items():
        made = [_result(task, cases, seen[model, task]) for task, cases in tasks.items()]
        if made:
            first = next(line for (name, _), line in seen.items() if name == model)
            documents.append(_document(model, made, first, organization, relationship))
    return documents


def _document(
    model: str, results: List[Dict[str, Any]], line: Dict[str, Any], organization: str, relationship: str
) -> Dict[str, Any]:
    record = line["record"]
    served = record["provenance"]["model"]
    now = str(time.time())
    # A run knows the address of a server, and not whose it is or who may have its weights.
    details = {"deployment_type": "unknown", "model_availability": "unknown"}
    details.update((name, str(served[name])) for name in ("connector", "reported", "system_fingerprint") if served.get(name))
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"kgfleet/{model}/{now}",
        "evaluation_timestamp": record["started_at"],
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_name": line["run"],
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": relationship,
        },
        "eval_library": {"name": "kgfleet", "version": record["provenance"]["kgfleet"]},
        "model_info": {"name": model, "id": served.get("requested") or model, "additional_details": details},
        "evaluation_results": results,
    }


def _result(task: str, cases: Dict[str, List[float]], line: Dict[str, Any]) -> Dict[str, Any]:
    values = [value for of_case in cases.values() for value in of_case]
    mean = sum(values) / len(values)
    uncertainty: Dict[str, Any] = {"num_samples": len(values)}
    error = clustered_error(list(cases.values()))
    if error is not None:
        uncertainty["standard_error"] = {"value": error, "method": "analytic, clustered by case"}
    provenance = line["record"]["provenance"]
    of_pack = provenance["task"]
    sampling = provenance["sampling"]
    known = ("temperature", "top_p", "top_k", "max_tokens")
    return {
        "evaluation_name": task,
        "source_data": {
            "dataset_name": of_pack["pack"],
            "source_type": "other",
            "additional_details": {"pack_hash": of_pack["pack_hash"], "cases": str(len(cases))},
        },
        "metric_config": {
            "evaluation_description": f"{line['headline']['score']} of {of_pack['class']} {of_pack['version']}",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": min(0.0, *values),
            "max_score": max(1.0, *values),
        },
        "score_details": {"score": mean, "uncertainty": uncertainty},
        "generation_config": {
            "generation_args": {name: sampling[name] for name in known if sampling.get(name) is not None},
            "additional_details": {"scorer": of_pack["scorer"]},
        },
    }


def clustered_error(clusters: List[List[float]]) -> Optional[float]:
    """The standard error of a mean whose values are independent between clusters only; ``None`` for a single cluster.

    Cluster-robust, with the usual factor for few clusters, as inspect_ai has it.
    """
    if len(clusters) < 2:
        return None
    values = [value for cluster in clusters for value in cluster]
    mean = sum(values) / len(values)
    squares = sum(sum(value - mean for value in cluster) ** 2 for cluster in clusters)
    return sqrt(squares * len(clusters) / (len(clusters) - 1)) / len(values)
