"""Checks the chart: lint, rendering, schemas, policy, snapshots, upgrades, bad values, and the table of values.

    python helm/kgfleet/tests/check.py            all checks
    KGFLEET_BLESS=1 python .../check.py           the same, and writes snapshots and the table anew
    python .../check.py values FILE               only validates what the chart makes of these values
    python .../check.py render FILE [JSON]        prints the objects of these values, with those of the JSON over them,
                                                  as JSON lines

Needs the packages of requirements.txt; tests/setup installs them into target/chart-venv.
"""

import copy
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys

import helm_python
import jsonschema
import kubernetes_validate
import yaml

HERE = pathlib.Path(__file__).resolve().parent
CHART = HERE.parent
ROOT = CHART.parent.parent
CRDS = ROOT / "third_party" / "crds"
BLESS = os.environ.get("KGFLEET_BLESS") == "1"
# The oldest Kubernetes of Chart.yaml's kubeVersion, and the newest that the validator knows.
KUBERNETES = ["1.31.0", "1.37.0"]
RELEASE, NAMESPACE = "kgfleet", "bench"

failures = []


def expect(condition, message):
    if not condition:
        failures.append(message)


def value_sets():
    return sorted((HERE / "values").glob("*.yaml"))


def render(values, name=RELEASE, namespace=NAMESPACE):
    """The objects of the chart with these values, in the order of their names."""
    documents = helm_python.Chart.load(str(CHART)).render(values, name=name, namespace=namespace)
    objects = []
    for path, text in sorted(documents.items()):
        if path.endswith(".yaml"):
            objects += [(path, each) for each in yaml.safe_load_all(text) if each]
    return objects


def refusal(values):
    """What the chart says of values that it refuses; None where it takes them."""
    try:
        render(values)
    except helm_python.HelmError as error:
        return str(error)
    return None


def pod_specs(item):
    """The pod specifications within an object, with their labels."""
    kind, spec = item["kind"], item.get("spec", {})
    if kind == "Pod":
        yield item["metadata"].get("labels", {}), spec
    elif kind == "CronJob":
        template = spec["jobTemplate"]["spec"]["template"]
        yield template["metadata"]["labels"], template["spec"]
    elif "template" in spec:
        yield spec["template"]["metadata"].get("labels", {}), spec["template"]["spec"]


def containers(spec):
    return spec.get("initContainers", []) + spec.get("containers", [])


# --- schemas ---------------------------------------------------------------------------------------------------------


def as_of(item, version):
    """The object as the chart makes it for an older Kubernetes: the library renders for the newest that it knows."""
    if version < "1.35":
        item = copy.deepcopy(item)
        for _, spec in pod_specs(item):
            for each in spec["containers"]:
                if each.pop("restartPolicyRules", None):
                    del each["restartPolicy"]
    return item


def validate(where, item):
    """Strictly against the schemas of Kubernetes, or of the custom resource."""
    group = item["apiVersion"].split("/")[0]
    if "." not in group or group.endswith("k8s.io"):
        for version in KUBERNETES:
            try:
                kubernetes_validate.validate(as_of(item, version), version, strict=True)
            except kubernetes_validate.ValidationError as error:
                failures.append(f"{where}: Kubernetes {version} refuses it: {error.message} at {list(error.path)}")
        return
    name = f"{item['apiVersion'].replace('/', '-')}-{item['kind']}.json"
    file = CRDS / name
    expect(file.exists(), f"{where}: no schema {name} in {CRDS}")
    for error in jsonschema.Draft202012Validator(json.loads(file.read_text())).iter_errors(item):
        failures.append(f"{where}: {error.message} at {list(error.path)}")


# --- policy ----------------------------------------------------------------------------------------------------------


# What all workers wait for.
CENTRAL = ("coordinator", "redis", "conductor")

# What components may do in the cluster, but for the names of Secrets; all others may do nothing.
RIGHTS = {
    "conductor": [
        {"apiGroups": ["batch"], "resources": ["cronjobs"], "verbs": ["get", "list"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "create", "delete"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["get", "list"]},
    ],
    "drain": [
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["delete"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "delete"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ],
    "secrets": [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "update"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    ],
}


UNITS = {"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def quantity(text):
    """A number of Kubernetes with its unit."""
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(text)).groups()
    return float(number) * UNITS[unit]


def check_pod(where, labels, spec, one_shot, hosts):
    security = spec.get("securityContext", {})
    expect(security.get("runAsNonRoot") is True and security.get("runAsUser", 0) > 0, f"{where}: could run as root")
    expect(security.get("seccompProfile", {}).get("type") == "RuntimeDefault", f"{where}: no seccomp profile")
    component = labels.get("app.kubernetes.io/component")
    acts = component in RIGHTS
    expect(spec.get("automountServiceAccountToken") is acts, f"{where}: mounts a service account's token, or lacks it")
    # Otherwise Kubernetes sets variables such as KGFLEET_COORDINATOR_PORT, which look like options of ours.
    expect(spec.get("enableServiceLinks") is False, f"{where}: gets variables of services")
    expect(not any(spec.get(host) for host in ("hostNetwork", "hostPID", "hostIPC")), f"{where}: is part of the host")
    expect(hosts or not any("hostPath" in volume for volume in spec.get("volumes", [])), f"{where}: mounts the host's files")
    if component in CENTRAL and not one_shot:
        leaves = {each.get("key"): each.get("tolerationSeconds") for each in spec.get("tolerations", []) if each.get("effect") == "NoExecute"}
        left = [leaves.get(f"node.kubernetes.io/{state}", 300) for state in ("not-ready", "unreachable")]
        expect(max(left) <= 60, f"{where}: stays on a lost node for {left} s")
    grace = spec.get("terminationGracePeriodSeconds")
    # Pools may have one, for clouds that give rights by its name.
    expect("serviceAccountName" not in spec or component == "worker" or acts, f"{where}: acts as a service account")
    if component == "worker":
        worker = next(each for each in spec["containers"] if each["name"] == "worker")
        own = int(worker["args"][worker["args"].index("--grace") + 1])
        expect(grace >= own + 10, f"{where}: {grace} s are no time to deliver what was finished in {own} s")
    volumes = {volume["name"] for volume in spec.get("volumes", [])}
    for each in containers(spec):
        inside = f"{where}, container {each['name']}"
        own = each.get("securityContext", {})
        expect(own.get("allowPrivilegeEscalation") is False and not own.get("privileged"), f"{inside}: may gain rights")
        expect(own.get("readOnlyRootFilesystem") is True, f"{inside}: may write to its image")
        expect(own.get("capabilities", {}).get("drop") == ["ALL"], f"{inside}: has capabilities")
        limits = each.get("resources", {}).get("limits", {})
        for resource, asked in each.get("resources", {}).get("requests", {}).items():
            fits = quantity(asked) <= quantity(limits.get(resource, asked))
            expect(fits, f"{inside}: asks for {asked} of {resource}, and may have {limits.get(resource)}")
        # A server that loads takes what CPU there is.
        for resource in ("memory", "ephemeral-storage") if each["name"] == "vllm" else ("cpu", "memory", "ephemeral-storage"):
            expect(resource in limits, f"{inside}: no limit of {resource}")
        if not one_shot:
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                expect(probe in each, f"{inside}: no {probe}")
        for mount in each.get("volumeMounts", []):
            expect(mount["name"] in volumes or mount["name"] == "data", f"{inside}: no volume {mount['name']}")
        for variable in each.get("env", []):
            secret = re.search("TOKEN|PASSWORD|SECRET|_KEY$", variable["name"])
            expect(not (secret and "value" in variable), f"{inside}: {variable['name']} is a secret in plain sight")


def check_policy(where, objects, hosts=False):
    for path, item in objects:
        name = f"{where}: {item['kind']} {item['metadata']['name']}"
        expect(item["metadata"].get("namespace") == NAMESPACE, f"{name}: no namespace")
        one_shot = item["kind"] in ("Job", "CronJob", "Pod")
        for labels, spec in pod_specs(item):
            check_pod(name, labels, spec, one_shot, hosts)
        if item["kind"] == "Role":
            rules = [{key: value for key, value in rule.items() if key != "resourceNames"} for rule in item["rules"]]
            known = RIGHTS[item["metadata"]["labels"]["app.kubernetes.io/component"]]
            expect(all(rule in known for rule in rules), f"{name}: gives other rights than {known}")
            named = [rule for rule in item["rules"] if rule["resources"] == ["secrets"] and rule["verbs"] != ["create"]]
            expect(all(rule.get("resourceNames") for rule in named), f"{name}: gives rights to all Secrets")
        expect(item["kind"] not in ("ClusterRole", "ClusterRoleBinding"), f"{name}: is for the whole cluster")
        keys = set(item.get("stringData", {})) | set(item.get("data", {})) if item["kind"] == "Secret" else {"url"}
        expect(keys == {"url"}, f"{name}: holds secrets, which whoever renders the chart would see: {keys}")


def check_pools(where, values, objects):
    """A pool is a stored Job that never starts by itself, and says what is believed of it."""
    pools = [item for _, item in objects if item["kind"] == "CronJob" and "kgfleet/pool" in item["metadata"]["labels"]]
    stored = {item["metadata"]["labels"]["kgfleet/pool"]: item for item in pools}
    labelled = [(item, labels) for _, item in objects for labels, _ in pod_specs(item)]
    for item, labels in labelled:
        budget = [each for _, each in objects if each["kind"] == "PodDisruptionBudget" and each["spec"]["selector"]["matchLabels"].items() <= labels.items()]
        expect(item["kind"] not in ("Job", "CronJob") or not budget, f"{where}: a disruption budget over Jobs lets no node be emptied")
    for name, item in stored.items():
        spec, job = item["spec"], item["spec"]["jobTemplate"]
        expect(spec["suspend"] is True, f"{where}: pool {name} starts by the clock")
        expect(job["metadata"]["labels"]["kgfleet/pool"] == name, f"{where}: Jobs of {name} do not say so")
        estimate = json.loads(item["metadata"]["annotations"]["kgfleet/estimate"])
        required = {"gpus": int, "parts": int, "servers": int, "load_seconds": int, "dialogues_per_second": (int, float)}
        for key, kind in required.items():
            expect(isinstance(estimate.get(key), kind) and estimate[key] > 0, f"{where}: the estimate of {name} has no {key}: {estimate}")
        expect(set(estimate) <= {*required, "dialogues"}, f"{where}: the estimate of {name} has other keys: {estimate}")
        template = job["spec"]["template"]["spec"]
        server = next(each for each in template["initContainers"] if each["name"] == "vllm")
        parts = job["spec"]["completions"]
        expect(estimate["parts"] == parts == job["spec"]["parallelism"], f"{where}: {name} has {parts} parts, and {estimate}")
        gpus = [int(value) for key, value in server["resources"]["limits"].items() if "/" in key]
        expect(gpus == [estimate["gpus"]], f"{where}: {name} takes {gpus} GPUs, and {estimate}")
        expect(("successPolicy" in job["spec"]) == (parts > 1), f"{where}: {name}: only the first of several parts counts")
        expect("livenessProbe" not in server or parts == 1, f"{where}: {name}: a part without API cannot be probed")
        for probe in ("startupProbe", "readinessProbe"):
            expect(probe not in server, f"{where}: {name}: a loading server would keep the worker from its start, or evict the pod")
        worker = template["containers"][0]["args"]
        wanted = {"--until-done", "--leave-surplus", "--server-wait", "--later-code"}
        expect(wanted <= set(worker), f"{where}: the worker of {name} lacks {wanted - set(worker)}")


def check_drain(where, objects):
    """Before the release goes, what works for it ends within its grace, by a Job that can end nothing else."""
    labelled = [(item, labels, spec) for _, item in objects for labels, spec in pod_specs(item)]
    graces = [spec["terminationGracePeriodSeconds"] for _, labels, spec in labelled if "kgfleet/pool" in labels]
    hooks = [item for _, item in objects if item["metadata"].get("annotations", {}).get("helm.sh/hook") == "pre-delete"]
    jobs = [item for item in hooks if item["kind"] == "Job"]
    expect(len(jobs) == bool(graces), f"{where}: {len(graces)} kinds of workers are drained by {len(jobs)} Jobs")
    for job in jobs:
        deadline = job["spec"]["activeDeadlineSeconds"]
        expect(deadline >= max(graces) + 120, f"{where}: workers have {max(graces)} s to end, and are waited for {deadline} s")
        weights = {item["kind"]: int(item["metadata"]["annotations"]["helm.sh/hook-weight"]) for item in hooks}
        expect(all(weights[kind] < weights["Job"] for kind in ("ServiceAccount", "Role", "RoleBinding")), f"{where}: hooks begin in the order {weights}")
    ending = [item for item, labels, _ in labelled if "kgfleet/pool" in labels or labels["app.kubernetes.io/component"] == "conductor"]
    deployments = {item["metadata"]["name"] for item in ending if item["kind"] == "Deployment"}
    rules = [rule for item in hooks if item["kind"] == "Role" for rule in item["rules"]]
    may = {name for rule in rules if rule["resources"] == ["deployments"] for name in rule.get("resourceNames", [])}
    all_of_them = [rule for rule in rules if rule["verbs"] == ["delete"] and not rule.get("resourceNames")]
    expect(may == deployments and not all_of_them, f"{where}: the Deployments {deployments} end, and {may} may be ended")


def check_rules(where, objects):
    """Two releases in one Prometheus: the rules of each look at its own series, and lead where the values say."""
    own = f'namespace="{NAMESPACE}", release="{RELEASE}"'
    for _, item in objects:
        for group in item["spec"]["groups"] if item["kind"] == "PrometheusRule" else []:
            for rule in group["rules"]:
                names = re.findall(r"\bkgfleet[:_][a-z0-9_:]*", rule["expr"])
                restricted = re.findall(r"\bkgfleet[:_][a-z0-9_:]*\{" + re.escape(own), rule["expr"])
                expect(names and len(names) == len(restricted), f"{where}: a rule looks at other releases: {rule['expr']}")
                url = rule.get("annotations", {}).get("runbook_url")
                if url:
                    expect(url.endswith("#" + rule["alert"].lower()), f"{where}: {rule['alert']} has the runbook {url}")
        endpoints = item["spec"].get("endpoints", []) + item["spec"].get("podMetricsEndpoints", []) if "Monitor" in item["kind"] else []
        for endpoint in endpoints:
            labels = {each["targetLabel"] for each in endpoint["relabelings"]}
            expect(labels == {"instance", "node", "pool", "release"}, f"{where}: a scraped pod is called by {labels}")


def check_selectors(where, objects):
    """Every selector of the release finds its pods."""
    labelled = [labels for _, item in objects for labels, _ in pod_specs(item)]
    for _, item in objects:
        spec = item.get("spec", {})
        selector = spec.get("selector") or spec.get("podSelector") or {}
        wanted = selector.get("matchLabels", selector if item["kind"] == "Service" else None)
        if not isinstance(wanted, dict) or item["kind"] in ("ServiceMonitor", "PersistentVolumeClaim"):
            continue
        found = any(wanted.items() <= labels.items() for labels in labelled)
        optional = item["kind"] in ("NetworkPolicy", "PodMonitor")
        expect(found or optional, f"{where}: the selector of {item['kind']} {item['metadata']['name']} finds no pod")


# Where the metrics of each container are named; those of the first are of every process of ours.
EVERYWHERE = "shared/service-kit/src"
TABLES = {"coordinator": "coordinator/src/metrics/table.rs", "worker": "worker/src/metrics/table.rs", "conductor": "conductor/src/metrics.rs"}


def sources_of_metrics():
    """Which containers have each metric: those of ours by name, those of model servers by their prefix."""
    sources = {"vllm:": {"vllm"}}
    for container, table in TABLES.items():
        for name in re.findall(r'"(kgfleet_[a-z0-9_]+)"', (ROOT / table).read_text()):
            sources.setdefault(name, set()).add(container)
    for file in (ROOT / EVERYWHERE).rglob("*.rs"):
        for name in re.findall(r'const [A-Z_]+: &str = "(kgfleet_[a-z0-9_]+)"', file.read_text()):
            sources[name] = set(TABLES)
    return sources


def expressions(item):
    """Everything in rules or a dashboard that Prometheus is asked."""
    if isinstance(item, dict):
        for key, value in item.items():
            if key in ("expr", "query", "definition") and isinstance(value, str):
                yield value
            yield from expressions(value)
    elif isinstance(item, list):
        for value in item:
            yield from expressions(value)


def metrics_asked_for():
    """The metrics that rules and dashboards name, each with a file that does; a record of the rules is none."""
    asked = {}
    for file in [*ROOT.glob("deploy/prometheus/*.yml"), *ROOT.glob("deploy/grafana/*.json")]:
        if file.name != "alerts_test.yml":
            for expression in expressions(yaml.safe_load(file.read_text())):
                for name in re.findall(r"\b(?:kgfleet_|vllm:)[a-z0-9_:]+", expression):
                    asked.setdefault(name, file.name)
    return asked


def scraped_containers(objects):
    """The containers whose port some monitor names."""
    services = [item for _, item in objects if item["kind"] == "Service"]
    pods = [(labels, spec) for _, item in objects for labels, spec in pod_specs(item)]
    found = set()
    for _, item in objects:
        if item["kind"] not in ("ServiceMonitor", "PodMonitor"):
            continue
        wanted = item["spec"]["selector"]["matchLabels"]
        if item["kind"] == "PodMonitor":
            ends = [(wanted, each["port"]) for each in item["spec"]["podMetricsEndpoints"]]
        else:
            chosen = [each["spec"] for each in services if wanted.items() <= each["metadata"]["labels"].items()]
            named = {each["port"] for each in item["spec"]["endpoints"]}
            ends = [(each["selector"], port["targetPort"]) for each in chosen for port in each["ports"] if port["name"] in named]
        for selector, port in ends:
            for labels, spec in pods:
                if selector.items() <= labels.items():
                    found |= {each["name"] for each in containers(spec) if port in [own["name"] for own in each.get("ports", [])]}
    return found


def check_scraped():
    """Whatever metric a rule or a dashboard names, a monitor of the chart scrapes the component that has it."""
    over = {"redis": {"mode": "own"}, "monitoring": {"serviceMonitor": {"enabled": True}}}
    scraped = scraped_containers(render({**over, "servingEngineSpec": {"modelSpec": [POOL]}}))
    sources, asked = sources_of_metrics(), metrics_asked_for()
    expect(len(asked) > 50, f"rules and dashboards name only {len(asked)} metrics")
    for name, file in sorted(asked.items()):
        name = "vllm:" if name.startswith("vllm:") else name
        known = sources.get(name) or sources.get(re.sub("_(bucket|sum|count)$", "", name), set())
        expect(known, f"{file}: no component has the metric {name}")
        expect(known <= scraped, f"{file}: no monitor of the chart scrapes the {', '.join(sorted(known - scraped))}, which has {name}")


# --- snapshots and upgrades ------------------------------------------------------------------------------------------


def masked(objects):
    """The objects without what is compared elsewhere."""
    objects = copy.deepcopy(objects)
    for _, item in objects:
        if item["kind"] == "ConfigMap":
            item["data"] = {key: "a copy" if key.endswith(".json") else text for key, text in item["data"].items()}
        elif item["kind"] == "PrometheusRule":
            item["spec"]["groups"] = [{"name": group["name"], "rules": "a copy"} for group in item["spec"]["groups"]]
    return objects


def snapshot(name, objects):
    text = "".join(f"---\n# {path}\n" + yaml.safe_dump(item, sort_keys=True, width=110) for path, item in masked(objects))
    file = HERE / "snapshots" / f"{name}.yaml"
    if BLESS:
        file.write_text(text)
    known = file.read_text() if file.exists() else ""
    if text != known:
        changes = difflib.unified_diff(known.splitlines(), text.splitlines(), "snapshot", "rendered", lineterm="", n=2)
        failures.append(f"{name}: differs from its snapshot; KGFLEET_BLESS=1 writes it anew\n" + "\n".join(list(changes)[:60]))


def immutable(objects):
    """What Kubernetes does not let an upgrade change, by object. Jobs and claims that are there are rendered as they are there."""
    kept = {}
    for _, item in objects:
        key, spec = (item["kind"], item["metadata"]["name"]), item.get("spec", {})
        if item["kind"] == "Deployment":
            kept[key] = spec["selector"]
        elif item["kind"] == "StatefulSet":
            kept[key] = {name: value for name, value in spec.items() if name not in ("replicas", "template")}
        elif item["kind"] == "CronJob":
            kept[key] = None
        elif item["kind"] == "PersistentVolumeClaim":
            kept[key] = "stays as it is there"
        elif item["kind"] == "Service":
            kept[key] = spec.get("clusterIP")
        elif item["kind"] == "ConfigMap" and item.get("immutable"):
            kept[key] = item["data"]
    return kept


def check_upgrade(name, values):
    """An upgrade with another image, other sizes and another run changes nothing that cannot change."""
    before = immutable(render(values))
    after = copy.deepcopy(values)
    after.setdefault("image", {}).update({"tag": "9.9.9", "digest": ""})
    after.setdefault("commonLabels", {})["upgraded"] = "true"
    after.setdefault("workerSpec", {}).update({"graceSeconds": 900})
    if after.get("run", {}).get("config"):
        after["run"]["config"] += "\n# changed\n"
    for pool in after.get("servingEngineSpec", {}).get("modelSpec", []):
        pool["nodes"] = pool.get("nodes", 1) + 1
    check_kept(name, before, immutable(render(after)))


def check_kept(name, before, changed):
    for key in [key for key in before.keys() & changed.keys() if key[0] not in ("Job", "CronJob", "PersistentVolumeClaim")]:
        expect(before[key] == changed[key], f"{name}: an upgrade would change what cannot change of {key}")
    # The queue holds nothing that coordinators cannot fill in again.
    replaced = ("StatefulSet", f"{RELEASE}-redis")
    gone = before.keys() - changed.keys() - {replaced}
    lost = [key for key in gone if key[0] not in ("Job", "ConfigMap")]
    expect(not lost, f"{name}: an upgrade would remove {lost}")


# --- bad values ------------------------------------------------------------------------------------------------------

POOL = {"name": "p", "modelURL": "org/model"}
NO_REDIS = {"redis": {"mode": "own"}}
BAD = [
    ({"redis": {"mode": "external"}}, ["redis.url or redis.existingSecret"]),
    ({**NO_REDIS, "replicas": 3}, ["additional", "replicas"]),
    ({**NO_REDIS, "coordinator": {"leaseSeconds": "two"}}, ["coordinator", "leaseSeconds", "integer"]),
    ({**NO_REDIS, "coordinator": {"storage": {"size": "much"}}}, ["storage", "size"]),
    ({"redis": {"mode": "own", "url": "redis://redis:6379"}}, ["redis.url", "redis.mode to `external`"]),
    ({"redis": {"mode": "external", "url": "redis://:secret@redis:6379"}}, ["password", "redis.existingSecret"]),
    ({"redis": {"url": "http://redis:6379"}}, ["redis", "url"]),
    ({**NO_REDIS, "tls": {"mode": "existing"}}, ["tls.existingSecret"]),
    ({**NO_REDIS, "tls": {"mode": "maybe"}}, ["tls", "mode"]),
    ({**NO_REDIS, "workerSpec": {"graceSeconds": 60}}, ["graceSeconds is 60", "240"]),
    ({**NO_REDIS, "servingEngineSpec": {"modelSpec": [{"name": "p"}]}}, ["modelURL"]),
    ({**NO_REDIS, "servingEngineSpec": {"modelSpec": [{**POOL, "name": "Upper Case"}]}}, ["name"]),
    ({**NO_REDIS, "servingEngineSpec": {"modelSpec": [POOL, POOL]}}, ["two pools"]),
    ({**NO_REDIS, "servingEngineSpec": {"modelSpec": [{**POOL, "modelUrl": "x"}]}}, ["modelUrl"]),
    ({**NO_REDIS, "servingEngineSpec": {"modelSpec": [{**POOL, "requestGPU": 4, "vllmConfig": {"tensorParallelSize": 1}}]}}, ["tensorParallelSize", "is 1", "is 4"]),
    ({**NO_REDIS, "servingEngineSpec": {"modelSpec": [{**POOL, "name": "coordinator"}]}}, ["pool `coordinator`", "another part"]),
    ({**NO_REDIS, "servingEngineSpec": {"modelSpec": [{**POOL, "name": "drain"}]}}, ["pool `drain`", "another part"]),
    ({**NO_REDIS, "servingEngineSpec": {"modelSpec": [{**POOL, "standing": True, "multiNodeSize": 2}]}}, ["2 nodes", "set standing to false"]),
    (
        {**NO_REDIS, "fullnameOverride": "a" * 40, "servingEngineSpec": {"modelSpec": [{**POOL, "name": "p" * 24, "standing": False}]}},
        ["52 characters", "fullnameOverride"],
    ),
    (
        {**NO_REDIS, "sharedPvcStorage": {"enabled": True, "accessModes": ["ReadWriteOnce"]}, "servingEngineSpec": {"modelSpec": [{**POOL, "multiNodeSize": 2}]}},
        ["sharedPvcStorage.accessModes", "ReadWriteMany"],
    ),
    (
        {**NO_REDIS, "servingEngineSpec": {"modelSpec": [{**POOL, "workersPerNode": 3, "gpusPerNode": 2}]}},
        ["do not fit on a node with 2"],
    ),
    ({**NO_REDIS, "autoscaling": {"type": "keda"}}, ["autoscaling"]),
    ({**NO_REDIS, "apiPools": [{"name": "a"}]}, ["connectors is empty"]),
    ({**NO_REDIS, "apiPools": [{"name": "a", "connectors": ["telepathy"]}]}, ["connectors"]),
]


def check_bad_values():
    for values, words in BAD:
        said = refusal(values)
        expect(said is not None, f"values are taken that cannot work: {values}")
        for word in words:
            expect(word in (said or word), f"the refusal of {values} does not name `{word}`: {said}")


# --- the table of values ---------------------------------------------------------------------------------------------


def value_rows():
    """Every key of values.yaml with the comment above it and its default."""
    rows, path, comment = [], [], []
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for line in (CHART / "values.yaml").read_text().splitlines():
        text = line.strip()
        if not text:
            comment = []
        elif text.startswith("# "):
            comment.append(text[2:])
        elif match := re.match(r"( *)([A-Za-z0-9]+):", line):
            depth = len(match.group(1)) // 2
            path = path[:depth] + [match.group(2)]
            value = values
            for key in path:
                value = value[key] if isinstance(value, dict) else None
            expect(comment or path[-1] in ("requests", "limits"), f"values.yaml: {'.'.join(path)} has no comment")
            if comment:
                rows.append((".".join(path), " ".join(comment), value, line.rstrip().endswith(":")))
            comment = []
    return rows


def check_table():
    lines = ["| key | meaning | default |", "|---|---|---|"]
    for key, meaning, value, parent in value_rows():
        meaning = meaning.replace("|", "\\|")
        default = "" if parent else f"`{json.dumps(value, ensure_ascii=False)}`"
        lines.append(f"| `{key}` | {meaning} | {default} |")
    readme = CHART / "README.md"
    text = readme.read_text()
    begin, end = "<!-- values: begin -->\n", "<!-- values: end -->"
    before, rest = text.split(begin)
    made = before + begin + "\n" + "\n".join(lines) + "\n\n" + end + rest.split(end)[1]
    if BLESS:
        readme.write_text(made)
    expect(readme.read_text() == made, "README.md: the table differs from values.yaml; KGFLEET_BLESS=1 writes it anew")


def check_schema_covers_values():
    """The schema knows every key of values.yaml and no others."""
    schema = json.loads((CHART / "values.schema.json").read_text())

    def compare(value, part, path):
        if not isinstance(value, dict) or "properties" not in part:
            return
        expect(part.get("additionalProperties") is False, f"values.schema.json: {path} takes unknown keys")
        unknown = set(part["properties"]) - set(value) - {"global", "secretName", "secretKey", "name", "kind", "group"}
        expect(not unknown, f"values.schema.json: {path} has keys that values.yaml lacks: {unknown}")
        for key, below in value.items():
            expect(key in part["properties"], f"values.schema.json: no {path}.{key}")
            compare(below, part["properties"].get(key, {}), f"{path}.{key}")

    compare(yaml.safe_load((CHART / "values.yaml").read_text()), schema, "values")


def check_names():
    """Names that YAML takes for something else than text stay names."""
    pools = [{**POOL, "name": name} for name in ("y", "on", "1e3")]
    values = {"servingEngineSpec": {"modelSpec": pools}, "apiPools": [{"name": "n", "connectors": ["anthropic"]}], "run": {"config": "x"}}
    for path, item in render(values, name="no", namespace="007"):
        validate(f"names: {path}", item)


def check_lint():
    result = helm_python.lint(str(CHART), strict=True, values=yaml.safe_load((HERE / "values/minimal.yaml").read_text()))
    messages = [str(message) for message in result.get("messages", []) if "icon is recommended" not in str(message)]
    expect(not messages, "lint: " + "; ".join(messages))


# What the chart takes from deploy. Helm reads nothing outside of the chart's folder but through links, and packages what
# they lead to.
LINKS = [
    ("deploy/grafana/*.json", "dashboards"),
    ("deploy/prometheus/alerts.yml", "rules"),
    ("deploy/prometheus/rules.yml", "rules"),
]


def check_links():
    wanted = {}
    for pattern, folder in LINKS:
        found = list(ROOT.glob(pattern))
        expect(found, f"{pattern}: no such file")
        wanted |= {CHART / folder / file.name: file for file in found}
    for link, file in wanted.items():
        expect(link.is_symlink() and link.resolve() == file.resolve(), f"{link.relative_to(ROOT)} is no link to {file.relative_to(ROOT)}")
    there = {file for _, folder in LINKS for file in (CHART / folder).glob("*")}
    expect(there == set(wanted), f"the chart has links to nothing: {there - set(wanted)}")


def check_scripts():
    """Everything that is not Rust passes its own linter."""
    scripts = ["image/build", "image/try", "slurm/submit", "slurm/worker.sbatch", "local/cluster", "kind/try"]
    linters = [
        [pathlib.Path(sys.executable).parent / "hadolint", ROOT / "deploy/image/Dockerfile"],
        ["shellcheck", *(ROOT / "deploy" / script for script in scripts)],
    ]
    for linter in linters:
        said = subprocess.run(linter, capture_output=True, text=True)
        expect(said.returncode == 0, f"{linter[0]}: {said.stdout}{said.stderr}")


def check_compose():
    """The compose file, against the schema of compose files; what it mounts exists; nothing of ours is root."""
    folder = ROOT / "deploy/compose"
    compose = yaml.safe_load((folder / "compose.yaml").read_text())
    schema = json.loads((ROOT / "third_party/compose/compose_spec.json").read_text())
    for error in jsonschema.Draft201909Validator(schema).iter_errors(compose):
        failures.append(f"compose.yaml: {error.message} at {list(error.path)}")
    for name, service in compose["services"].items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            there = (folder / source).exists() if source.startswith(".") else source in compose["volumes"]
            expect(there, f"compose.yaml: {name} mounts {source}, which is not there")
        for port in service.get("ports", []):
            expect(port.startswith("127.0.0.1:"), f"compose.yaml: {name} publishes {port} to the network")
        if "KGFLEET_IMAGE" in service["image"]:
            kept = service["read_only"] and service["user"] == "65532:65532" and service["cap_drop"] == ["ALL"]
            expect(kept, f"compose.yaml: {name} has rights that it does not need")


def main():
    mode, *files = sys.argv[1:] or [""]
    if mode in ("render", "values"):
        values = yaml.safe_load(pathlib.Path(files[0]).read_text())
        merge(values, json.loads(files[1]) if len(files) > 1 else {})
        objects = render(values)
        if mode == "render":
            print_lines(objects)
            return 0
        for _, item in objects:
            validate(f"{item['kind']} {item['metadata']['name']}", item)
        check_policy(files[0], objects, values.get("weights", {}).get("hostPath"))
        check_pools(files[0], values, objects)
        check_drain(files[0], objects)
        return report(f"{len(objects)} objects")
    check_lint()
    check_schema_covers_values()
    check_table()
    check_bad_values()
    check_names()
    check_scripts()
    check_links()
    check_compose()
    check_scraped()
    total = 0
    for file in value_sets():
        values = yaml.safe_load(file.read_text())
        objects = render(values)
        expect(objects == render(values), f"{file.stem}: two renders of the same values differ")
        total += len(objects)
        names = [(item["kind"], item["metadata"]["name"]) for _, item in objects]
        expect(len(names) == len(set(names)), f"{file.stem}: two objects have one name")
        for _, item in objects:
            validate(f"{file.stem}: {item['kind']} {item['metadata']['name']}", item)
        check_policy(file.stem, objects, values.get("weights", {}).get("hostPath"))
        check_pools(file.stem, values, objects)
        check_drain(file.stem, objects)
        check_selectors(file.stem, objects)
        check_rules(file.stem, objects)
        check_upgrade(file.stem, values)
        snapshot(file.stem, objects)
    return report(f"{len(value_sets())} value sets, {total} objects, {len(BAD)} refusals")


def report(what):
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{what}, {len(failures)} failures")
    return 1 if failures else 0


def merge(values, over):
    """Puts values over others, level by level."""
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(values.get(key), dict):
            merge(values[key], value)
        else:
            values[key] = value


def print_lines(objects):
    for _, item in objects:
        print(json.dumps(item))


if __name__ == "__main__":
    sys.exit(main())
