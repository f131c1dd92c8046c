# `make demo` and `make test` need Rust and make; what else they need they install, and say so.

CARGO ?= cargo

# A macro declares their modules, so `cargo fmt` does not find them.
VERBS = $(shell find cli/src/verbs -name '*.rs')

.PHONY: help demo cluster test test-all chaos simulation fuzz lint fmt bench deny kubernetes-test release-check

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## Run all 26 tasks against the built-in simulator; needs no GPU, no Redis, no network model.
	$(CARGO) build --quiet --bin kgfleet
	target/debug/kgfleet run --data-dir target/demo
	target/debug/kgfleet report latest --data-dir target/demo --out target/demo/report.html

cluster: ## Start Redis, a simulator, a coordinator and two workers on this machine, until interrupted.
	$(CARGO) build --quiet --bin kgfleet
	deploy/local/cluster target/debug/kgfleet

test: ## Run all tests, and say which skipped and why.
	tests/setup
	CARGO="$(CARGO)" tests/run

test-all: test ## Run also the tests of the Python package with inspect_ai, lm_eval, pandas and pyarrow (1 GB from PyPI).
	CARGO="$(CARGO)" tests/python

SECONDS ?= 60
SEED ?= 1

chaos: ## Let everything fail at a cluster for SECONDS=60, by the plan of SEED=1, and print what became of it.
	tests/setup
	KGFLEET_CHAOS_SECONDS=$(SECONDS) KGFLEET_CHAOS_SEED=$(SEED) \
	  $(CARGO) test --quiet -p cli --test it -- --nocapture --exact cluster::chaos::everything_ends_or_says_why_and_nothing_is_lost_whatever_fails

SEEDS ?= 300
PROFILE ?= dev

simulation: ## Simulate a fleet by SEEDS=300 seeds, each another order of what happens; see docs/reliability.md.
	KGFLEET_SIM_SEEDS=$(SEEDS) $(CARGO) test --quiet --profile $(PROFILE) -p simulation -- --nocapture

fuzz: ## Fuzz everything that reads bytes of the world, each target for SECONDS=60; see fuzz/README.md.
	fuzz/run $(SECONDS)

lint: ## Check formatting, lints and unused dependencies.
	$(CARGO) fmt --all --check
	rustfmt --check --edition 2024 $(VERBS)
	$(CARGO) clippy --workspace --all-targets --locked --quiet -- --deny warnings
	command -v cargo-machete >/dev/null || $(CARGO) install --locked --quiet cargo-machete
	$(CARGO) machete

fmt: ## Format the code.
	$(CARGO) fmt --all
	rustfmt --edition 2024 $(VERBS)

bench: ## Print the figures of docs/performance.md.
	$(CARGO) bench --workspace

deny: ## Check licences, bans and sources of all dependencies.
	$(CARGO) deny --locked check licenses bans sources

kubernetes-test: ## Try the chart on a Kubernetes that is built and started on this machine; needs root, Go and containerd.
	tests/kubernetes/run $(STEPS)

release-check: ## Try all that a release must pass and is made of, and say what could not be tried; takes hours.
	deploy/release-check
