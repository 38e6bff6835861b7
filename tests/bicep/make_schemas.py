"""Makes tests/bicep/schemas.json: what Azure's resource types accept, trimmed to names, types and what is required.

The data is that of Microsoft's tool azmcp (package msmcp-azure, version 3.0.0, MIT licence), which carries the type
definitions of Azure Resource Manager. Run it again when a new API version is wanted:

    python tests/bicep/make_schemas.py /path/to/azmcp

Types that azmcp does not carry are in schemas_by_hand.json, written from Microsoft's template reference.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TYPES = (
    "Microsoft.App/containerApps",
    "Microsoft.App/jobs",
    "Microsoft.App/managedEnvironments",
    "Microsoft.Authorization/roleAssignments",
    "Microsoft.ContainerRegistry/registries",
    "Microsoft.DocumentDB/databaseAccounts",
    "Microsoft.DocumentDB/databaseAccounts/sqlDatabases",
    "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers",
    "Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments",
    "Microsoft.EventHub/namespaces",
    "Microsoft.EventHub/namespaces/eventhubs",
    "Microsoft.EventHub/namespaces/eventhubs/consumergroups",
    "Microsoft.Insights/components",
    "Microsoft.ManagedIdentity/userAssignedIdentities",
    "Microsoft.Network/privateEndpoints",
    "Microsoft.Network/privateEndpoints/privateDnsZoneGroups",
    "Microsoft.Network/virtualNetworks",
    "Microsoft.OperationalInsights/workspaces",
    "Microsoft.Storage/storageAccounts",
    "Microsoft.Storage/storageAccounts/blobServices",
    "Microsoft.Storage/storageAccounts/blobServices/containers",
)
DEEPEST = 7
"""Levels of properties that are kept: network types refer to each other without end, and ours use six."""
NOTICE = (
    "Names and types of Azure resource properties, trimmed from the data in azmcp (msmcp-azure 3.0.0), "
    "Copyright (c) Microsoft Corporation, MIT License. Made by make_schemas.py."
)


def trimmed(answer: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The resource's name with its version, and its body with every type written out in place."""
    resource = next(part for part in answer if part["$type"] == "Resource")
    types = {part["name"]: part for part in answer if "name" in part and part["$type"] != "Resource"}
    return resource["name"], _body(resource["bodyType"], types, DEEPEST)


def _body(kind: Mapping[str, Any], types: Mapping[str, Any], levels: int) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for field in kind.get("properties") or kind.get("baseProperties") or ():
        flags = field.get("flags") or ""
        if "ReadOnly" in flags:
            continue
        body[field["name"] + ("!" if "Required" in flags else "")] = _kind(field["type"], types, levels - 1)
    if kind.get("additionalPropertiesType") or kind["$type"] != "Object":
        body["*"] = "any"
    return body


def _kind(name: str, types: Mapping[str, Any], levels: int) -> Any:
    base = name.removesuffix("[]")
    if base not in types:
        return name
    if levels == 0:
        return "any"
    body = _body(types[base], types, levels) or {"*": "any"}
    return [body] if name.endswith("[]") else body


def main() -> None:
    """Asks azmcp for each type and writes the file."""
    azmcp = sys.argv[1]
    schemas = {}
    for kind in TYPES:
        answer = subprocess.run(
            [azmcp, "bicepschema", "get", "--resource-type", kind],
            check=True,
            capture_output=True,
            env={**os.environ, "AZURE_MCP_COLLECT_TELEMETRY": "false"},
        )
        name, body = trimmed(json.loads(answer.stdout)["results"]["BicepSchemaResult"])
        schemas[name] = body
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(body)}" for name, body in sorted(schemas.items()))
    (HERE / "schemas.json").write_text(f'{{"notice": {json.dumps(NOTICE)},\n{lines}}}\n')


if __name__ == "__main__":
    main()
