#!/usr/bin/env bash
# Deploys Sluice into a resource group: stores, registry, images, container app, jobs, alerts; then checks that it runs.
# Safe to run again: every step brings things to the state that the files describe, and changes nothing else.
# Tried: --dry-run, and the order of calls against a stand-in for az. Not tried: Azure itself.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: deploy/azure/deploy.sh --group NAME [options] [-- parameter=value ...]

  --group NAME        resource group; made when missing
  --location REGION   region of a new group (default westeurope)
  --subscription ID   subscription (default: that of `az account show`)
  --parameters FILE   parameter file (default bicep/main.parameters.json)
  --tag TAG           tag of the images (default: the commit, or the time where there is none)
  --skip-build        use images that are in the registry already (give --tag too)
  --only-what-if      show what would change, and stop
  --yes               do not ask before changing anything
  --dry-run           print each command instead of running it
  --help              this text

Everything after -- goes to the template, for instance:
  deploy/azure/deploy.sh --group sluice -- eventhubRatelimit=3000 existingCosmosAccount=mine

Needs az 2.60 or newer, signed in, with the right to make resources and to assign roles (Owner, or Contributor and
Role Based Access Control Administrator).
TEXT
}

say() { printf '\n== %s\n' "$*" >&2; }
fail() { printf 'deploy: %s\n' "$*" >&2; exit 1; }
need() { [ $# -ge 2 ] || fail "$1 needs a value."; }

group='' location=westeurope subscription='' tag='' parameters=''
skip_build=no only_what_if=no yes=no dry_run=no
overrides=()
while [ $# -gt 0 ]; do
    case $1 in
    --group) need "$@"; group=$2; shift 2 ;;
    --location) need "$@"; location=$2; shift 2 ;;
    --subscription) need "$@"; subscription=$2; shift 2 ;;
    --parameters) need "$@"; parameters=$2; shift 2 ;;
    --tag) need "$@"; tag=$2; shift 2 ;;
    --skip-build) skip_build=yes; shift ;;
    --only-what-if) only_what_if=yes; shift ;;
    --yes) yes=yes; shift ;;
    --dry-run) dry_run=yes; shift ;;
    --help | -h) usage; exit 0 ;;
    --) shift; overrides=("$@"); break ;;
    *) usage >&2; fail "unknown option $1" ;;
    esac
done
[ -n "$group" ] || { usage >&2; fail "--group is missing."; }
[ "$skip_build" = no ] || [ -n "$tag" ] || fail "--skip-build needs --tag: which images shall run?"
[ -z "$parameters" ] || parameters=$(realpath "$parameters")
cd "$(dirname "$0")/../.."
parameters=${parameters:-bicep/main.parameters.json}
[ -f "$parameters" ] || fail "there is no file $parameters"
[ -n "$tag" ] || tag=$(git rev-parse --short=12 HEAD 2>/dev/null || date -u +%Y%m%d%H%M%S)

exec 3>&1 # where a dry run prints, also from inside $(...)

# Runs a command, or prints it in a form that can be pasted.
run() {
    if [ "$dry_run" = yes ]; then
        { printf '%q ' "$@" && printf '\n'; } >&3
    else
        "$@"
    fi
}

# Asks az for one value; in a dry run the given stand-in is the answer.
ask() {
    local stand_in=$1
    shift
    if [ "$dry_run" = yes ]; then
        run "$@"
        printf '%s' "$stand_in"
    else
        "$@" --output tsv
    fi
}

deployment() { # verb, name, further parameters
    local verb=$1 name=$2
    shift 2
    local arguments=(--resource-group "$group" --template-file bicep/main.bicep --parameters "@$parameters" "imageTag=$tag")
    arguments+=("${overrides[@]+"${overrides[@]}"}" "$@")
    [ "$verb" = what-if ] || arguments+=(--name "$name" --output none)
    run az deployment group "$verb" "${arguments[@]}"
}

output() { ask "$2" az deployment group show --resource-group "$group" --name sluice --query "properties.outputs.$1.value"; }

if [ "$dry_run" = no ]; then
    command -v az >/dev/null || fail "az is not installed: https://learn.microsoft.com/cli/azure/install-azure-cli"
    az account show --output none || fail "sign in first: az login"
fi
[ -z "$subscription" ] || run az account set --subscription "$subscription"

say "Resource group $group"
if [ "$dry_run" = no ] && [ "$(az group exists --name "$group")" = true ]; then
    echo "exists" >&2
else
    run az group create --name "$group" --location "$location" --output none
fi

say "What would change"
deployment what-if sluice
[ "$only_what_if" = no ] || exit 0
if [ "$yes" = no ] && [ "$dry_run" = no ]; then
    read -r -p "Go on? [y/N] " answer
    case $answer in y | Y | yes) ;; *) fail "stopped; nothing was changed." ;; esac
fi

# The app needs its image, and the image needs the registry: so the first time in two steps.
if [ "$skip_build" = no ]; then
    say "Stores, identity and registry"
    deployment create sluice deployApps=false
    registry=$(output registryName "<registry>")
    say "Images, tag $tag"
    run az acr build --registry "$registry" --image "sluice:$tag" --target service --build-arg "REVISION=$tag" --file Dockerfile .
    run az acr build --registry "$registry" --image "sluice-spark:$tag" --target spark --build-arg "REVISION=$tag" --file Dockerfile .
fi

say "Everything"
deployment create sluice

say "Check: identity, hub, blobs, Cosmos and one bulk request, from inside"
job=$(output adminJobName "<name>-admin")
app=$(output appName "<name>")
execution=$(ask "<execution>" az containerapp job start --name "$job" --resource-group "$group" --query name)
for attempt in $(seq 1 60); do
    status=$(ask Succeeded az containerapp job execution show --name "$job" --resource-group "$group" --job-execution-name "$execution" --query properties.status)
    case $status in
    Succeeded) break ;;
    Failed | Stopped | Degraded) fail "the check ended with $status. Its log: az containerapp job logs show --name $job --resource-group $group --execution $execution --container sluice" ;;
    esac
    [ "$attempt" -lt 60 ] || fail "the check has not ended after 10 minutes."
    sleep 10
done
state=$(ask Healthy az containerapp revision list --name "$app" --resource-group "$group" --query "[?properties.active] | [0].properties.healthState")
[ "$state" = Healthy ] || fail "the active revision of $app is $state. Its log: az containerapp logs show --name $app --resource-group $group --follow"

say "Done"
run az deployment group show --resource-group "$group" --name sluice --query properties.outputs --output yamlc
