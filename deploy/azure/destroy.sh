#!/usr/bin/env bash
# Removes what deploy.sh made, by removing its resource group. What is your own in other groups stays, with its data.
# Tried: --dry-run. Not tried: Azure itself.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: deploy/azure/destroy.sh --group NAME [--subscription ID] [--stop-only] [--yes] [--dry-run] [--help]

  --group NAME        the resource group; everything in it is removed: hub, checkpoints, dead letters, documents
  --stop-only         only stop the app: all replicas drain, checkpoint and end; nothing is removed
  --app NAME          name of the app, for --stop-only (default sluice)
  --yes               do not ask
  --dry-run           print each command instead of running it

Roles that were granted on things of your own in other groups go with the identity; the entries that stay behind
("Identity not found") do no harm and can be removed by hand.
TEXT
}

fail() { printf 'destroy: %s\n' "$*" >&2; exit 1; }
need() { [ $# -ge 2 ] || fail "$1 needs a value."; }

group='' subscription='' app=sluice stop_only=no yes=no dry_run=no
while [ $# -gt 0 ]; do
    case $1 in
    --group) need "$@"; group=$2; shift 2 ;;
    --subscription) need "$@"; subscription=$2; shift 2 ;;
    --app) need "$@"; app=$2; shift 2 ;;
    --stop-only) stop_only=yes; shift ;;
    --yes) yes=yes; shift ;;
    --dry-run) dry_run=yes; shift ;;
    --help | -h) usage; exit 0 ;;
    *) usage >&2; fail "unknown option $1" ;;
    esac
done
[ -n "$group" ] || { usage >&2; fail "--group is missing."; }

run() {
    if [ "$dry_run" = yes ]; then
        printf '%q ' "$@"
        printf '\n'
    else
        "$@"
    fi
}

[ -z "$subscription" ] || run az account set --subscription "$subscription"
if [ "$stop_only" = yes ]; then
    # A revision that is not active has no replicas; deploy.sh brings a new one.
    if [ "$dry_run" = yes ]; then
        run az containerapp revision list --name "$app" --resource-group "$group" --query '[?properties.active].name' --output tsv
        revisions='<revision>'
    else
        revisions=$(az containerapp revision list --name "$app" --resource-group "$group" --query '[?properties.active].name' --output tsv)
    fi
    for revision in $revisions; do
        run az containerapp revision deactivate --name "$app" --resource-group "$group" --revision "$revision"
    done
    exit 0
fi
if [ "$dry_run" = no ] && [ "$(az group exists --name "$group")" = false ]; then
    echo "destroy: there is no group $group; nothing to do." >&2
    exit 0
fi
if [ "$yes" = no ] && [ "$dry_run" = no ]; then
    az resource list --resource-group "$group" --query '[].{name:name, type:type}' --output table
    read -r -p "Remove all of this, with the data in it? Type the name of the group: " answer
    [ "$answer" = "$group" ] || fail "stopped; nothing was changed."
fi
run az group delete --name "$group" --yes
