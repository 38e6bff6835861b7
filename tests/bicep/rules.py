"""Faults against what Sluice needs: settings, roles, scaling, no keys, probes, parameters, alerts."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from service.config import Settings
from service.units import parse_bytes, parse_duration
from tests.bicep.dialect import MISSING, BicepFile, Node, at, literal, properties, text, walk

NEVER_PASSED = {
    "EVENTHUB_CONNSTRING": "managed identity instead of secrets",
    "BLOB_CONNSTRING": "managed identity instead of secrets",
    "COSMOS_CONNSTRING": "managed identity instead of secrets",
}
NOT_OURS = {
    "AZURE_CLIENT_ID": "which identity the Azure SDKs shall use",
    "APPLICATIONINSIGHTS_CONNECTION_STRING": "switches the Azure Monitor exporter on",
}
OTHER_DEFAULTS = {
    "EVENTHUB_CONSUMERGROUP": "a group of its own is made, so $Default stays free for others",
    "EVENTHUB_RATELIMIT_SCOPE": "auto: fleet where more than one replica may run",
    "LOG_FORMAT": "logs go to Log Analytics, which wants JSON; auto gives the same",
    "HTTP_HOST": "the probes come from outside the container",
    "EVENTHUB_NAMESPACE": "known only once deployed",
    "EVENTHUB_NAME": "the template names the hub that it makes",
    "BLOB_ACCOUNT_URL": "known only once deployed",
    "BLOB_CONTAINER": "the template names the container that it makes",
    "COSMOS_ENDPOINT": "known only once deployed",
    "COSMOS_DATABASE": "the template names the database that it makes",
    "COSMOS_CONTAINER": "the template names the container that it makes",
    "DEADLETTER_CONTAINER": "the container must exist: the identity may not make one",
}
GRANTS = {
    ("modules/event-hubs-access.bicep", "hub", "eventHubsDataReceiver", "principalId"),
    ("modules/storage-access.bicep", "leases", "storageBlobDataContributor", "principalId"),
    ("modules/storage-access.bicep", "deadLetters", "storageBlobDataContributor", "principalId"),
    ("modules/storage-access.bicep", "jobs", "storageBlobDataContributor", "principalId"),
    ("modules/storage-access.bicep", "reports", "storageBlobDataContributor", "principalId"),
    ("modules/storage-access.bicep", "capture", "storageBlobDataReader", "principalId"),
    ("modules/storage-access.bicep", "capture", "storageBlobDataContributor", "capturePrincipalId"),
    ("modules/registry-access.bicep", "registry", "acrPull", "principalId"),
    ("modules/monitoring.bicep", "insights", "monitoringMetricsPublisher", "principalId"),
    (
        "modules/cosmos-access.bicep",
        "'${account.id}/dbs/${databaseName}/colls/${containerName}'",
        "cosmosDataContributor",
        "principalId",
    ),
}
"""Who may do what, and on what: exactly these."""
BUILT_IN_ROLES = {
    "eventHubsDataReceiver": "a638d3c7-ab3a-418d-83e6-5f17a39d4fde",
    "storageBlobDataContributor": "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
    "storageBlobDataReader": "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1",
    "acrPull": "7f951dda-4ed3-4680-a7ca-43fe172d538d",
    "monitoringMetricsPublisher": "3913510d-42f4-4e42-8a64-420c390055eb",
    "cosmosDataContributor": "00000000-0000-0000-0000-000000000002",
}
"""Azure's own ids, a second time, so that a slip in the table is seen."""
KEYS_OFF = {
    "Microsoft.EventHub/namespaces": ("disableLocalAuth", True),
    "Microsoft.Storage/storageAccounts": ("allowSharedKeyAccess", False),
    "Microsoft.DocumentDB/databaseAccounts": ("disableLocalAuth", True),
    "Microsoft.ContainerRegistry/registries": ("adminUserEnabled", False),
    "Microsoft.Insights/components": ("DisableLocalAuth", True),
    "Microsoft.OperationalInsights/workspaces": ("features.disableLocalAuth", True),
}
GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
KEDA = {
    "eventHubNamespace": "toLower(eventHubNamespace)",
    "eventHubName": "toLower(eventHubName)",
    "consumerGroup": "consumerGroup",
    "storageAccountName": "toLower(storageAccountName)",
    "blobContainer": "toLower(blobContainer)",
    "checkpointStrategy": "leaseMode == 'ownership' ? 'blobMetadata' : ''",
    "unprocessedEventThreshold": "string(unprocessedEventThreshold)",
    "activationUnprocessedEventThreshold": "'0'",
}
"""The scale rule's metadata as it must be written; all values are strings. The group stays as it is: in lease mode it
is part of blob names as the service wrote them, and in ownership mode KEDA lower-cases it itself."""
JOBS_CONTAINER = "toLower('${blobContainer}-jobs')"
"""As `jobs_container` in service/jobs/runs.py names it."""
KEDA_SOURCES = {
    "eventHubNamespace": "namespaceName",
    "eventHubName": "eventhubName",
    "consumerGroup": "eventhubConsumergroup",
    "storageAccountName": "storageName",
    "blobContainer": "blobContainer",
    "leaseMode": "leaseMode",
    "unprocessedEventThreshold": "scaleThreshold",
    "maxReplicas": "mostReplicas",
    "settings": "settings",
}


def faults(
    files: Mapping[str, BicepFile], roles: Mapping[str, str], parameters: Mapping[str, Any], metrics: set[str]
) -> Iterator[str]:
    main, app = files["main.bicep"], files["modules/app.bicep"]
    yield from _settings(main)
    yield from _roles(files, roles)
    yield from _keys(files)
    yield from _app(main, app)
    yield from _parameters(main, parameters)
    yield from _alerts(files["modules/alerts.bicep"], metrics)
    yield from _docker(files)


def _value(file: BicepFile, kind: str, name: str) -> Node | None:
    found = file.of(kind).get(name)
    return None if found is None else found.value


def _settings(main: BicepFile) -> Iterator[str]:
    given = properties(_value(main, "variable", "settings"))
    names = {name.upper() for name in Settings.model_fields}
    for name in sorted(given.keys() - names - NOT_OURS.keys()):
        yield f"settings: {name} is no setting of the service"
    for name in sorted(names - given.keys() - NEVER_PASSED.keys()):
        yield f"settings: {name} does not reach the container app"
    for name in sorted(given.keys() & NEVER_PASSED.keys()):
        yield f"settings: {name} must not be passed: {NEVER_PASSED[name]}"
    for name in sorted(given.keys() & names - OTHER_DEFAULTS.keys()):
        yield from _default(main, name, given[name])


def _default(main: BicepFile, name: str, node: Node) -> Iterator[str]:
    written = text(node)
    parameters = {item.name: item for item in main.of("parameter").values()}
    used = [text(part) for part in walk(node) if part.type == "identifier" and text(part) in parameters]
    if len(used) != 1:
        yield f"settings: {name} must come from one parameter, not from {written}"
        return
    value = literal(parameters[used[0]].value)
    if value is True or value is False:
        value = "yes" if value else "no"
    elif value is MISSING:
        yield f"settings: the default of {used[0]} is not a literal"
        return
    if written.startswith("'${"):
        value = f"{value}s"
    if not _same(name, str(value)):
        expected = Settings.model_fields[name.lower()].default
        yield f"settings: {name} is {value!r} by default here, but {expected!r} in the service"


def _same(name: str, value: str) -> bool:
    default = Settings.model_fields[name.lower()].default
    if default is None or isinstance(default, str):
        return value == (default or "")
    if isinstance(default, bool):
        return value == ("yes" if default else "no")
    if isinstance(default, float) and value[-1].isalpha():
        return parse_duration(value) == default
    return (parse_bytes(value) if value[-1].isalpha() else float(value)) == default


def _roles(files: Mapping[str, BicepFile], roles: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(BUILT_IN_ROLES.keys() | roles.keys()):
        if roles.get(name) != BUILT_IN_ROLES.get(name):
            yield f"roles: {name} is {roles.get(name)} in the table, but {BUILT_IN_ROLES.get(name)} in Azure"
    found = set()
    for path, file in files.items():
        for guid in GUID.findall(text(file.root)):
            yield f"{path}: {guid} belongs into roles.json"
        for item in file.of("resource").values():
            if not item.type.split("@")[0].endswith(("/roleAssignments", "/sqlRoleAssignments")):
                continue
            body = item.body
            granted = re.findall(r"roles\.(\w+)", text(at(body, "properties", "roleDefinitionId")))
            scope = text(at(body, "properties", "scope") or at(body, "scope"))
            principal = text(at(body, "properties", "principalId"))
            found.add((path, scope, granted[0] if granted else "", principal))
            in_name = re.findall(r"roles\.(\w+)", text(at(body, "name")))
            if in_name != granted:
                yield f"{path}:{item.line}: the name of {item.name} must be made of its own role"
    for path, scope, role, principal in sorted(GRANTS - found):
        yield f"{path}: {principal} is not granted {role} on {scope}"
    for path, scope, role, principal in sorted(found - GRANTS):
        yield f"{path}: {principal} is granted {role} on {scope}, which nothing needs"


def _keys(files: Mapping[str, BicepFile]) -> Iterator[str]:
    for path, file in files.items():
        for item in file.of("resource").values():
            wanted = KEYS_OFF.get(item.type.split("@")[0])
            if wanted and not item.existing:
                node = at(item.body, "properties", *wanted[0].split("."))
                if literal(node) is not wanted[1]:
                    yield f"{path}:{item.line}: {item.name} lets keys in: {wanted[0]} must be {wanted[1]}"
        for item in file.declarations:
            if "secure" in item.decorators:
                yield f"{path}:{item.line}: {item.name} is a secret; there are none"


def _app(main: BicepFile, app: BicepFile) -> Iterator[str]:
    body = app.of("resource")["app"].body
    template = at(body, "properties", "template")
    expectations = {
        "activeRevisionsMode": (at(body, "properties", "configuration", "activeRevisionsMode"), "'Single'"),
        "ingress.external": (at(body, "properties", "configuration", "ingress", "external"), "false"),
        "ingress.allowInsecure": (at(body, "properties", "configuration", "ingress", "allowInsecure"), "false"),
        "terminationGracePeriodSeconds": (at(template, "terminationGracePeriodSeconds"), "60"),
        "scale.rules.custom.type": (at(template, "scale", "rules", "0", "custom", "type"), "'azure-eventhub'"),
        "scale.rules.custom.identity": (at(template, "scale", "rules", "0", "custom", "identity"), "identityId"),
        "scale.maxReplicas": (at(template, "scale", "maxReplicas"), "maxReplicas"),
    }
    for name, (node, wanted) in expectations.items():
        if text(node) != wanted:
            yield f"app: {name} must be {wanted}, not {text(node)}"
    rule = at(template, "scale", "rules", "0", "custom")
    metadata = {name: text(node) for name, node in properties(at(rule, "metadata")).items()}
    for name in sorted(KEDA.keys() | metadata.keys()):
        if metadata.get(name) != KEDA.get(name):
            yield f"app: KEDA's {name} must be {KEDA.get(name)}, not {metadata.get(name)}"
    if at(rule, "auth") is not None:
        yield "app: KEDA asks with the identity, not with secrets"
    probes = at(template, "containers", "0", "probes")
    seen = {
        (str(literal(at(probe, "type"))), str(literal(at(probe, "httpGet", "path"))))
        for probe in (probes.named_children if probes is not None else ())
    }
    if seen != {("Startup", "/healthz"), ("Liveness", "/healthz"), ("Readiness", "/readyz")}:
        yield f"app: the probes are {sorted(seen)}"
    yield from _call_of_app(main)


def _call_of_app(main: BicepFile) -> Iterator[str]:
    given = properties(properties(main.of("module")["app"].body)["params"])
    for name, wanted in KEDA_SOURCES.items():
        if text(given.get(name)) != wanted:
            yield f"main: the app's {name} must be {wanted}, not {text(given.get(name))}"
    grace = 60
    deadline = literal(_value(main, "parameter", "shutdownDeadline"))
    if not isinstance(deadline, str) or parse_duration(deadline) > grace - 5:
        yield f"main: a shutdown of {deadline} does not fit into {grace} s"


def _parameters(main: BicepFile, parameters: Mapping[str, Any]) -> Iterator[str]:
    given = parameters.get("parameters", {})
    wanted = main.of("parameter")
    for name in sorted(wanted.keys() ^ given.keys()):
        where = "main.parameters.json" if name in wanted else "main.bicep"
        yield f"parameters: {name} is missing in {where}"
    for name in sorted(wanted.keys() & given.keys()):
        call = wanted[name].decorators.get("description")
        words = "" if call is None else str(literal(call.fields["arguments"].named_children[0]))
        if given[name].get("metadata", {}).get("description") != words:
            yield f"parameters: {name} is not described as in main.bicep"
        default = literal(wanted[name].value)
        if default is not MISSING and given[name].get("value") != default:
            yield f"parameters: {name} is {given[name].get('value')!r}, but {default!r} in main.bicep"


def _alerts(file: BicepFile, metrics: set[str]) -> Iterator[str]:
    rules = _value(file, "variable", "rules")
    for rule in rules.named_children if rules is not None else ():
        name = literal(at(rule, "metric"))
        if name not in metrics:
            yield f"alerts: {name} is no metric of the service"
    watched = {str(literal(at(rule, "name"))) for rule in (rules.named_children if rules is not None else ())}
    for needed in sorted({"lag", "minutes-to-loss", "dead-letters", "no-checkpoint"} - watched):
        yield f"alerts: nothing watches {needed}"


def _docker(files: Mapping[str, BicepFile]) -> Iterator[str]:
    """The jobs start what the images have, with what they need."""
    for name, item in files["main.bicep"].of("module").items():
        if not item.type.endswith("job.bicep"):
            continue
        image, command = (text(at(item.body, "params", key)) for key in ("image", "command"))
        if ("job.py" in command) != ("/sluice-spark:" in image):
            yield f"main: {name} starts {command} in {image}"
        if text(at(item.body, "params", "settings")) != "settings":
            yield f"main: {name} must have the settings of the service: by its group it finds the service's checkpoints"
    if text(_value(files["main.bicep"], "variable", "jobsContainer")) != JOBS_CONTAINER:
        yield f"main: the jobs keep their plans in {JOBS_CONTAINER}"


def parameters_file(main: BicepFile) -> str:
    """main.parameters.json as it follows from main.bicep; a default that is reckoned becomes empty or null."""
    entries = {}
    for name, item in main.of("parameter").items():
        words = literal(item.decorators["description"].fields["arguments"].named_children[0])
        value = literal(item.value)
        if value is MISSING:
            value = {"array": [], "object": {"application": "sluice"}}.get(item.type)
        entries[name] = {"value": value, "metadata": {"description": words}}
    schema = "https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#"
    return json.dumps({"$schema": schema, "contentVersion": "1.0.0.0", "parameters": entries}, indent=2) + "\n"
