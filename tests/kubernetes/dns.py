"""Answers pods that ask for Services by name, as a cluster's DNS does, from what the API has at that moment.

    dns.py ADDRESS API TOKEN
"""

import socket
import struct
import sys

import api as kubernetes

DOMAIN = ["svc", "cluster", "local"]
PORT = 53
# Seconds for which an answer may be kept.
KEPT = 1
ADDRESS_RECORD = 1
NO_SUCH_NAME = 3
QUESTION_BYTES_MAX = 512


def addresses(api, name):
    """The addresses of `SERVICE.NAMESPACE.svc.cluster.local`, or of a pod with a name of its own below it; None where there are none."""
    labels = name.rstrip(".").lower().split(".")
    if labels[-3:] != DOMAIN or len(labels) not in (5, 6):
        return None
    *host, service, namespace = labels[:-3]
    there = api.find(f"/api/v1/namespaces/{namespace}/services/{service}")
    if not there:
        return None
    spec = there["spec"]
    if spec.get("clusterIP") != "None":
        return [spec["clusterIP"]]
    slices = api.list(f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io/service-name={service}")
    ends = [end for each in slices for end in each.get("endpoints") or []]
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


def answer(api, message):
    name, kind, end = question(message)
    found = addresses(api, name)
    records = [socket.inet_aton(each) for each in found or [] if kind == ADDRESS_RECORD]
    # An answer with authority that offers no recursion; its records point to the question's name.
    head = message[:2] + struct.pack(">HHHHH", 0x8500 | (0 if found else NO_SUCH_NAME), 1, len(records), 0, 0)
    body = [struct.pack(">HHHIH", 0xC00C, ADDRESS_RECORD, 1, KEPT, len(record)) + record for record in records]
    return head + message[12:end] + b"".join(body)


def main():
    address, place, token = sys.argv[1:]
    api = kubernetes.Api(place, token)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind((address, PORT))
        while True:
            message, asker = listening.recvfrom(QUESTION_BYTES_MAX)
            try:
                listening.sendto(answer(api, message), asker)
            except (OSError, IndexError, ValueError, kubernetes.Refused) as error:
                print(f"{asker}: {error}", flush=True)


if __name__ == "__main__":
    main()
