"""What scoring gives: plain values without behaviour, but for reading them from the program's lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple


@dataclass(frozen=True)
class Prompt:
    """A prompt of a dialogue: the first, or a follow-up to an answer."""

    #: `first`, or why it is asked: `syntax`, `empty-result`, `structure`, `content`, `formatting`.
    kind: str
    text: str


@dataclass(frozen=True)
class Compared:
    """One part of what was compared, such as a query, its result, a graph or a list; each as text for people."""

    what: str
    #: What the case expects; ``None`` where it says nothing of this part.
    expected: Optional[str]
    #: What was found in the answer; ``None`` where nothing was.
    extracted: Optional[str]


@dataclass(frozen=True)
class Score:
    """The scores of one dialogue."""

    #: The score that stands for the dialogue in tables, from 0 to 1 but for few tasks; ``None`` if it has none.
    value: Optional[float]
    #: Where `value` stands in `scores`, such as `f1` or `max.combined`.
    headline: str
    #: All scores by name; those of tasks with several rounds by round (`0`, `1`, ..., `mean`, `max`, `last`), then by name.
    scores: Mapping[str, Any]
    #: Explanations of the scores, by name or by round and name.
    infos: Mapping[str, Any]
    #: What is asked next; ``None`` when the dialogue is over.
    next: Optional[Prompt]
    #: The system prompt of the dialogue, if its task has one.
    system: Optional[str]
    #: What was compared, of the answer that `value` is about; empty if the call did not ask for it.
    compared: Tuple[Compared, ...]
    #: A right answer, or what is expected, if the pack says it.
    target: Optional[str]
    #: The limit that an answer hit: `cpu-time`, `memory`, `nesting`, `size` or `crash`. It is scored as not readable or as
    #: finding nothing.
    limit: Optional[str]
    #: Why there are no scores: a judge's reply that is none of the choices.
    unscored: Optional[str]

    @property
    def extracted(self) -> Optional[str]:
        """What was found in the answer, all parts together; ``None`` if nothing was, or the call did not ask for it."""
        parts = [part.extracted for part in self.compared if part.extracted is not None]
        return "\n\n".join(parts) if parts else None

    def flat(self) -> Dict[str, float]:
        """All scores under one name each, such as `max.combined`, in their order."""
        return {".".join(filter(None, place)): value for place, value in leaves(self.scores)}


def leaves(scores: Mapping[str, Any]) -> "list[Tuple[Tuple[str, str], float]]":
    """The scores with their places: the group, which may be empty, and the name."""
    found = []
    for name, value in scores.items():
        if isinstance(value, Mapping):
            found.extend(((name, inner), float(number)) for inner, number in value.items() if _is_number(number))
        elif _is_number(value):
            found.append((("", name), float(value)))
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True)
class TaskInfo:
    """A task of a pack."""

    label: str
    #: The name of its scoring rules, and their version.
    task_class: str
    version: str
    #: Where the score that stands for a dialogue is.
    headline: str
    #: Whether answers may get follow-ups.
    rounds: bool
    #: The names of its cases. Iteration `i` asks case `i` modulo their number.
    cases: Tuple[str, ...]


@dataclass(frozen=True)
class PackTasks:
    """A pack and its tasks."""

    name: str
    version: str
    #: SHA-256 of its manifest, in hexadecimal digits.
    hash: str
    #: Whether its texts must not be published in the clear.
    protected: bool
    #: The version of the scoring rules, with all limits.
    scorer: str
    tasks: Tuple[TaskInfo, ...]


def score_of(line: Mapping[str, Any]) -> Score:
    """Reads a reply of the program."""
    following = line.get("next")
    return Score(
        value=line.get("value"),
        headline=line.get("headline", ""),
        scores=line.get("scores", {}),
        infos=line.get("infos", {}),
        next=Prompt(following["kind"], following["text"]) if following else None,
        system=line.get("system"),
        compared=tuple(Compared(**part) for part in line.get("compared", ())),
        target=line.get("target"),
        limit=line.get("limit"),
        unscored=line.get("unscored"),
    )


def tasks_of(line: Mapping[str, Any]) -> PackTasks:
    """Reads the program's list of the tasks of a pack."""
    tasks = tuple(
        TaskInfo(
            label=task["label"],
            task_class=task["class"],
            version=task["version"],
            headline=task["headline"],
            rounds=task["rounds"],
            cases=tuple(task["cases"]),
        )
        for task in line["tasks"]
    )
    pack = line["pack"]
    return PackTasks(pack["name"], pack["version"], pack["hash"], pack["protected"], pack["scorer"], tasks)
