"""Runs as data frames, Parquet, logs of inspect_ai and documents of Every Eval Ever."""

import json
import os
import tempfile
import unittest
import warnings
from pathlib import Path

import kgfleet

from .runs import SEVERAL, SINGLE, quick_records, quick_run, run


class Tables(unittest.TestCase):
    def test_both_forms_hold_what_the_program_writes_as_csv(self) -> None:
        import pandas

        with tempfile.TemporaryDirectory() as folder:
            for form in ("long", "wide"):
                run("export", "latest", "--data-dir", quick_run(), "--format", "csv", "--form", form, "--out", f"{folder}/t.csv")
                written = pandas.read_csv(f"{folder}/t.csv", dtype_backend="numpy_nullable")
                frame = kgfleet.to_dataframe("latest", form, data_dir=quick_run())
                rows = kgfleet.to_parquet("latest", f"{folder}/t.parquet", form, data_dir=quick_run())
                stored = pandas.read_parquet(f"{folder}/t.parquet")
                self.assertEqual((len(frame), rows, len(stored)), (len(written),) * 3)
                self.assertEqual(list(stored.columns), list(frame.columns))
                missing = set(written.columns) - set(frame.columns)
                self.assertEqual(missing, {"provenance"} if form == "long" else {"provenance", "evaluation_seconds"})
                for name in set(written.columns) & set(frame.columns) - {"started_at", "seconds"}:
                    # An index of a round is a number to who reads CSV, and a name here.
                    same = [[None if pandas.isna(value) else str(value) for value in of[name]] for of in (written, frame)]
                    if written[name].dtype.kind in "if":
                        same = [[None if value is None else float(value) for value in of] for of in same]
                    self.assertEqual(*same, (form, name))
                self.assertTrue((stored["run"] == frame["run"]).all())


class Logs(unittest.TestCase):
    def test_a_log_of_inspect_ai_has_target_answer_and_explanation(self) -> None:
        from inspect_ai.log import read_eval_log

        from kgfleet.inspect import to_inspect

        with tempfile.TemporaryDirectory() as folder:
            paths = to_inspect("latest", folder, data_dir=quick_run())
            self.assertEqual(len(paths), 6)
            recorded = {line["record"]["attempt"]["id"]: line for line in quick_records()}
            for path in paths:
                log = read_eval_log(path)
                self.assertEqual(log.status, "success")
                values = []
                for sample in log.samples:
                    line, score = recorded.pop(sample.uuid), sample.scores["kgfleet"]
                    self.assertEqual(score.value, line["headline"]["value"])
                    self.assertTrue(sample.target and score.explanation)
                    self.assertEqual(len(sample.messages), 2 * len(line["record"]["rounds"]))
                    values.append(score.value)
                metrics = log.results.scores[0].metrics
                self.assertAlmostEqual(metrics["mean"].value, sum(values) / len(values))
                if log.eval.model == "sim-strong" and log.eval.task == SINGLE:
                    self.assertTrue(log.samples[0].scores["kgfleet"].answer)
            self.assertEqual(recorded, {})

    def test_without_the_pack_of_the_run_targets_are_left_out_with_a_warning(self) -> None:
        from inspect_ai.log import read_eval_log

        from kgfleet.inspect import to_inspect

        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            paths = to_inspect("latest", folder, data_dir=quick_run(), pack="authoring")
            self.assertIn("left out", "".join(str(warning.message) for warning in told))
            self.assertEqual(read_eval_log(paths[0]).samples[0].target, "")


class EveryEvalEver(unittest.TestCase):
    def test_its_documents_hold_the_means_with_their_errors(self) -> None:
        documents = kgfleet.to_every_eval_ever("latest", organization="Example", data_dir=quick_run())
        self.assertEqual([document["model_info"]["name"] for document in documents], ["sim-strong", "sim-middling", "sim-weak"])
        for document in documents:
            names = [result["evaluation_name"] for result in document["evaluation_results"]]
            self.assertEqual(sorted(names), sorted([SINGLE, SEVERAL]))
            for result in document["evaluation_results"]:
                self.assertEqual(result["score_details"]["uncertainty"]["num_samples"], 6)

    @unittest.skipUnless(os.environ.get("KGFLEET_EEE_SCHEMA"), "no schema of Every Eval Ever: KGFLEET_EEE_SCHEMA names it")
    def test_its_documents_are_valid_by_their_schema(self) -> None:
        import jsonschema

        schema = json.loads(Path(os.environ["KGFLEET_EEE_SCHEMA"]).read_text(encoding="utf-8"))
        for document in kgfleet.to_every_eval_ever("latest", organization="Example", data_dir=quick_run()):
            jsonschema.validate(document, schema)


if __name__ == "__main__":
    unittest.main()
