# Each target does its own set-up: nothing has to be installed by hand but Python 3.11+ (and, for tests where apt may
# not be used, Java 17+ and Chromium).
.DEFAULT_GOAL := help
.PHONY: help setup demo test proof lint bench clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 10

setup: ## virtual environment, packages, Azurite; the tool is then at .venv/bin/sluice
	@deploy/local/setup.sh test

demo: ## a minute of everything: hub, Cosmos, producer, consumer, live figures
	@deploy/local/setup.sh demo
	@.venv/bin/sluice demo

test: setup lint ## lint and all tests but the long ones (at most 12 minutes)
	.venv/bin/pytest -n 3 --dist loadgroup -m "not proof and not bench and not alone"
	.venv/bin/pytest -m "alone and not proof and not bench"

proof: setup ## the long proofs: chaos, many seeds, soak, foreign suites
	.venv/bin/pytest -m proof --timeout 3600
	HYPOTHESIS_PROFILE=searching .venv/bin/pytest tests/unit --timeout 3600

lint: setup ## ruff and mypy
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

bench: setup ## measurements
	.venv/bin/pytest -m bench -s --timeout 3600

clean: ## remove what set-up made
	rm -rf .venv deploy/local/node_modules tests/contract/js/node_modules
