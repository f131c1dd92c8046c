"""The functions of the package give the scores of the program."""

import tempfile
import unittest
from pathlib import Path

import kgfleet
from kgfleet.scoring import score_all

ZOO = """@prefix : <http://zoo.example/> .
:a a :Bird ; :age 2 .
:b a :Bird ; :age 3 .
"""

TASK_FILE = """\
task_file = 1
name = "birds"
graphs.zoo.text = '''
@prefix : <http://zoo.example/> .
:a a :Bird ; :age 2 .
:b a :Bird ; :age 3 .
'''
[[task]]
label = "birds-sparql"
like = "text-to-sparql"
graph = "zoo"
rounds = 2
[[task.case]]
id = "all"
question = "Which birds are there?"
sparql = "SELECT ?b { ?b a :Bird }"
"""


class PlainFunctions(unittest.TestCase):
    def test_a_query_is_scored_by_its_rows(self) -> None:
        reference = "SELECT ?b { ?b a :Bird }"
        found = kgfleet.score_sparql("SELECT ?x { ?x :age 2 }", reference, ZOO)
        self.assertEqual(found.value, 2 / 3)
        self.assertEqual((found.scores["rows_precision"], found.scores["rows_recall"]), (1.0, 0.5))
        self.assertIn("SELECT ?x", found.extracted)
        fenced = "Here it is:\n```sparql\nSELECT ?x { ?x a :Bird }\n```"
        self.assertEqual(kgfleet.score_sparql(fenced, reference, ZOO, take="block").value, 1.0)
        self.assertEqual(kgfleet.score_sparql("SELECT ?x {", reference, ZOO).value, 0.0)

    def test_graphs_are_scored_by_their_triples_in_every_syntax(self) -> None:
        jsonld = '{"@id": "http://a.example/s", "http://a.example/p": [1, 2]}'
        half = '{"@id": "http://a.example/s", "http://a.example/p": [1, 3]}'
        self.assertEqual(kgfleet.score_graph(jsonld, jsonld, "jsonld").value, 1.0)
        self.assertEqual(kgfleet.score_graph(half, jsonld, "jsonld").value, 0.5)
        self.assertEqual(kgfleet.score_graph(ZOO.replace("\n", "\r\n"), ZOO).value, 1.0)

    def test_lists_and_shapes(self) -> None:
        self.assertEqual(kgfleet.score_list("Ann\r\nBob\r\n", ["Bob", "Ann"]).value, 1.0)
        self.assertEqual(kgfleet.score_list("Bob\nAnn", ["Ann", "Bob"], ordered=True).value, 0.5)
        shapes = """@prefix : <http://zoo.example/> .
            [] a sh:NodeShape ; sh:targetClass :Bird ; sh:property [ sh:path :age ; sh:minCount 1 ] ."""
        self.assertTrue(kgfleet.conforms(ZOO, shapes))
        self.assertFalse(kgfleet.conforms(ZOO + ":c a :Bird .", shapes))
        self.assertFalse(kgfleet.conforms("nonsense", shapes))


class Tasks(unittest.TestCase):
    def test_a_reference_answer_is_right_and_says_what_it_was_compared_with(self) -> None:
        for info in kgfleet.tasks().tasks:
            asked = kgfleet.score(info.label, 0, ())
            self.assertEqual(asked.next.kind, "first", info.label)
            self.assertIsNotNone(asked.target, info.label)
            right = kgfleet.score(info.label, info.cases[0], asked.target)
            self.assertIsNone(right.next, info.label)
            self.assertEqual(right.flat()[right.headline], right.value, info.label)
            # Of one task the best score is 0, and others are below it.
            self.assertNotEqual(right.value, kgfleet.score(info.label, 0, "").value, info.label)

    def test_a_dialogue_goes_on_as_in_a_run(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pack = str(Path(folder) / "birds.toml")
            Path(pack).write_text(TASK_FILE, encoding="utf-8")
            found = kgfleet.tasks(pack)
            self.assertEqual([(task.label, task.cases) for task in found.tasks], [("birds-sparql", ("all",))])
            wrong = kgfleet.score("birds-sparql", "all", "no query", pack=pack)
            self.assertIsNotNone(wrong.next)
            answers = ["no query", "```sparql\nSELECT ?b { ?b a :Bird }\n```"]
            right = kgfleet.score("birds-sparql", "all", answers, pack=pack)
            self.assertEqual((right.value, right.next, right.headline), (1.0, None, "max.score"))

    def test_many_are_scored_in_their_order(self) -> None:
        label = "RdfFriendCount-nt-1"
        right = kgfleet.score(label, 0, ()).target
        answers = [right if number % 3 == 0 else f"nobody {number}" for number in range(2000)]
        values = [found.value for found in score_all((label, 0, answer) for answer in answers)]
        self.assertEqual(values, [1.0 if number % 3 == 0 else 0.0 for number in range(2000)])

    def test_what_cannot_be_used_is_said_and_the_next_call_works(self) -> None:
        for call, error, said in (
            (lambda: kgfleet.score("NoTask", 0, "x"), kgfleet.MaterialError, "has no task `NoTask`"),
            (lambda: kgfleet.score("RdfFriendCount-nt-1", "none", "x"), kgfleet.MaterialError, "no case `none`"),
            (lambda: kgfleet.score("RdfFriendCount-nt-1", -1, "x"), kgfleet.RequestError, "cannot be read"),
            (lambda: kgfleet.tasks("/nowhere.kgpack"), kgfleet.MaterialError, "nowhere.kgpack"),
            (lambda: kgfleet.score_graph("", "<a> <b>"), kgfleet.MaterialError, "does not parse"),
            (lambda: kgfleet.score_graph("", "", "n4"), kgfleet.MaterialError, "n4"),
            (lambda: kgfleet.score_sparql("", "ASK", ZOO), kgfleet.MaterialError, "`reference`"),
            (lambda: kgfleet.score_list("", [], items="no"), kgfleet.RequestError, "no"),
            (lambda: list(kgfleet.records("no-such-run", data_dir="/nowhere")), kgfleet.ProgramError, "no-such-run"),
        ):
            with self.assertRaises(error) as caught:
                call()
            self.assertIn(said, str(caught.exception))
        self.assertEqual(kgfleet.score_list("a", ["a"]).value, 1.0)


if __name__ == "__main__":
    unittest.main()
