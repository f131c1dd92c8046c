"""Every example of docs/python.md runs as it stands there, against the simulator."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from kgfleet._program import program

from .runs import quick_run

DOCUMENT = Path(__file__).parents[3] / "docs" / "python.md"

#: The server of the examples.
SERVER = "http://127.0.0.1:8000"


class Examples(unittest.TestCase):
    def test_every_example_runs(self) -> None:
        blocks = re.findall(r"```(python|sh)\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
        self.assertEqual([language for language, _ in blocks], ["python", "sh", "sh", "python"])
        served = subprocess.Popen(
            [program(), "simulate", "--model", "sim-strong", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
        )
        try:
            url = served.stdout.readline().strip()
            self.assertTrue(url.startswith("http://"), url)
            for language, block in blocks:
                self.runs(language, block.replace(SERVER, url.replace("/v1", "")), url)
        finally:
            served.kill()
            served.wait()
            served.stdout.close()

    def runs(self, language: str, block: str, url: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            environment = {
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "KGFLEET_DATA_DIR": quick_run(),
                "LOCAL_BASE_URL": url,
                "LOCAL_API_KEY": "none",
                "OPENAI_API_KEY": "none",
                "HF_HUB_OFFLINE": "1",
                "HF_HOME": f"{folder}/hf",
            }
            command = [sys.executable, "-c", block] if language == "python" else ["bash", "-euc", block]
            done = subprocess.run(
                command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            self.assertEqual(done.returncode, 0, f"{block}\n{done.stdout[-4000:]}")


if __name__ == "__main__":
    unittest.main()
