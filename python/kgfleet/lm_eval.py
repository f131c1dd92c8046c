"""Tasks and metric functions for the lm-evaluation-harness.

``python -m kgfleet.lm_eval FOLDER`` writes a task file for each task of a pack and a group of them all; then
``lm_eval --include_path FOLDER --tasks kgfleet --apply_chat_template ...`` asks them. The harness holds no dialogues: it asks
the first prompt of a case and judges that one answer. For tasks with follow-ups that is the first round.

A YAML of your own may use `process_results` for documents that have the fields `task`, `iteration` and `pack`.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import kgfleet
from kgfleet.scoring import CORE

#: Name of the group of all tasks of a pack.
GROUP = "kgfleet"

#: Most tokens of an answer, unless `--gen_kwargs` says otherwise.
ANSWER_TOKENS_MAX = 4096

_TASK = """\
task: {name}
custom_dataset: !function {module}.documents
dataset_kwargs:
  task: {label}
  pack: {pack}
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{target}}}}"
process_results: !function {module}.process_results
generation_kwargs:
  until: []
  max_gen_toks: {tokens}
metric_list:
  - metric: score
    aggregation: mean
    higher_is_better: true
metadata:
  version: {version}
"""

_GROUP = """\
group: {group}
task:
{tasks}
aggregate_metric_list:
  - metric: score
    aggregation: mean
    weight_by_size: false
metadata:
  version: 1
"""

#: What a YAML names must lie beside it.
_FUNCTIONS = '"""The functions that the task files of this folder name."""\n\nfrom kgfleet.lm_eval import documents, process_results\n'


def documents(
    task: str, pack: str = CORE, iterations: Optional[int] = None, seed: int = 0, **_: Any
) -> "Dict[str, Any]":
    """The documents of a task: the prompt of each case, or of so many iterations of a run with this seed."""
    import datasets

    cases = _cases(task, pack)
    made = []
    for iteration in range(iterations or len(cases)):
        opened = kgfleet.score(task, iteration, (), pack=pack, seed=seed)
        assert opened.next is not None, "a dialogue without answers has a first prompt"
        made.append(
            {
                "task": task,
                "pack": pack,
                "case": cases[iteration % len(cases)],
                "iteration": iteration,
                "seed": seed,
                "prompt": f"{opened.system}\n\n{opened.next.text}" if opened.system else opened.next.text,
                "target": opened.target or "",
            }
        )
    return datasets.DatasetDict({"test": datasets.Dataset.from_list(made)})


def process_results(doc: Dict[str, Any], results: Sequence[str]) -> Dict[str, float]:
    """The metric `score` of a document: what stands for its dialogue, of its one answer."""
    found = kgfleet.score(
        doc["task"], doc["iteration"], results[0], pack=doc["pack"], seed=doc.get("seed", 0), compare=False
    )
    return {"score": 0.0 if found.value is None else found.value}


def write_tasks(folder: str, pack: str = CORE) -> List[str]:
    """Writes the task files of a pack, with their group `kgfleet`, and returns the names of the tasks."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    module = "kgfleet_functions"
    (place / f"{module}.py").write_text(_FUNCTIONS, encoding="utf-8")
    names = []
    for info in kgfleet.tasks(pack).tasks:
        name = f"{GROUP}-" + re.sub(r"[^\w-]", "-", info.label)
        text = _TASK.format(
            name=name,
            module=module,
            label=_quoted(info.label),
            pack=_quoted(pack),
            tokens=ANSWER_TOKENS_MAX,
            version=_quoted(info.version),
        )
        (place / f"{name}.yaml").write_text(text, encoding="utf-8")
        names.append(name)
    listed = "\n".join(f"  - {name}" for name in names)
    (place / f"{GROUP}.yaml").write_text(_GROUP.format(group=GROUP, tasks=listed), encoding="utf-8")
    return names


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _cases(task: str, pack: str) -> Sequence[str]:
    for info in kgfleet.tasks(pack).tasks:
        if info.label == task:
            return info.cases
    raise kgfleet.MaterialError(f"the pack {pack} has no task `{task}`")


def main() -> None:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m kgfleet.lm_eval", description="Write tasks of a pack for lm_eval.")
    parser.add_argument("folder", help="where the task files are written")
    parser.add_argument("--pack", default=CORE, help="core, a pack file or a task file (default: core)")
    arguments = parser.parse_args()
    for name in write_tasks(arguments.folder, arguments.pack):
        print(name)


if __name__ == "__main__":
    main()
