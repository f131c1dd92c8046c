"""The program as a long-lived process that judges answers: ``kgfleet score --serve``, lines of JSON in both directions.

Any number of threads share one process. A thread writes its line and waits for the reply with its number, which another
thread reads. A process that forks starts a process of its own, because two readers of one pipe would take each other's lines.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import tempfile
import threading
import weakref
from concurrent.futures import Future
from typing import IO, Any, Dict, Iterable, Iterator, List, Mapping, Optional

from kgfleet._errors import KgfleetError, MaterialError, ProgramError, RequestError, ScorerDied
from kgfleet._program import program

#: The version of the lines that this package writes and reads.
LINES_VERSION = 1

#: Longest line that the program reads, in bytes.
LINE_BYTES_MAX = 256 << 20

#: Most lines of a batch that wait for their replies at a time. More would only wait in the pipe.
BATCH_IN_FLIGHT_MAX = 512

#: Seconds that a process may take to judge what it has, when it is closed, before it is killed.
CLOSE_SECONDS_MAX = 5.0

#: Characters of its last words that an error repeats.
LAST_WORDS_MAX = 2000

_KINDS = {"request": RequestError, "material": MaterialError, "evaluator": ScorerDied}


class _Process:
    """One process with the calls that wait for it. It never starts again; `Scorer` replaces it."""

    def __init__(self, command: List[str]) -> None:
        self.pid = os.getpid()
        self._waiting: Dict[int, "Future[Dict[str, Any]]"] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._numbers = itertools.count()
        self._ended: Optional[KgfleetError] = None
        # A file takes any number of words, where a pipe would fill up and stop the process.
        self._words: IO[bytes] = tempfile.TemporaryFile()
        try:
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words, close_fds=True
            )
        except OSError as error:
            self._words.close()
            raise ProgramError(f"{command[0]} cannot be started: {error}") from error
        assert self._child.stdin is not None and self._child.stdout is not None
        reader = threading.Thread(target=self._read, name="kgfleet-score", daemon=True)
        reader.start()

    @property
    def ended(self) -> bool:
        return self._ended is not None

    def send(self, request: Mapping[str, Any]) -> "Future[Dict[str, Any]]":
        """Sends a line; its reply comes later."""
        reply: "Future[Dict[str, Any]]" = Future()
        number = next(self._numbers)
        # Half of a pair of surrogates is no text that UTF-8 or JSON can hold; a question mark stands for it.
        line = json.dumps({**request, "id": number}, ensure_ascii=False).encode(errors="replace") + b"\n"
        if len(line) >= LINE_BYTES_MAX:
            raise RequestError(f"answer and reference take {len(line)} bytes; {LINE_BYTES_MAX} are the most")
        with self._lock:
            if self._ended is not None:
                raise self._ended
            self._waiting[number] = reply
        try:
            with self._writing:
                assert self._child.stdin is not None
                self._child.stdin.write(line)
                self._child.stdin.flush()
        except (OSError, ValueError):
            # The reader finds out why, and tells all that wait.
            pass
        return reply

    def _read(self) -> None:
        assert self._child.stdout is not None
        why: KgfleetError
        try:
            for line in self._child.stdout:
                said = json.loads(line)
                if "lines" in said:
                    self._greeted(said)
                    continue
                if said["id"] is None:
                    # The program could not tell whose line it was, so nobody may wait any longer.
                    raise ScorerDied(said["error"]["message"])
                with self._lock:
                    waiting = self._waiting.pop(said["id"], None)
                if waiting is not None and not waiting.cancelled():
                    waiting.set_result(said)
            why = ScorerDied(self._last_words())
        except KgfleetError as error:
            why = error
        except Exception as error:  # Whatever it was, nobody may wait for ever.
            why = ScorerDied(f"the program's replies cannot be read: {error!r}")
        with self._lock:
            self._ended = why
            waiting_still, self._waiting = self._waiting, {}
        for reply in waiting_still.values():
            if not reply.cancelled():
                reply.set_exception(why)
        self._end()
        self._child.stdout.close()
        self._words.close()

    @staticmethod
    def _greeted(said: Mapping[str, Any]) -> None:
        if said["lines"] != LINES_VERSION:
            raise ProgramError(
                f"kgfleet {said.get('kgfleet')} writes version {said['lines']} of its lines, and this package reads "
                f"{LINES_VERSION}: install both from one wheel"
            )

    def _last_words(self) -> str:
        code = self._end()
        self._words.seek(0)
        words = self._words.read().decode(errors="replace").strip()[-LAST_WORDS_MAX:]
        ended = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"the program {ended} while answers waited" + (f": {words}" if words else "")

    def close(self) -> None:
        """Ends the process. In a forked child, whose process it is not, it does nothing."""
        if self.pid == os.getpid():
            self._end()

    def _end(self) -> int:
        """Ends the process, by force if it does not, and returns how."""
        try:
            if self._child.stdin is not None:
                self._child.stdin.close()
        except OSError:
            pass
        try:
            return self._child.wait(timeout=CLOSE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()


class Scorer:
    """A process that judges answers, shared by all threads that use this object, and started when it is first used.

    ``evaluators`` is the number of its evaluation processes for each pack (default: one per CPU). `close` it, or use it as a
    context manager; one that is forgotten is closed too. The functions of this package share one of their own.
    """

    def __init__(self, evaluators: Optional[int] = None) -> None:
        self._evaluators = evaluators
        self._lock = threading.Lock()
        self._process: Optional[_Process] = None
        self._owner = os.getpid()
        _forkable.add(self)

    def request(self, request: Mapping[str, Any]) -> Dict[str, Any]:
        """Sends one line and waits for its reply; for what the functions of this package do not offer."""
        return self._replied(self._send(request))

    def request_all(self, requests: Iterable[Mapping[str, Any]]) -> Iterator[Dict[str, Any]]:
        """Sends many lines, some of them ahead, and gives their replies in the order of the requests."""
        waiting: "List[Future[Dict[str, Any]]]" = []
        for request in requests:
            waiting.append(self._send(request))
            if len(waiting) >= BATCH_IN_FLIGHT_MAX:
                yield self._replied(waiting.pop(0))
        for reply in waiting:
            yield self._replied(reply)

    @staticmethod
    def _replied(reply: "Future[Dict[str, Any]]") -> Dict[str, Any]:
        said = reply.result()
        error = said.get("error")
        if error is not None:
            raise _KINDS.get(error["kind"], KgfleetError)(error["message"])
        return said

    def _send(self, request: Mapping[str, Any]) -> "Future[Dict[str, Any]]":
        with self._lock:
            process = self._process
            if process is None or process.ended or process.pid != os.getpid():
                command = [program(), "--quiet", "score", "--serve"]
                if self._evaluators is not None:
                    command += ["--evaluators", str(self._evaluators)]
                process = self._process = _Process(command)
        return process.send(request)

    def close(self) -> None:
        """Ends the process. A later call starts another one."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.close()

    def __enter__(self) -> "Scorer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # The interpreter may be half gone.
            pass

    def _after_fork(self) -> None:
        # Another thread may have held the lock at the fork, and will never let go of it here.
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            for pipe in (process._child.stdin, process._child.stdout):
                # The parent's process would not see the end of its input while this process holds it open. What waits in
                # the buffer is the parent's, so the descriptor is closed and not the file.
                if pipe is not None:
                    try:
                        os.close(pipe.fileno())
                    except (OSError, ValueError):
                        pass
            _inherited.append(process)


#: Processes of the parent, kept so that nothing of them is cleaned up here.
_inherited: List[_Process] = []

_forkable: "weakref.WeakSet[Scorer]" = weakref.WeakSet()

#: The process of the functions of this package.
shared = Scorer()


def _after_fork() -> None:
    for scorer in list(_forkable):
        scorer._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
