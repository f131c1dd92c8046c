"""A server of models that answers as a recorded run was answered: the same conversation gets the same answer."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def _text(content) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _conversation(messages) -> str:
    return json.dumps([[message["role"], _text(message["content"])] for message in messages])


class ReplayServer:
    """Serves the records of one model, as a context manager; `url` is its address."""

    def __init__(self, lines) -> None:
        self.answers = {}
        self.missed = []
        for line in lines:
            record = line["record"]
            messages = [{"role": "system", "content": record["system"]}] if record.get("system") else []
            for round in record["rounds"]:
                messages.append({"role": "user", "content": round["prompt"]["text"]})
                # Of several with one conversation the first is kept: those who ask do not say which they mean.
                self.answers.setdefault(_conversation(messages), round["answer"]["text"])
                messages.append({"role": "assistant", "content": round["answer"]["text"]})
        replay = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_) -> None:
                pass

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = replay.answers.get(_conversation(asked["messages"]))
                if answer is None:
                    replay.missed.append(asked["messages"])
                message = {"role": "assistant", "content": answer if answer is not None else ""}
                body = json.dumps(
                    {
                        "id": "replayed",
                        "object": "chat.completion",
                        "created": 0,
                        "model": asked["model"],
                        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                    }
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> "ReplayServer":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()
