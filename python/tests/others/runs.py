"""Runs of the program that the tests read: made once for all of them, in a folder that goes with the process."""

import functools
import subprocess
import tempfile

import kgfleet
from kgfleet._program import program

#: One task with a single answer, and one with follow-ups.
SINGLE, SEVERAL = "RdfFriendCount-nt-1", "Text2SparqlExecEvalListOrganizational"

_folder = tempfile.TemporaryDirectory(prefix="kgfleet-python-")


def run(*arguments: str) -> str:
    """Runs the program to its end; its standard output."""
    done = subprocess.run([program(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: {done.returncode}\n{done.stderr}")
    return done.stdout


@functools.lru_cache(maxsize=None)
def quick_run() -> str:
    """The folder of a run of two tasks with simulated models, each case of both asked at least once."""
    folder = f"{_folder.name}/quick"
    run("run", "--data-dir", folder, "--iterations", "6", "--seed", "0", "--task", SINGLE, "--task", SEVERAL)
    return folder


@functools.lru_cache(maxsize=None)
def quick_records() -> tuple:
    """Its records."""
    return tuple(kgfleet.records("latest", data_dir=quick_run()))


def of(lines, model: str, task: str) -> list:
    """Those of one model and task, in the order of their iterations."""
    return [line for line in lines if (line["record"]["key"]["model"], line["record"]["key"]["task"]) == (model, task)]
