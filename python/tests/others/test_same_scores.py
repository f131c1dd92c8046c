"""What `kgfleet run` recorded, the functions, inspect_ai and lm_eval give to the last digit."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import kgfleet
from kgfleet.scoring import score_all

from .replay import ReplayServer
from .runs import SEVERAL, SINGLE, of, quick_records, run

MODEL = "sim-middling"
CONFORMANCE = os.environ.get("KGFLEET_CONFORMANCE") or str(Path(__file__).parents[4] / "shared" / "conformance")

#: That of the published files, from their publishers' README.
PASSWORD = "Leave-Finest-Coats-Serena-Cheats-46"

#: Iterations of a task that inspect_ai and lm_eval ask.
ASKED = 5


def scored_again(test: unittest.TestCase, lines, pack: str) -> int:
    """Judges the answers of records again, and compares all scores with the recorded ones."""
    lines = [line for line in lines if line["record"]["outcome"]["state"] == "scored"]
    asked = [
        (
            line["record"]["key"]["task"],
            line["record"]["provenance"]["task"]["case"],
            [round["answer"]["text"] for round in line["record"]["rounds"]],
        )
        for line in lines
    ]
    for line, found in zip(lines, score_all(asked, pack=pack)):
        # Texts of exercises must not come into the words of a failure, so that only names do.
        where = json.dumps(line["record"]["key"])
        test.assertTrue(found.scores == line["record"]["outcome"]["scores"], where)
        test.assertTrue(found.value == line["headline"]["value"], where)
    return len(lines)


def by_inspect(url: str, task: str, pack: str, iterations: int) -> list:
    """The scores that an eval of inspect_ai gives, by iteration."""
    import inspect_ai

    import kgfleet.inspect

    with tempfile.TemporaryDirectory() as folder:
        [log] = inspect_ai.eval(
            kgfleet.inspect.task(task, pack, iterations),
            model="openai-api/replay/m",
            model_base_url=url,
            model_args={"api_key": "none"},
            log_dir=folder,
            display="none",
        )
        assert log.status == "success", log.error
        # They are read from the file when they are looked at.
        samples = sorted(log.samples, key=lambda sample: sample.metadata["iteration"])
    assert log.results.scores[0].metrics["stderr"].params.get("cluster") == "case", log.results.scores
    return samples


def by_lm_eval(url: str, task: str, pack: str, iterations: int) -> list:
    """The scores that a run of lm_eval gives, by iteration."""
    from kgfleet.lm_eval import write_tasks

    with tempfile.TemporaryDirectory() as folder:
        write_tasks(f"{folder}/tasks", pack)
        name = f"kgfleet-{task}"
        arguments = [sys.executable, "-m", "lm_eval", "run", "--include_path", f"{folder}/tasks", "--tasks", name]
        arguments += ["--model", "local-chat-completions", "--apply_chat_template", "--log_samples"]
        arguments += ["--model_args", f"model=m,base_url={url}/chat/completions,num_concurrent=4,tokenized_requests=False"]
        arguments += ["--output_path", f"{folder}/out", "--metadata", json.dumps({"iterations": iterations})]
        environment = {**os.environ, "OPENAI_API_KEY": "none", "HF_HUB_OFFLINE": "1", "HF_HOME": f"{folder}/hf"}
        done = subprocess.run(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout[-4000:]
        [samples] = Path(folder, "out").rglob(f"samples_{name}_*.jsonl")
        lines = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    lines.sort(key=lambda line: line["doc"]["iteration"])
    return [line["score"] for line in lines]


class SameScores(unittest.TestCase):
    def test_the_functions_give_what_a_run_recorded(self) -> None:
        self.assertEqual(scored_again(self, quick_records(), "core"), 3 * 2 * 6)

    def test_inspect_ai_gives_what_a_run_recorded(self) -> None:
        for task in (SINGLE, SEVERAL):
            lines = of(quick_records(), MODEL, task)[:ASKED]
            with ReplayServer(lines) as server:
                samples = by_inspect(server.url, task, "core", ASKED)
                self.assertEqual(server.missed, [], "a prompt that the run did not send")
            for line, sample in zip(lines, samples):
                score = sample.scores["kgfleet"]
                self.assertEqual(score.value, line["headline"]["value"])
                self.assertTrue(sample.target and score.explanation)
                rounds = [message for message in sample.messages if message.role == "assistant"]
                self.assertEqual(len(rounds), len(line["record"]["rounds"]))

    def test_lm_eval_gives_what_a_run_recorded(self) -> None:
        lines = of(quick_records(), MODEL, SINGLE)[:ASKED]
        with ReplayServer(lines) as server:
            scores = by_lm_eval(server.url, SINGLE, "core", ASKED)
            self.assertEqual(server.missed, [], "a prompt that the run did not send")
        self.assertEqual(scores, [line["headline"]["value"] for line in lines])
        # Of a task with follow-ups, the first answer is judged.
        lines = of(quick_records(), MODEL, SEVERAL)[:ASKED]
        with ReplayServer(lines) as server:
            scores = by_lm_eval(server.url, SEVERAL, "core", ASKED)
        first = [kgfleet.score(SEVERAL, n, line["record"]["rounds"][0]["answer"]["text"]).value for n, line in enumerate(lines)]
        self.assertEqual(scores, first)


@unittest.skipUnless(Path(CONFORMANCE, "v3").is_dir(), "no published dialogues: KGFLEET_CONFORMANCE or ../shared/conformance")
class PublishedDialogues(unittest.TestCase):
    """On published exercises. Nothing of them is printed or kept."""

    def test_published_answers_get_the_same_scores_everywhere(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pack, data = self.replayed(folder)
            lines = list(kgfleet.records("latest", data_dir=data, plaintext=True))
            self.assertGreater(scored_again(self, lines, pack), 500)
            for task in (SINGLE, SEVERAL):
                model = lines[0]["record"]["key"]["model"]
                found = [line for line in of(lines, model, task)][:ASKED]
                self.assertEqual(len(found), ASKED)
                with ReplayServer(found) as server:
                    samples = by_inspect(server.url, task, pack, ASKED)
                    self.assertEqual(len(server.missed), 0)
                values = [line["headline"]["value"] for line in found]
                self.assertEqual([sample.scores["kgfleet"].value for sample in samples], values)
                if task == SINGLE:
                    with ReplayServer(found) as server:
                        self.assertEqual(by_lm_eval(server.url, task, pack, ASKED), values)

    def replayed(self, folder: str) -> "tuple[str, str]":
        """The pack of the published exercises, and the folder of a run that repeats the published dialogues of one model."""
        recorded = f"{CONFORMANCE}/v3/OpenAI-GPT-4o.zip"
        graph = f"beastiary={CONFORMANCE}/graphs/beastiary_kg.rdf.zip"
        pack, data, configuration = f"{folder}/published.kgpack", f"{folder}/data", Path(folder, "replay.toml")
        run("pack", "import", recorded, "--password", PASSWORD, "--graph", graph, "--out", pack)
        configuration.write_text(
            f'name = "replayed"\npack = "{pack}"\niterations = 20\n[[models]]\nlabel = "published"\n'
            f'connector = "replay"\nrecorded = ["{recorded}"]\n',
            encoding="utf-8",
        )
        run("run", str(configuration), "--data-dir", data, "--password", PASSWORD, "--export", "csv")
        return pack, data


if __name__ == "__main__":
    unittest.main()
