"""Reads a run as the program exports it, record by record."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, Optional

from kgfleet._program import lines_of


def records(
    run: str,
    *,
    data_dir: Optional[str] = None,
    fleet: Optional[str] = None,
    plaintext: bool = False,
) -> Iterator[Dict[str, Any]]:
    """The winning records of a run in the order of its plan: models, tasks, iterations.

    ``run`` is a name, a path or `latest`; ``data_dir`` and ``fleet`` say where it is, as the options of the program do. Each
    is ``{"run", "headline": {"score", "value"}, "record"}``; the record has the texts, the outcome and where it comes from.
    Texts of protected exercises are redacted unless ``plaintext``. A run of any size is read in the memory of one record.
    """
    arguments: List[str] = ["export", run, "--format", "jsonl", "--out", "/dev/stdout"]
    if data_dir is not None:
        arguments += ["--data-dir", str(data_dir)]
    if fleet is not None:
        arguments += ["--fleet", fleet]
    if plaintext:
        arguments.append("--plaintext")
    return map(json.loads, lines_of(arguments))
