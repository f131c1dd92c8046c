"""The API of a Kubernetes, as far as these tests ask it: JSON over HTTPS, with an administrator's token, or none where somebody stands between."""

import json
import ssl
import urllib.error
import urllib.request

# Seconds that an answer may take.
TIMEOUT = 60
# The certificate is one that the server of the test made itself.
UNVERIFIED = ssl._create_unverified_context()


class Refused(Exception):
    """What the server said against a request."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Api:
    def __init__(self, address, token):
        self.address = address
        self.token = token

    def request(self, method, path, body=None, kind="application/json"):
        headers = {"Content-Type": kind, "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT, context=UNVERIFIED) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            try:
                said = json.loads(said).get("message", said)
            except ValueError:
                pass
            raise Refused(error.code, said) from None

    def is_ready(self):
        request = urllib.request.Request(self.address + "/readyz", headers={"Authorization": f"Bearer {self.token}"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT, context=UNVERIFIED):
                return True
        except OSError:
            return False

    def get(self, path):
        return self.request("GET", path)

    def find(self, path):
        """The object, or None where there is none."""
        try:
            return self.get(path)
        except Refused as error:
            if error.code == 404:
                return None
            raise

    def list(self, path):
        return self.get(path)["items"]

    def watch(self, path, version, seconds):
        """What becomes of a list after this version of it, for so many seconds: kinds of changes, each with its object."""
        address = f"{self.address}{path}?watch=1&resourceVersion={version}&timeoutSeconds={seconds}"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {self.token}"} if self.token else {})
        with urllib.request.urlopen(request, timeout=seconds + TIMEOUT, context=UNVERIFIED) as answer:
            for line in answer:
                change = json.loads(line)
                yield change["type"], change["object"]

    def post(self, path, body):
        return self.request("POST", path, body)

    def patch(self, path, body):
        return self.request("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path, **options):
        try:
            return self.request("DELETE", path, {"propagationPolicy": "Background", **options})
        except Refused as error:
            if error.code == 404:
                return None
            raise
