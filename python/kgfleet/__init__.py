"""Exact, sandboxed scoring of RDF and SPARQL answers, by the program ``kgfleet`` that this package comes with.

>>> import kgfleet
>>> kgfleet.score_list("Ann\\nBob", ["Ann", "Bob", "Cem"]).value
0.8

Answers are judged in processes without files, network and privileges, within limits of time and memory. The scores are those
of ``kgfleet run``, because the same code gives them. Nothing but Python is needed; ``kgfleet.inspect`` needs `inspect_ai`,
``kgfleet.lm_eval`` needs `lm_eval`, and the tables of runs need `pyarrow` or `pandas`.
"""

from kgfleet._errors import KgfleetError, MaterialError, ProgramError, RequestError, ScorerDied
from kgfleet._runs import records
from kgfleet._scores import Compared, PackTasks, Prompt, Score, TaskInfo
from kgfleet._serving import Scorer
from kgfleet.every_eval_ever import to_every_eval_ever
from kgfleet.scoring import conforms, first_prompt, score, score_graph, score_list, score_sparql, tasks
from kgfleet.tables import to_dataframe, to_parquet

__all__ = [
    "Compared",
    "KgfleetError",
    "MaterialError",
    "PackTasks",
    "ProgramError",
    "Prompt",
    "RequestError",
    "Score",
    "Scorer",
    "ScorerDied",
    "TaskInfo",
    "conforms",
    "first_prompt",
    "records",
    "score",
    "score_graph",
    "score_list",
    "score_sparql",
    "tasks",
    "to_dataframe",
    "to_every_eval_ever",
    "to_parquet",
]
