"""What the API server says of everything that the chart makes."""

import itertools

import helm_python
import yaml

from api import Refused
from fleet import CHART, RELEASE, merged, pool
from steps import expect, step

PLURALS = {"NetworkPolicy": "networkpolicies"}

# Values that are varied together, each with the first one as the default.
DIMENSIONS = {
    "coordinators": [{}, {"coordinator": {"replicaCount": 3, "pdb": False}}, {"coordinator": {"sink": "s3://bucket/prefix", "sinkSecretName": "s3"}}],
    "redis": [{}, {"redis": {"mode": "external", "url": "rediss://redis:6379", "tlsSecretName": "redis", "clientCertificate": True}}],
    "tls": [{}, {"tls": {"mode": "existing", "existingSecret": "tls"}}, {"tls": {"mode": "off"}}],
    "secrets": [{}, {"secrets": {"create": "none"}}],
    "weights": [{}, {"sharedPvcStorage": {"enabled": True}}, {"weights": {"hostPath": "/data/hf"}}],
    "kueue": [{}, {"kueue": {"queueName": "gpu", "priorityClass": "p", "topology": "unconstrained"}}],
    "network": [{}, {"networkPolicy": {"enabled": False}}],
    "monitoring": [{}, {"monitoring": {"grafanaDashboards": {"enabled": True}, "otlpEndpoint": "http://c:4318"}}],
    "run": [{}, {"run": {"config": "name = 'x'", "extend": "x"}}],
    "pools": [
        [],
        [{"weightsGi": 15, "replicaCount": 3}],
        [{"requestGPU": 8, "multiNodeSize": 2, "weightsGi": 641}],
        [{"standing": True, "nodes": 2, "workersPerNode": 4}, {"spot": True, "cache": {"size": "100Mi"}}],
        [{"kind": "embed", "cache": {"existingClaim": "c"}}, {"kind": "classify", "weightsImage": "registry/weights:1"}],
    ],
    "hosted": [{}, {"apiPools": [{"name": "hosted", "connectors": ["anthropic"], "keys": {"k": {"connector": "anthropic", "secretName": "s"}}}]}],
}


def value_sets():
    """Every pair of two dimensions' values once, the others at their defaults."""
    for one, two in itertools.combinations(DIMENSIONS, 2):
        for first, second in itertools.product(DIMENSIONS[one], DIMENSIONS[two]):
            chosen = {key: values[0] for key, values in DIMENSIONS.items()} | {one: first, two: second}
            pools = [pool(f"p{index}", **spec) for index, spec in enumerate(chosen.pop("pools"))]
            yield merged({"servingEngineSpec": {"modelSpec": pools}}, *chosen.values())
    for file in sorted((CHART / "tests/values").glob("*.yaml")):
        yield yaml.safe_load(file.read_text())


def place(item):
    group = item["apiVersion"]
    root = f"/api/{group}" if group == "v1" else f"/apis/{group}"
    plural = PLURALS.get(item["kind"], item["kind"].lower() + "s")
    return f"{root}/namespaces/{item['metadata']['namespace']}/{plural}?dryRun=All&fieldValidation=Strict"


@step
def every_object(fleet):
    """Every object of generated values, and of the chart's own value sets, passes a strict dry run of the API server."""
    chart = helm_python.Chart.load(str(CHART))
    seen, foreign, sets, refused = set(), set(), 0, []
    for values in value_sets():
        try:
            documents = chart.render(values, name=RELEASE, namespace=fleet.namespace)
        except helm_python.HelmError as error:
            refused.append(str(error))
            continue
        sets += 1
        for item in (each for text in documents.values() for each in fleet.documents(text)):
            what = yaml.safe_dump(item)
            if what in seen:
                continue
            seen.add(what)
            try:
                fleet.api.post(place(item), item)
            except Refused as error:
                if error.code == 404 and "the server could not find the requested resource" in error.message:
                    foreign.add(item["kind"])
                    continue
                expect(False, f"{item['kind']} {item['metadata']['name']} of {values}: {error}")
    expect(not refused, f"{len(refused)} value sets are refused, first: {refused[:1]}")
    return f"{len(seen)} different objects of {sets} value sets; not known to this server: {', '.join(sorted(foreign)) or 'none'}"
