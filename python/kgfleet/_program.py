"""Finds and runs the program ``kgfleet``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Iterator, List, Optional

from kgfleet._errors import ProgramError

#: Names the program where it is not the one that was installed with this package.
PROGRAM_VARIABLE = "KGFLEET_PROGRAM"


def program() -> str:
    """The path of the program: that of ``KGFLEET_PROGRAM``, the one beside this Python, or the one on the path."""
    named = os.environ.get(PROGRAM_VARIABLE)
    if named:
        return named
    # A wheel puts it where this environment has its scripts; a user's installation has a place of its own.
    schemes = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    try:
        schemes.append(sysconfig.get_path("scripts", f"{os.name}_user"))
    except KeyError:
        pass
    for folder in schemes:
        beside = Path(folder) / "kgfleet"
        if beside.is_file() and os.access(beside, os.X_OK):
            return str(beside)
    found = shutil.which("kgfleet")
    if found is None:
        raise ProgramError(f"there is no program `kgfleet`; install this package's wheel, or name it in {PROGRAM_VARIABLE}")
    return found


def lines_of(arguments: List[str]) -> Iterator[bytes]:
    """The lines that a command writes, one by one as they come.

    Raises ``ProgramError`` with the program's own words if it fails. A caller who stops early ends it.
    """
    command = [program(), "--quiet", *arguments]
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise ProgramError(f"{command[0]} cannot be started: {error}") from error
    assert child.stdout is not None and child.stderr is not None
    finished = False
    try:
        yield from child.stdout
        finished = True
    finally:
        if not finished:
            child.kill()
        child.stdout.close()
        # These commands say little there: it fits into the pipe, so that none waits for it to be read.
        said = child.stderr.read().decode(errors="replace").strip()
        child.stderr.close()
        code = child.wait()
    if code != 0:
        raise ProgramError(_explained(said) or f"{' '.join(command)} ended with code {code}")


def _explained(said: str) -> Optional[str]:
    return said[len("kgfleet: ") :] if said.startswith("kgfleet: ") else said or None
