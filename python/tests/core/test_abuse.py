"""Nothing hangs, leaks or dies silently, whatever callers and answers do."""

import os
import signal
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kgfleet
from kgfleet._serving import Scorer


def _children(pid: int) -> list:
    return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


class Abuse(unittest.TestCase):
    def test_a_killed_program_is_an_error_and_the_next_call_starts_another(self) -> None:
        with Scorer(evaluators=1) as scorer:
            self.assertEqual(kgfleet.score_list("a", ["a"], scorer=scorer).value, 1.0)
            program = scorer._process._child.pid
            # It is stopped first, so that the answer waits for certain when the program is killed.
            os.kill(program, signal.SIGSTOP)
            killing = threading.Timer(0.2, os.kill, (program, signal.SIGKILL))
            killing.start()
            with self.assertRaises(kgfleet.ScorerDied) as caught:
                kgfleet.score_list("a", ["a"], scorer=scorer)
            self.assertIn("signal 9", str(caught.exception))
            self.assertEqual(kgfleet.score_list("a", ["b"], scorer=scorer).value, 0.0)

    def test_a_killed_evaluation_process_is_replaced_unseen(self) -> None:
        with Scorer(evaluators=1) as scorer:
            kgfleet.score_list("a", ["a"], scorer=scorer)
            for evaluator in _children(scorer._process._child.pid):
                os.kill(evaluator, signal.SIGKILL)
            self.assertEqual(kgfleet.score_list("a", ["a"], scorer=scorer).value, 1.0)

    def test_a_forked_process_has_a_program_of_its_own(self) -> None:
        self.assertEqual(kgfleet.score_list("a", ["a"]).value, 1.0)
        child = os.fork()
        if child == 0:
            good = False
            try:
                good = kgfleet.score_list("a\nb", ["a", "b"]).value == 1.0
            finally:
                os._exit(0 if good else 1)
        self.assertEqual(kgfleet.score_list("a", ["b"]).value, 0.0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(kgfleet.score_list("a", ["a"]).value, 1.0)

    def test_threads_share_one_program(self) -> None:
        with Scorer() as scorer, ThreadPoolExecutor(16) as threads:
            asked = [(f"item {number}", [f"item {number % 7}"]) for number in range(400)]
            found = list(threads.map(lambda of: kgfleet.score_list(of[0], of[1], scorer=scorer).value, asked))
        self.assertEqual(found, [float(number < 7) for number in range(400)])

    def test_hostile_answers_get_scores_and_name_their_limit(self) -> None:
        deep = "[" * 100_000
        nested = kgfleet.score_graph(deep, "<http://a.example/s> <http://a.example/p> 1 .")
        self.assertEqual((nested.value, nested.limit), (0.0, "nesting"))
        for text in ("\x00", "\ud800", "\u2028\r\n\x85", "a" * (1 << 20), "{" * 5000):
            self.assertEqual(kgfleet.score_list(text, ["right"]).value, 0.0)
        large = kgfleet.score_list("x" * ((16 << 20) + 1), ["right"])
        self.assertEqual(large.value, 0.0)

    def test_a_caller_that_goes_away_leaves_no_program_and_no_open_file(self) -> None:
        def used() -> int:
            with Scorer(evaluators=1) as scorer:
                kgfleet.score_list("a", ["a"], scorer=scorer)
                program = scorer._process._child.pid
            return program

        used()
        before = _open_files()
        programs = [used() for _ in range(5)]
        forgotten = Scorer(evaluators=1)
        kgfleet.score_list("a", ["a"], scorer=forgotten)
        programs.append(forgotten._process._child.pid)
        del forgotten
        until = time.monotonic() + 10
        while time.monotonic() < until and (_open_files() > before or threading.active_count() > 3):
            time.sleep(0.05)
        self.assertLessEqual(_open_files(), before)
        self.assertEqual([program for program in programs if Path(f"/proc/{program}").exists()], [])


if __name__ == "__main__":
    unittest.main()
