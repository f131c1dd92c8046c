"""Asks a model the prompts of a finished run with another evaluation tool, and prints how fast it was.

    peers.py lm-eval|inspect URL MODEL RECORDS COUNT CONNECTIONS FOLDER

RECORDS is a run's export in JSON lines. One line of JSON is printed: the tool with its version, dialogues, seconds,
seconds of asking alone, processor seconds. The clock starts when the tool and the prompts are loaded and stops when the
tool hands back its result; asking is the part of it in which requests are made.
"""

import json
import os
import pathlib
import resource
import sys
import time
from datetime import datetime
from importlib.metadata import version

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", DO_NOT_TRACK="1")


def questions(records, count):
    """First prompts of a run with what its model answered: equal work for every tool."""
    with open(records, encoding="utf-8") as lines:
        for line, _ in zip(lines, range(count)):
            first = json.loads(line)["record"]["rounds"][0]
            yield {"prompt": first["prompt"]["text"], "target": first["answer"]["text"]}


def lm_eval(url, model, asked, connections, folder):
    """lm-evaluation-harness with a task of its own over a local file."""
    os.environ["HF_DATASETS_CACHE"] = str(folder / "datasets")
    import lm_eval
    from lm_eval.models.openai_completions import LocalChatCompletion

    asking = []
    plain = LocalChatCompletion.generate_until

    def timed(*arguments, **options):
        began = time.monotonic()
        answers = plain(*arguments, **options)
        asking.append(time.monotonic() - began)
        return answers

    LocalChatCompletion.generate_until = timed

    data = folder / "prompts.jsonl"
    data.write_text("".join(json.dumps(question) + "\n" for question in asked), encoding="utf-8")
    task = {
        "task": "prompts",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{prompt}}",
        "doc_to_target": "{{target}}",
        "generation_kwargs": {"until": [], "max_gen_toks": 4096},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }

    def evaluate():
        return lm_eval.simple_evaluate(
            model="local-chat-completions",
            model_args={
                "model": model,
                "base_url": f"{url}/chat/completions",
                "num_concurrent": connections,
                "max_retries": 3,
                "tokenizer_backend": None,
            },
            tasks=[task],
            apply_chat_template=True,
            bootstrap_iters=0,
            verbosity="ERROR",
        )

    def check(result):
        samples = result["samples"]["prompts"]
        return len(samples), sum(bool(sample["resps"][0][0]) for sample in samples), sum(asking)

    return evaluate, check, f"lm-evaluation-harness {version('lm_eval')}"


def inspect(url, model, asked, connections, folder):
    """inspect_ai with a dataset in memory; its log is written, as it always is."""
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import get_model
    from inspect_ai.scorer import exact
    from inspect_ai.solver import generate

    samples = [Sample(input=question["prompt"], target=question["target"]) for question in asked]
    task = inspect_ai.Task(name="prompts", dataset=samples, solver=generate(), scorer=exact())
    served = get_model(f"openai-api/simulator/{model}", base_url=url, api_key="none")

    def evaluate():
        return inspect_ai.eval(
            task,
            model=served,
            max_connections=connections,
            max_samples=connections,
            max_tokens=4096,
            display="none",
            log_dir=str(folder / "inspect-logs"),
        )

    def check(logs):
        results, stats = logs[0].results, logs[0].stats
        asking = datetime.fromisoformat(stats.completed_at) - datetime.fromisoformat(stats.started_at)
        return results.total_samples, results.completed_samples, asking.total_seconds()

    return evaluate, check, f"inspect_ai {version('inspect_ai')}"


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    if len(sys.argv) != 8:
        sys.exit(__doc__)
    tool, url, model, records, count, connections, folder = sys.argv[1:]
    folder = pathlib.Path(folder)
    asked = list(questions(records, int(count)))
    prepare = {"lm-eval": lm_eval, "inspect": inspect}[tool]
    evaluate, check, name = prepare(url, model, asked, int(connections), folder)
    began, worked = time.monotonic(), processor_seconds()
    result = evaluate()
    seconds, worked = time.monotonic() - began, processor_seconds() - worked
    held, answered, asking = check(result)
    if not held == answered == len(asked):
        sys.exit(f"{name}: {len(asked)} asked, {held} held, {answered} answered: no fair measure")
    figures = {"dialogues": held, "seconds": seconds, "asking_seconds": asking, "processor_seconds": worked}
    print(json.dumps({"tool": name, **figures}))


if __name__ == "__main__":
    main()
