"""Real embeddings for KGHaluBench without a GPU: a small model whose weights lie inside the Python package `wordllama`.

    python3 -m venv venv && venv/bin/pip install wordllama==0.4.0.post1
    venv/bin/python embeddings.py serve 8100       serves it as `wordllama` at http://127.0.0.1:8100/v1/embeddings
    venv/bin/python embeddings.py rank FOLDER      how an embedder ranked answers, from `kgfleet export PIPELINE --format jsonl`

`rank` reads the stage `similarity` of a pipeline on the invented graph. There an answer about the entity begins with the first
sentence of the entity's description, and one about another entity does not. Nothing is downloaded but the package.
"""

import json
import pathlib
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME = "wordllama"


def model():
    import wordllama

    # The package keeps its tokenizer in a folder of another name than the one in which it looks for it.
    package = pathlib.Path(wordllama.__file__).parent
    cache = pathlib.Path(tempfile.mkdtemp())
    (cache / "tokenizer").symlink_to(package / "tokenizers")
    (cache / "tokenizers").symlink_to(package / "tokenizers")
    return wordllama.WordLlama.load(cache_dir=cache, disable_download=True)


def serve(port):
    loaded = model()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self, body):
            body = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.reply({"object": "list", "data": [{"id": NAME, "object": "model"}]})

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
            vectors = loaded.embed(texts, norm=True)
            data = [
                {"object": "embedding", "index": place, "embedding": [float(number) for number in vector]}
                for place, vector in enumerate(vectors)
            ]
            self.reply({"object": "list", "model": NAME, "data": data, "usage": {"prompt_tokens": 0, "total_tokens": 0}})

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    server.serve_forever()


def rank(folder):
    right, wrong = [], []
    for file in sorted(pathlib.Path(folder).glob("*.similarity.*.jsonl")):
        for line in file.open():
            record = json.loads(line)["record"]
            if record["outcome"]["state"] != "scored":
                continue
            told = record["rounds"][0]
            description, answer = json.loads(told["prompt"]["text"])
            cosine = json.loads(told["answer"]["text"])["cosine"]
            first = description.split(". ")[0]
            (right if answer.startswith(first) else wrong).append(cosine)
    if not right or not wrong:
        sys.exit(f"{len(right)} answers about the entity and {len(wrong)} others: nothing to compare")
    above = sum((a > b) + (a == b) / 2 for a in right for b in wrong) / (len(right) * len(wrong))
    for name, cosines in [("about the entity", right), ("others", wrong)]:
        cosines.sort()
        middle = cosines[len(cosines) // 2]
        print(f"{name}: {len(cosines)} answers, cosine {cosines[0]:.3f} to {cosines[-1]:.3f}, median {middle:.3f}")
    print(f"an answer about the entity ranks above another one in {100 * above:.2f} % of pairs")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", port]:
            serve(int(port))
        case ["rank", folder]:
            rank(folder)
        case _:
            sys.exit(__doc__)
