"""Tasks, solver and scorer for inspect_ai, and runs as its logs.

``inspect eval kgfleet/RdfFriendCount-nt-1 --model ...`` asks a task of the program's own pack; ``kgfleet/task`` with
``-T task=LABEL -T pack=FILE`` one of any pack or task file.
"""

from __future__ import annotations

import json
import re
import warnings
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalMetric, EvalPlan, EvalPlanStep, EvalResults
from inspect_ai.log import EvalSample, EvalScore, EvalSpec, EvalStats, write_eval_log
from inspect_ai.model import ChatCompletionChoice, ChatMessage, ChatMessageAssistant, ChatMessageSystem
from inspect_ai.model import ChatMessageUser, ContentReasoning, ContentText, GenerateConfig, ModelOutput, ModelUsage
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import concurrency

import kgfleet
from kgfleet.every_eval_ever import clustered_error
from kgfleet.scoring import CORE

#: The name of the scorer in logs.
SCORER = "kgfleet"

#: Answers that wait for their scores at a time; each takes a thread.
SCORED_AT_ONCE = 64

#: Characters of a part that an explanation shows.
EXPLANATION_CHARS_MAX = 4_000

#: The reasons of servers to stop, as inspect_ai calls them.
_STOPS = {"stop": "stop", "length": "max_tokens", "content-filter": "content_filter"}


@inspect_ai.task
def task(task: str, pack: str = CORE, iterations: Optional[int] = None, seed: int = 0) -> inspect_ai.Task:
    """A task of a pack or task file.

    ``iterations`` is the number of samples: iteration `i` asks case `i` modulo the number of cases, as `kgfleet run` does with
    the same ``seed``. By default each case is asked once.
    """
    found = [info for info in kgfleet.tasks(pack).tasks if info.label == task]
    if not found:
        raise kgfleet.MaterialError(f"the pack {pack} has no task `{task}`")
    cases = found[0].cases
    samples = [_sample(task, pack, cases, iteration, seed) for iteration in range(iterations or len(cases))]
    return inspect_ai.Task(
        dataset=MemoryDataset(samples, name=task),
        solver=dialogue(),
        scorer=case_scorer(),
        name=task,
        version=found[0].version,
        metadata={"pack": pack, "class": found[0].task_class, "headline": found[0].headline},
    )


def _sample(label: str, pack: str, cases: Tuple[str, ...], iteration: int, seed: int) -> Sample:
    opened = kgfleet.score(label, iteration, (), pack=pack, seed=seed)
    assert opened.next is not None, "a dialogue without answers has a first prompt"
    messages: List[ChatMessage] = [ChatMessageSystem(content=opened.system)] if opened.system else []
    case, repetition = cases[iteration % len(cases)], iteration // len(cases)
    return Sample(
        id=f"{case}#{repetition + 1}" if repetition else case,
        input=[*messages, ChatMessageUser(content=opened.next.text)],
        target=opened.target or "",
        metadata={"pack": pack, "task": label, "case": case, "iteration": iteration, "seed": seed},
    )


async def _scored(state: TaskState, answers: List[str], compare: bool) -> kgfleet.Score:
    import anyio.to_thread

    of = state.metadata
    call = partial(
        kgfleet.score, of["task"], of["iteration"], answers, pack=of["pack"], seed=of["seed"], compare=compare
    )
    # A judgement may take seconds, during which other samples go on.
    async with concurrency("kgfleet", SCORED_AT_ONCE):
        return await anyio.to_thread.run_sync(call)


@solver
def dialogue() -> Solver:
    """Asks the model, and then the follow-ups that its answers call for, as a run does."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        answers: List[str] = []
        while True:
            state = await generate(state)
            answers.append(state.output.completion)
            following = (await _scored(state, answers, compare=False)).next
            if following is None or state.completed:
                return state
            state.messages.append(ChatMessageUser(content=following.text, metadata={"kind": following.kind}))

    return solve


@scorer(name=SCORER, metrics=[mean(), stderr(cluster="case")])
def case_scorer() -> Scorer:
    """The score of a dialogue with its answer, what is right, and all other scores as metadata."""

    async def judge(state: TaskState, target: Target) -> Optional[Score]:
        answers = [message.text for message in state.messages if message.role == "assistant"]
        found = await _scored(state, answers, compare=True)
        if found.value is None:
            return None
        return _score(found.value, found.headline, found, found.flat(), dict(found.infos))

    return judge


def _score(
    value: float, headline: str, found: Optional[kgfleet.Score], flat: Dict[str, float], infos: Dict[str, Any]
) -> Score:
    return Score(
        value=value,
        answer=found.extracted if found else None,
        explanation=_explanation(headline, value, found, infos),
        metadata={
            "scores": {name: number for name, number in flat.items() if name != headline},
            "infos": infos,
            "limit": found.limit if found else None,
        },
    )


def _explanation(headline: str, value: float, found: Optional[kgfleet.Score], infos: Dict[str, Any]) -> str:
    lines = [f"{headline} = {value:g}"]
    if found is not None and found.limit is not None:
        lines.append(f"The answer hit the limit {found.limit}.")
    for part in found.compared if found else ():
        for who, text in (("expected", part.expected), ("extracted", part.extracted)):
            shown = "nothing" if text is None else text[:EXPLANATION_CHARS_MAX]
            lines.append(f"{part.what}, {who}:\n{shown}")
    if infos:
        lines.append(json.dumps(infos, ensure_ascii=False, indent=1)[:EXPLANATION_CHARS_MAX])
    return "\n\n".join(lines)


def _register() -> None:
    """Registers the tasks of the program's own pack under their labels."""
    try:
        labels = [info.label for info in kgfleet.tasks().tasks]
    except kgfleet.KgfleetError as error:
        # Whoever runs other tasks of inspect_ai must not fail for it.
        warnings.warn(f"the tasks of kgfleet are not there: {error}", stacklevel=2)
        return
    for label in labels:
        globals()[re.sub(r"\W", "_", label)] = inspect_ai.task(name=label)(_task_of(label))


def _task_of(label: str) -> "Callable[..., inspect_ai.Task]":
    def of_label(iterations: Optional[int] = None, seed: int = 0) -> inspect_ai.Task:
        return task(label, CORE, iterations, seed)

    of_label.__name__ = re.sub(r"\W", "_", label)
    return of_label


_register()


def to_inspect(
    run: str,
    folder: str,
    *,
    pack: str = CORE,
    data_dir: Optional[str] = None,
    fleet: Optional[str] = None,
    plaintext: bool = False,
) -> List[str]:
    """Writes a run as logs of inspect_ai, one for each model and task, and returns their paths.

    A sample is a dialogue: its id is the case, its epoch the repetition. The score is what the run recorded; target and answer
    come from ``pack``, which must be the run's: without it they are left out, with a warning. Failed dialogues are samples with
    an error. Texts of protected exercises are redacted unless ``plaintext``. One log is held in memory at a time.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths: List[str] = []
    known: Dict[str, str] = {}
    lines = kgfleet.records(run, data_dir=data_dir, fleet=fleet, plaintext=plaintext)
    for (model, label), of_both in groupby(lines, key=lambda line: _model_and_task(line)):
        name = re.sub(r"[^A-Za-z0-9_.-]", "-", f"{model[:100]}_{label[:100]}").lstrip(".")
        path = Path(folder) / f"{name}.eval"
        number = 1
        while str(path).lower() in known:
            number += 1
            path = Path(folder) / f"{name}-{number}.eval"
        known[str(path).lower()] = label
        write_eval_log(_log(model, label, list(of_both), pack), str(path))
        paths.append(str(path))
    return paths


def _model_and_task(line: Dict[str, Any]) -> Tuple[str, str]:
    key = line["record"]["key"]
    return key["model"], key["task"]


def _log(model: str, label: str, lines: List[Dict[str, Any]], pack: str) -> EvalLog:
    first = lines[0]["record"]
    provenance, of_task = first["provenance"], first["provenance"]["task"]
    headline = lines[0]["headline"]["score"]
    judged = list(_judged_again(label, lines, pack, of_task["pack_hash"]))
    epochs: Dict[str, int] = {}
    samples = [_logged(line, found, epochs) for line, found in zip(lines, judged)]
    values = [line["headline"]["value"] for line in lines if line["headline"]["value"] is not None]
    by_case: Dict[str, List[float]] = {}
    for line in lines:
        if line["headline"]["value"] is not None:
            by_case.setdefault(line["record"]["provenance"]["task"]["case"], []).append(line["headline"]["value"])
    answered = sum(sample.error is None for sample in samples)
    metrics = {}
    if values:
        metrics["mean"] = EvalMetric(name="mean", value=sum(values) / len(values))
        error = clustered_error(list(by_case.values()))
        metrics["stderr"] = EvalMetric(name="stderr", value=error or 0.0, params={"cluster": "case"})
    return EvalLog(
        status="success",
        eval=EvalSpec(
            created=first["started_at"],
            run_id=lines[0]["run"],
            task=label,
            task_id=f"{lines[0]['run']}/{model}/{label}",
            task_version=of_task["version"],
            dataset=EvalDataset(name=of_task["pack"], samples=len(by_case), sample_ids=list(epochs)),
            model=model,
            model_base_url=provenance["model"].get("endpoint"),
            model_generate_config=_generate_config(provenance["sampling"]),
            config=EvalConfig(epochs=max(epochs.values()), fail_on_error=False),
            packages={"kgfleet": provenance["kgfleet"]},
            metadata={"class": of_task["class"], "pack_hash": of_task["pack_hash"], "scorer": of_task["scorer"]},
        ),
        plan=EvalPlan(steps=[EvalPlanStep(solver="kgfleet/dialogue")]),
        results=EvalResults(
            total_samples=len(samples),
            completed_samples=answered,
            scores=[
                EvalScore(
                    name=SCORER,
                    scorer=SCORER,
                    scored_samples=len(values),
                    unscored_samples=answered - len(values),
                    metrics=metrics,
                    metadata={"score": headline},
                )
            ],
        ),
        stats=EvalStats(
            started_at=min(line["record"]["started_at"] for line in lines),
            completed_at=max(line["record"]["ended_at"] for line in lines),
        ),
        samples=samples,
    )


def _judged_again(
    label: str, lines: List[Dict[str, Any]], pack: str, pack_hash: str
) -> Iterator[Optional[kgfleet.Score]]:
    """What was expected and extracted, where the pack is the run's."""
    from kgfleet.scoring import score_all

    try:
        found = kgfleet.tasks(pack)
        if found.hash != pack_hash:
            raise kgfleet.MaterialError(f"the pack {pack} is not the run's; name that with `pack`")
        dialogues = [
            (label, line["record"]["provenance"]["task"]["case"], _answers(line["record"])) for line in lines
        ]
        yield from list(score_all(dialogues, pack=pack, compare=True))
    except kgfleet.MaterialError as error:
        warnings.warn(f"targets and answers are left out: {error}", stacklevel=2)
        yield from [None] * len(lines)


def _answers(record: Dict[str, Any]) -> List[str]:
    return [round["answer"]["text"] for round in record["rounds"]]


def _logged(line: Dict[str, Any], found: Optional[kgfleet.Score], epochs: Dict[str, int]) -> EvalSample:
    from inspect_ai.log import EvalError

    record = line["record"]
    outcome, case = record["outcome"], record["provenance"]["task"]["case"]
    epochs[case] = epochs.get(case, 0) + 1
    messages = list(_messages(record))
    value = line["headline"]["value"]
    scores = None
    if value is not None:
        flat = kgfleet.Score(
            value, "", outcome["scores"], {}, None, None, (), None, None, None
        ).flat()
        scores = {SCORER: _score(value, line["headline"]["score"], found, flat, outcome.get("infos", {}))}
    failure = None
    if outcome["state"] == "failed":
        message = f"{outcome['cause']}: {outcome['message']}"
        failure = EvalError(message=message, traceback="", traceback_ansi="")
    sample = EvalSample(
        id=case,
        epoch=epochs[case],
        input=record["rounds"][0]["prompt"]["text"] if record["rounds"] else "",
        target=(found.target or "") if found else "",
        messages=messages,
        scores=scores,
        metadata={"case": case, "iteration": record["key"]["iteration"], "state": outcome["state"]},
        model_usage=_usage(record),
        error=failure,
        uuid=record["attempt"]["id"],
        started_at=record["started_at"],
        completed_at=record["ended_at"],
    )
    if record["rounds"] and isinstance(messages[-1], ChatMessageAssistant):
        stop = _STOPS.get(record["rounds"][-1]["answer"].get("finish_reason"), "unknown")
        choice = ChatCompletionChoice(message=messages[-1], stop_reason=stop)  # type: ignore[arg-type]
        sample.output = ModelOutput(model=record["key"]["model"], choices=[choice])
    return sample


def _messages(record: Dict[str, Any]) -> Iterator[ChatMessage]:
    if record.get("system"):
        yield ChatMessageSystem(content=record["system"])
    for round in record["rounds"]:
        yield ChatMessageUser(content=round["prompt"]["text"], metadata={"kind": round["prompt"]["kind"]})
        text, reasoning = round["answer"]["text"], round["answer"].get("reasoning")
        content = [ContentReasoning(reasoning=reasoning), ContentText(text=text)] if reasoning else text
        yield ChatMessageAssistant(content=content, source="generate", model=record["key"]["model"])


def _usage(record: Dict[str, Any]) -> Dict[str, ModelUsage]:
    used = ModelUsage()
    for round in record["rounds"]:
        tokens = round["answer"].get("usage", {})
        prompt, completion = tokens.get("prompt_tokens", 0), tokens.get("completion_tokens", 0)
        used += ModelUsage(input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion)
    return {record["key"]["model"]: used} if used.total_tokens else {}


def _generate_config(sampling: Dict[str, Any]) -> GenerateConfig:
    same = ("temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty", "max_tokens")
    known = {name: sampling[name] for name in same if sampling.get(name) is not None}
    return GenerateConfig(**known, stop_seqs=sampling.get("stop") or None)
