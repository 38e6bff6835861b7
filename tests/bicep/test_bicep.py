"""The templates as they are have no fault, and each kind of fault is found when it is planted."""

import re
from dataclasses import dataclass

import pytest

from service.config import Settings
from tests.bicep import rules
from tests.bicep.conftest import all_faults
from tests.bicep.dialect import parse


def test_the_templates_have_no_fault(sources):
    assert all_faults(sources) == []


def test_the_parameter_file_is_the_one_that_follows_from_the_template(sources):
    assert sources["main.parameters.json"] == rules.parameters_file(parse(sources["main.bicep"]))


def test_every_setting_reaches_the_app_but_for_a_written_list(sources):
    passed = set(rules.properties(parse(sources["main.bicep"]).of("variable")["settings"].value))
    assert passed | rules.NEVER_PASSED.keys() >= {name.upper() for name in Settings.model_fields}


def test_every_written_exception_is_still_one():
    names = {name.upper() for name in Settings.model_fields}
    assert rules.NEVER_PASSED.keys() <= names
    assert rules.OTHER_DEFAULTS.keys() <= names
    assert not rules.NOT_OURS.keys() & names


@dataclass(frozen=True)
class Planted:
    """One change to one file, and a word of the fault that must be found."""

    what: str
    file: str
    old: str
    new: str
    found: str
    times: int = 1


APP, MAIN, STORAGE = "modules/app.bicep", "main.bicep", "modules/storage-access.bicep"
PLANTED = [
    Planted("broken syntax", APP, "resource app '", "resource app app '", "syntax"),
    Planted("property misspelt", APP, "minReplicas: minReplicas", "minReplica: minReplicas", "unknown property"),
    Planted("property at the wrong level", APP, "      scale: {", "      replicas: {", "unknown property"),
    Planted("deep property misspelt", APP, "path: '/readyz'", "route: '/readyz'", "unknown property"),
    Planted(
        "required property left out", "modules/job.bicep", "replicaTimeout: timeoutSeconds", "", "missing property"
    ),
    Planted("resource type misspelt", APP, "Microsoft.App/containerApps@", "Microsoft.App/containerApp@", "no schema"),
    Planted("API version unknown", APP, "containerApps@2025-01-01", "containerApps@2031-01-01", "no schema"),
    Planted(
        "value of the wrong type",
        APP,
        "terminationGracePeriodSeconds: 60",
        "terminationGracePeriodSeconds: '60'",
        "no int",
    ),
    Planted("value not in the list", "modules/storage.bicep", "'TLS1_2'", "'TLS_1_2'", "none of"),
    Planted(
        "object for a list",
        APP,
        "registries: [\n        {\n          server: registryServer\n          identity: identityId\n        }\n"
        "      ]",
        "registries: {\n        server: registryServer\n        identity: identityId\n      }",
        "registries",
    ),
    Planted(
        "parent forgotten", STORAGE, "  parent: blobs\n  name: leaseContainer", "  name: leaseContainer", "no parent"
    ),
    Planted("parameter not described", APP, "@description('Required. The image.')\n", "", "no description"),
    Planted(
        "parameter said to be optional", APP, "'Required. The image.'", "'Optional. The image.'", "must begin with"
    ),
    Planted(
        "module given an unknown parameter", MAIN, "    sku: storageSku", "    tier: storageSku", "no parameter tier"
    ),
    Planted("module not given a parameter", MAIN, "    leaseMode: leaseMode\n", "", "is not given leaseMode"),
    Planted("module given the wrong type", MAIN, "    httpPort: httpPort", "    httpPort: cpu", "takes int"),
    Planted("module path wrong", MAIN, "'modules/app.bicep'", "'modules/apps.bicep'", "no module"),
    Planted("undefined output", MAIN, "identity.outputs.clientId", "identity.outputs.applicationId", "no output"),
    Planted("undefined name", MAIN, "minReplicas: minReplicas", "minReplicas: fewestReplicas", "not declared"),
    Planted("unused parameter", MAIN, "    email: alertEmail", "    email: ''", "alertEmail is not used"),
    Planted("unknown function", APP, "toLower(eventHubName)", "lower(eventHubName)", "no known function"),
    Planted("name declared twice", MAIN, "var newStorage =", "var newCosmos =", "declared twice"),
    Planted(
        "things that need each other",
        MAIN,
        "    sku: storageSku",
        "    sku: storageAccess.outputs.accountId",
        " needs ",
    ),
    Planted(
        "default not allowed", MAIN, "param leaseMode string = 'lease'", "param leaseMode string = 'leases'", "allowed"
    ),
    Planted("variable of the service renamed", MAIN, "  EVENTHUB_RATELIMIT:", "  EVENTHUB_RATE_LIMIT:", "no setting"),
    Planted(
        "setting that does not reach the app", MAIN, "  COSMOS_RULIMIT: string(cosmosRulimit)\n", "", "does not reach"
    ),
    Planted(
        "default that differs",
        MAIN,
        "param cosmosBatchMax int = 100",
        "param cosmosBatchMax int = 50",
        "by default here",
    ),
    Planted(
        "duration that differs",
        MAIN,
        "param leaseRenew string = '10s'",
        "param leaseRenew string = '15s'",
        "by default here",
    ),
    Planted(
        "setting from the wrong parameter",
        MAIN,
        "WORKERS: string(workers)",
        "WORKERS: string(cosmosBatchMax)",
        "WORKERS",
    ),
    Planted(
        "connection string passed",
        MAIN,
        "  EVENTHUB_NAME:",
        "  EVENTHUB_CONNSTRING: cpu\n  EVENTHUB_NAME:",
        "must not be passed",
    ),
    Planted("role missing", STORAGE, "  scope: deadLetters\n", "  scope: reports\n", "is not granted"),
    Planted(
        "role too strong",
        STORAGE,
        "roles.storageBlobDataReader",
        "roles.storageBlobDataContributor",
        "nothing needs",
        times=2,
    ),
    Planted("role id mistyped", "roles.json", "7f951dda", "7f951ddb", "in Azure"),
    Planted(
        "role id outside the table",
        STORAGE,
        "roles.storageBlobDataReader)\n  scope",
        "'2a2b9908-6ea1-4ae2-8e65-a410df84e7d1')\n  scope",
        "roles.json",
    ),
    Planted(
        "Cosmos scope by the wrong path", "modules/cosmos-access.bicep", "/colls/", "/containers/", "is not granted"
    ),
    Planted("wrong KEDA strategy", APP, "leaseMode == 'ownership' ?", "leaseMode == 'lease' ?", "checkpointStrategy"),
    Planted(
        "capital in a KEDA name",
        APP,
        "eventHubName: toLower(eventHubName)",
        "eventHubName: eventHubName",
        "eventHubName",
    ),
    Planted(
        "KEDA key misspelt",
        APP,
        "unprocessedEventThreshold: string",
        "unprocessedEventsThreshold: string",
        "unprocessedEventsThreshold",
    ),
    Planted("KEDA without identity", APP, "              identity: identityId\n", "", "custom.identity"),
    Planted(
        "KEDA looks at another group",
        MAIN,
        "consumerGroup: eventhubConsumergroup",
        "consumerGroup: sparkConsumergroup",
        "consumerGroup",
    ),
    Planted(
        "jobs cannot see how far the service is",
        MAIN,
        "/sluice-spark:${imageTag}'\n    settings: settings",
        "/sluice-spark:${imageTag}'\n    settings: union(settings, { EVENTHUB_CONSUMERGROUP: sparkConsumergroup })",
        "the settings of the service",
    ),
    Planted("jobs keep plans elsewhere", MAIN, "'${blobContainer}-jobs'", "'${blobContainer}-runs'", "their plans"),
    Planted("replicas without bound", MAIN, "maxReplicas: mostReplicas", "maxReplicas: partitionCount", "maxReplicas"),
    Planted("several revisions at once", APP, "'Single'", "'Multiple'", "activeRevisionsMode"),
    Planted("open to the internet", APP, "external: false", "external: true", "external"),
    Planted(
        "shutdown longer than the grace",
        MAIN,
        "shutdownDeadline string = '50s'",
        "shutdownDeadline string = '90s'",
        "does not fit",
    ),
    Planted(
        "keys switched on", "modules/cosmos.bicep", "disableLocalAuth: true", "disableLocalAuth: false", "lets keys in"
    ),
    Planted(
        "shared key of storage",
        "modules/storage.bicep",
        "allowSharedKeyAccess: false",
        "allowSharedKeyAccess: true",
        "lets keys in",
    ),
    Planted(
        "secret fetched",
        "modules/environment.bicep",
        "destination: 'azure-monitor'",
        "destination: listKeys(workspaceId, '1')",
        "secret",
    ),
    Planted(
        "secret as a parameter",
        APP,
        "@description('Required. The image.')",
        "@secure()\n@description('Required. The image.')",
        "is a secret",
    ),
    Planted("alert on no metric", "modules/alerts.bicep", "'sluice.lag'", "'sluice.lags'", "no metric"),
    Planted("alert forgotten", "modules/alerts.bicep", "name: 'minutes-to-loss'", "name: 'minutes'", "nothing watches"),
    Planted("knob not in the parameter file", "main.parameters.json", '"workers"', '"worker"', "is missing in"),
    Planted("job in the wrong image", MAIN, "/sluice-spark:${imageTag}", "/sluice:${imageTag}", "starts"),
]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.what)
def test_a_planted_fault_is_found(sources, planted):
    assert planted.old in sources[planted.file], "the place to plant it is gone"
    sources[planted.file] = sources[planted.file].replace(planted.old, planted.new, planted.times)
    found = all_faults(sources)
    assert any(planted.found in fault for fault in found), found


def test_at_least_twenty_kinds_of_fault_are_planted():
    assert len({planted.what for planted in PLANTED}) >= 20


def test_no_file_names_a_secret_or_a_key(sources):
    for path, source in sources.items():
        assert not re.search(r"(AccountKey|SharedAccessKey|password)\s*[=:]", source), path
