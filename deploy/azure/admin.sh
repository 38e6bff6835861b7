#!/usr/bin/env bash
# Runs a command of Sluice inside the environment, as a Container Apps job: it sees what the service sees, also behind private endpoints.
# Tried: --dry-run, and the calls against a stand-in for az. Not tried: Azure itself.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: deploy/azure/admin.sh --group NAME [--job NAME] [--dry-run] -- command [arguments]

  --group NAME   the resource group
  --job NAME     which job to start (default sluice-admin); its program stays, only its arguments change
  --dry-run      print each command instead of running it

  deploy/azure/admin.sh --group sluice -- leases list
  deploy/azure/admin.sh --group sluice -- checkpoints set --to 2026-01-31T00:00:00Z --dry-run

Waits for the end, prints the log, and gives back 0 where the command succeeded, else 1.
TEXT
}

fail() { printf 'admin: %s\n' "$*" >&2; exit 1; }
need() { [ $# -ge 2 ] || fail "$1 needs a value."; }

group='' job=sluice-admin dry_run=no
while [ $# -gt 0 ]; do
    case $1 in
    --group) need "$@"; group=$2; shift 2 ;;
    --job) need "$@"; job=$2; shift 2 ;;
    --dry-run) dry_run=yes; shift ;;
    --help | -h) usage; exit 0 ;;
    --) shift; break ;;
    *) usage >&2; fail "unknown option $1" ;;
    esac
done
[ -n "$group" ] || { usage >&2; fail "--group is missing."; }
[ $# -gt 0 ] || { usage >&2; fail "which command? Give it after --."; }

show=(az containerapp job show --name "$job" --resource-group "$group" --query properties.template --output json)
if [ "$dry_run" = yes ]; then
    printf '%q ' "${show[@]}" '>' template.json && printf '\n'
    printf '%q ' az containerapp job start --name "$job" --resource-group "$group" --yaml template.json && printf '\n'
    printf '# with the arguments: %s\n' "$*"
    exit 0
fi

# A run with other arguments needs the whole template again, variables included. JSON is YAML too.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${show[@]}" > "$folder/template.json"
python3 - "$folder/template.json" "$@" <<'CODE'
import json, sys
path, *arguments = sys.argv[1:]
template = json.load(open(path))
template["containers"][0]["args"] = arguments
json.dump(template, open(path, "w"))
CODE
execution=$(az containerapp job start --name "$job" --resource-group "$group" --yaml "$folder/template.json" --query name --output tsv)
echo "admin: $execution" >&2
while :; do
    status=$(az containerapp job execution show --name "$job" --resource-group "$group" --job-execution-name "$execution" --query properties.status --output tsv)
    case $status in Succeeded | Failed | Stopped | Degraded) break ;; esac
    sleep "${SLUICE_POLL_SECONDS:-5}"
done
az containerapp job logs show --name "$job" --resource-group "$group" --execution "$execution" --container sluice --tail 300 --format text || true
[ "$status" = Succeeded ] || fail "$execution ended with $status"
