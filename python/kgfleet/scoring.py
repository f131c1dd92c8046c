"""Scores of answers: to tasks of packs and task files, or beside a reference that the caller gives."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, Optional, Sequence, Union

from kgfleet._scores import PackTasks, Prompt, Score, score_of, tasks_of
from kgfleet._serving import Scorer, shared

#: The pack that comes with the program.
CORE = "core"


def tasks(pack: str = CORE, *, scorer: Scorer = shared) -> PackTasks:
    """The tasks of a pack: `core`, one that comes with the program, a pack file or a task file."""
    return tasks_of(scorer.request({"tasks": pack}))


def score(
    task: str,
    case: Union[str, int],
    answers: Union[str, Sequence[str]],
    *,
    pack: str = CORE,
    seed: int = 0,
    compare: bool = True,
    scorer: Scorer = shared,
) -> Score:
    """The scores of one dialogue.

    ``task`` is a label and ``case`` the name of a case, or the number of an iteration from 0, as in a run: iteration `i` asks
    case `i` modulo their number. ``answers`` are those of one dialogue in their order, or its only one; each is judged as it
    comes, and `next` of the result is what the dialogue asks after the last one. ``seed`` is that of the run, on which some
    prompts depend. Without ``compare`` it is faster and tells nothing of what was extracted and expected.

    >>> score("RdfFriendCount-nt-1", 0, "nobody").value
    0.0
    """
    return score_of(scorer.request(_line(pack, task, case, answers, seed, compare)))


def score_all(
    dialogues: Iterable["tuple[str, Union[str, int], Union[str, Sequence[str]]]"],
    *,
    pack: str = CORE,
    seed: int = 0,
    compare: bool = False,
    scorer: Scorer = shared,
) -> Iterator[Score]:
    """The scores of many dialogues, in their order, judged on all processors.

    ``dialogues`` are (task, case, answers), and may be endless: only some are read ahead.
    """
    lines = (_line(pack, task, case, answers, seed, compare) for task, case, answers in dialogues)
    return map(score_of, scorer.request_all(lines))


def first_prompt(
    task: str, case: Union[str, int], *, pack: str = CORE, seed: int = 0, scorer: Scorer = shared
) -> "tuple[Optional[str], Prompt]":
    """The system prompt, if there is one, and the first prompt of a dialogue."""
    opened = score(task, case, (), pack=pack, seed=seed, scorer=scorer)
    assert opened.next is not None, "a dialogue without answers has a first prompt"
    return opened.system, opened.next


def score_sparql(
    query: str,
    reference: str,
    graph: str,
    *,
    format: str = "turtle",
    take: str = "text",
    compare: bool = True,
    scorer: Scorer = shared,
) -> Score:
    """Compares what a SPARQL query finds on a graph with what a reference query finds.

    `value` is the F1 of rows, 0 to 1; columns may be named, ordered and numbered otherwise. ``graph`` is a document in
    ``format`` (`turtle`, `nt`, `jsonld`, `xml`). ``take`` is `text` if all of ``query`` is the query, `block` if it is the
    first fenced code block. Many calls on one graph read it once if no other comes between.
    """
    given = {"kind": "sparql", "reference": reference, "graph": graph, "format": format, "take": take}
    return _given(given, query, compare, scorer)


def score_graph(
    text: str,
    reference: str,
    format: str = "turtle",
    *,
    take: str = "text",
    compare: bool = True,
    scorer: Scorer = shared,
) -> Score:
    """Compares the triples of a document with those of a reference in the same ``format``.

    `value` is the F1 of triples, 0 to 1, whatever blank nodes are called; numbers and truth values count by value.
    """
    given = {"kind": "graph", "reference": reference, "format": format, "take": take}
    return _given(given, text, compare, scorer)


def score_list(
    text: str,
    reference: Sequence[str],
    *,
    items: str = "text",
    ordered: bool = False,
    compare: bool = True,
    scorer: Scorer = shared,
) -> Score:
    """Compares a list, one item a line or in JSON, with a reference.

    `value` is the F1 of items, 0 to 1. ``items`` are `text` (but for case, quotes and emphasis), `iri`, `number` or `record`.
    """
    given = {"kind": "list", "reference": list(reference), "items": items, "ordered": ordered}
    return _given(given, text, compare, scorer)


def conforms(
    graph: str, shapes: str, *, format: str = "turtle", take: str = "text", scorer: Scorer = shared
) -> bool:
    """Whether a graph has SHACL shapes, which are given in Turtle. What cannot be read does not conform.

    SHACL Core without recursive shapes; results of every severity are violations.
    """
    given = {"kind": "conforms", "shapes": shapes, "format": format, "take": take}
    return _given(given, graph, False, scorer).value == 1.0


def _line(
    pack: str, task: str, case: Union[str, int], answers: Union[str, Sequence[str]], seed: int, compare: bool
) -> Dict[str, Any]:
    listed = [answers] if isinstance(answers, str) else list(answers)
    return {"pack": pack, "task": task, "case": case, "answers": listed, "seed": seed, "compare": compare}


def _given(given: Dict[str, Any], answer: str, compare: bool, scorer: Scorer) -> Score:
    return score_of(scorer.request({"given": given, "answers": [answer], "compare": compare}))
