"""Answers pods that ask for Services by name, as a cluster's DNS does, from what the API tells of them.

    dns.py ADDRESS API TOKEN
"""

import http.client
import socket
import struct
import sys
import threading
import time

import api as kubernetes

DOMAIN = ["svc", "cluster", "local"]
PORT = 53
# Seconds for which an answer may be kept.
KEPT = 1
ADDRESS_RECORD = 1
NO_SUCH_NAME = 3
QUESTION_BYTES_MAX = 512
# Seconds after which a watch is begun anew.
WATCH = 300
# The label of a slice that names its Service.
OF = "kubernetes.io/service-name"


class Followed:
    """Objects of one kind as a watch tells of them: a busy API would answer later than those who ask for names wait."""

    def __init__(self, api, path):
        self.api = api
        self.path = path
        self.items = {}
        self.are_known = threading.Event()
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        version = None
        while True:
            try:
                if version is None:
                    listed = self.api.get(self.path)
                    version = listed["metadata"]["resourceVersion"]
                    self.items = {key(each): each for each in listed["items"]}
                    self.are_known.set()
                for kind, item in self.api.watch(self.path, version, WATCH):
                    if kind == "ERROR":
                        # The version is too old, mostly.
                        version = None
                        break
                    version = item["metadata"]["resourceVersion"]
                    # Replaced, not changed: somebody may be reading it.
                    rest = {each: there for each, there in self.items.items() if each != key(item)}
                    self.items = rest if kind == "DELETED" else {**rest, key(item): item}
            except (kubernetes.Refused, OSError, http.client.HTTPException, ValueError) as error:
                print(f"{self.path}: {error}", flush=True)
                version = None
                time.sleep(1)


def key(item):
    return item["metadata"]["namespace"], item["metadata"]["name"]


def addresses(services, slices, name):
    """The addresses of `SERVICE.NAMESPACE.svc.cluster.local`, or of a pod with a name of its own below it; None where there are none."""
    labels = name.rstrip(".").lower().split(".")
    if labels[-3:] != DOMAIN or len(labels) not in (5, 6):
        return None
    *host, service, namespace = labels[:-3]
    there = services.items.get((namespace, service))
    if not there:
        return None
    spec = there["spec"]
    if spec.get("clusterIP") != "None":
        return [spec["clusterIP"]]
    ours = [each for (place, _), each in slices.items.items() if place == namespace and each["metadata"].get("labels", {}).get(OF) == service]
    ends = [end for each in ours for end in each.get("endpoints") or []]
    ready = [end for end in ends if spec.get("publishNotReadyAddresses") or end.get("conditions", {}).get("ready") is not False]
    named = [end for end in ready if not host or end.get("hostname") == host[0]]
    return [address for end in named for address in end["addresses"]] or None


def question(message):
    """The name that is asked for, the kind of record, and where the question ends."""
    at, labels = 12, []
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode())
        at += message[at] + 1
    return ".".join(labels), struct.unpack(">H", message[at + 1 : at + 3])[0], at + 5


def answer(services, slices, message):
    name, kind, end = question(message)
    found = addresses(services, slices, name)
    records = [socket.inet_aton(each) for each in found or [] if kind == ADDRESS_RECORD]
    # An answer with authority that offers no recursion; its records point to the question's name.
    head = message[:2] + struct.pack(">HHHHH", 0x8500 | (0 if found else NO_SUCH_NAME), 1, len(records), 0, 0)
    body = [struct.pack(">HHHIH", 0xC00C, ADDRESS_RECORD, 1, KEPT, len(record)) + record for record in records]
    return head + message[12:end] + b"".join(body)


def main():
    address, place, token = sys.argv[1:]
    api = kubernetes.Api(place, token)
    services, slices = Followed(api, "/api/v1/services"), Followed(api, "/apis/discovery.k8s.io/v1/endpointslices")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind((address, PORT))
        # Who asks before is answered then, or asks again.
        services.are_known.wait()
        slices.are_known.wait()
        while True:
            message, asker = listening.recvfrom(QUESTION_BYTES_MAX)
            try:
                listening.sendto(answer(services, slices, message), asker)
            except (OSError, IndexError, ValueError) as error:
                print(f"{asker}: {error}", flush=True)


if __name__ == "__main__":
    main()
