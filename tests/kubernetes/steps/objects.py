"""What the API server says of everything that the chart makes."""

import itertools

import helm_python
import yaml

from api import Refused
from fleet import CHART, Failed, merged, pool
from steps import expect, step

# Values that are varied together, each with the first one as the default.
DIMENSIONS = {
    "coordinator": [{}, {"coordinator": {"storage": {"accessModes": ["ReadWriteMany"]}}}],
    "redis": [{}, {"redis": {"mode": "external", "url": "rediss://redis:6379", "tlsSecretName": "redis", "clientCertificate": True}}],
    "tls": [{}, {"tls": {"mode": "existing", "existingSecret": "tls"}}, {"tls": {"mode": "off"}}],
    "secrets": [{}, {"secrets": {"create": "none"}}],
    "weights": [{}, {"sharedPvcStorage": {"enabled": True}}, {"weights": {"hostPath": "/data/hf"}}],
    "kueue": [{}, {"kueue": {"queueName": "gpu", "priorityClass": "p", "topology": "unconstrained"}}],
    "network": [{}, {"networkPolicy": {"enabled": False}}],
    "monitoring": [{}, {"monitoring": {"grafanaDashboards": {"enabled": True}}}],
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


def place(item, tries="?dryRun=All&fieldValidation=Strict"):
    group = item["apiVersion"]
    root = f"/api/{group}" if group == "v1" else f"/apis/{group}"
    plural = item["kind"].lower().removesuffix("y") + ("ies" if item["kind"].endswith("y") else "s")
    return f"{root}/namespaces/{item['metadata']['namespace']}/{plural}{tries}"


@step
def every_object(fleet):
    """Every object of generated values, and of the chart's own value sets, passes a strict dry run of the API server."""
    seen, foreign, sets, refused, wrong = set(), set(), 0, [], []
    for values in value_sets():
        try:
            made = fleet.rendered(values)
        except helm_python.HelmError as error:
            refused.append(str(error))
            continue
        sets += 1
        for item in made:
            what = yaml.safe_dump(item)
            if what in seen:
                continue
            seen.add(what)
            try:
                fleet.api.post(place(item), item)
                if item["kind"] == "ServiceAccount":
                    # Pods of accounts that are not there are refused.
                    fleet.api.post(place(item, ""), item)
            except OSError as error:
                raise Failed(f"no answer on {item['kind']} {item['metadata']['name']}, object {len(seen)}: {error}") from None
            except Refused as error:
                if error.code == 404:
                    # A kind that this server does not know.
                    foreign.add(item["kind"])
                    continue
                if error.code != 409:
                    wrong.append(f"{item['kind']} {item['metadata']['name']} of pools {[each.get('name') for each in values['servingEngineSpec']['modelSpec']]}: {error}")
    expect(not wrong, f"{len(wrong)} objects are refused, first: {wrong[:3]}")
    expect(not refused, f"{len(refused)} value sets are refused, first: {refused[:1]}")
    return f"{len(seen)} different objects of {sets} value sets; not known to this server: {', '.join(sorted(foreign)) or 'none'}"
