# svc-tts: what a person does here. `make help` lists it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
NODE := node_modules/.bin/node
BIN := node_modules/.bin
# tools start Node by its name: let them find the pinned one
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
# every process of ours starts a second sooner when Node keeps what it compiled
export NODE_COMPILE_CACHE := $(or $(SVC_TTS_CACHE),$(HOME)/.cache/svc-tts)/compiled

.PHONY: help
help: ## list these targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/; s/\$$\$$/$$/g' | expand -t 20

node_modules/.installed: package.json package-lock.json
	@echo "==> installing npm packages (Node 24 among them)"
	@npm ci --no-fund --no-audit --loglevel=error
	@touch $@

.PHONY: deps
deps: ## install libflite1, which speaks English (Debian and its kin, as root); without it eSpeak NG does
	@if PATH="$$PATH:/sbin:/usr/sbin" ldconfig -p | grep -q 'libflite\.so\.1 '; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		$(call apt-install,libflite1); \
	else echo "==> libflite1 is missing, so English is spoken by eSpeak NG; for better English: sudo apt-get install libflite1"; fi

.PHONY: test-deps
test-deps: deps ## install FFmpeg, which the tests listen with, and nftables, whose tables they look for
	@export PATH="$$PATH:/sbin:/usr/sbin"; for needed in ffmpeg:ffmpeg nft:nftables; do \
		package=$${needed#*:}; \
		if command -v $${needed%:*} >/dev/null; then :; \
		elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			$(call apt-install,$$package); \
		else echo "==> $$package is missing and the tests need it: sudo apt-get install $$package"; exit 1; fi; \
	done

apt-install = echo "==> installing $(1)"; \
	{ apt-get install -y -qq $(1) || { apt-get update -qq && apt-get install -y -qq $(1); }; } >/dev/null

.PHONY: run
run: node_modules/.installed deps ## the three tiers on this machine, without a cluster (PORT_OFFSET=N, DEV=1)
	@$(NODE) server/main.ts all

.PHONY: check
check: node_modules/.installed ## types, lint, format and the rules of the house
	@$(BIN)/tsc -p .
	@$(BIN)/biome check --error-on-warnings .
	@$(NODE) test/check/main.ts
	@test/check/shell.sh
	@$(BIN)/knip && echo "dead files and exports: none"
	@$(MAKE) --no-print-directory verify

.PHONY: test
test: node_modules/.installed test-deps ## check, unit, integration and e2e, and one heavy proof in turn (SEED=… repeats a run); not in it: test-e2e-long, test-keda, test-speech, test-browser, test-vllm, test-crash, test-kind, fuzz
	@$(NODE) test/run/main.ts

.PHONY: test-unit
test-unit: node_modules/.installed test-deps ## unit tests
	@$(BIN)/vitest run --project unit

.PHONY: test-repeat
test-repeat: node_modules/.installed test-deps ## run test files repeatedly beside busy loops and print how often each test failed: N=10 FILES="…" BUSY=2
	@N="$(N)" FILES="$(FILES)" BUSY="$(BUSY)" $(NODE) test/run/repeat/main.ts

.PHONY: fuzz
fuzz: node_modules/.installed test-deps ## ten minutes of requests that Schemathesis makes up from /openapi.json (make test sends a few)
	@FUZZ_EXAMPLES=2000 FUZZ_SECONDS=600 $(BIN)/vitest run --project server test/integration/server/schemathesis.test.ts

.PHONY: clean
clean: ## remove what was made here (not the cache of built programs, not the cluster: make down)
	rm -rf node_modules .run coverage speech.wav

.PHONY: generate
generate: node_modules/.installed ## write the generated files: CRDs and their reference, the chart's CRDs and roles, docs/openapi.json
	@$(generate)

generate = $(NODE) crds/generate.ts && $(NODE) charts/generate.ts && $(NODE) server/api/openapi/main.ts > docs/openapi.json
generated := docs/openapi.json docs/reference.md crds/*.yaml charts/tts-operator/templates/crds charts/tts-operator/templates/rbac.yaml charts/tts-operator/templates/user-roles.yaml charts/tts-deployment/values.schema.json charts/tts-deployment/files charts/tts-operator/files charts/*/README.md config/kustomize/crds config/kustomize/*/rbac.yaml

.PHONY: verify
verify: node_modules/.installed ## fail when a generated file differs from its source
	@sums() { find $(generated) -type f | sort | xargs sha256sum; }; before=$$(sums); { $(generate); } >/dev/null; \
		diff <(echo "$$before") <(sums) >/dev/null || \
		{ git --no-pager diff --stat -- $(generated); echo "==> generated files were out of date; they are written now: look at them and commit them"; exit 1; }

.PHONY: test-integration
test-integration: node_modules/.installed test-deps ## the operator against a real API server (programs are built once: 12 minutes)
	@for built in cluster/tools.sh judges/build.sh collector/build.sh; do test/$$built >/dev/null || exit; done
	@$(BIN)/vitest run --project server --project cluster

.PHONY: test-operator-faults
test-operator-faults: node_modules/.installed ## stop the operator dead after each single write of a create, an update and a delete (make test tries every eleventh; its seed says where it begins)
	@test/cluster/tools.sh >/dev/null
	@CRASH_STEP=1 $(BIN)/vitest run --project cluster test/integration/operator/crash-

.PHONY: test-e2e
test-e2e: node_modules/.installed ## the main job on a real cluster, started here or given as KUBECONFIG=…
	@$(BIN)/vitest run --project e2e

.PHONY: test-speech
test-speech: node_modules/.installed test-deps ## have a recognizer listen to every English voice, plain and over a telephone, and tell all voices apart (7 minutes)
	@$(BIN)/vitest run --project speech

.PHONY: test-browser
test-browser: node_modules/.installed test-deps ## a person's way through the dashboard in Chromium, on SQLite and PostgreSQL (2 minutes; PICTURES=folder keeps pictures)
	@if [ ! -x /usr/bin/chromium ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then $(call apt-install,chromium); \
		else echo "==> Chromium is missing and this test needs it: sudo apt-get install chromium"; exit 1; fi; fi
	@$(BIN)/vitest run --project browser

.PHONY: test-vllm
test-vllm: node_modules/.installed ## arcana on a real vLLM with a tiny model, on a processor (vLLM is installed once: 6 GB)
	@test/vllm/install.sh >/dev/null
	@$(BIN)/vitest run --project vllm

.PHONY: test-e2e-long
test-e2e-long: node_modules/.installed ## scaling from zero, an upgrade, a drain of a node, a collector, and two API pods with PostgreSQL, with streams, on the same cluster (six files, one after the other, minutes each)
	@$(BIN)/vitest run --project e2e-long

.PHONY: test-keda
test-keda: node_modules/.installed ## pools that KEDA itself scales, on the same cluster (5 minutes; KEDA is built once: 10)
	@test/keda/build.sh >/dev/null
	@$(BIN)/vitest run --project keda

.PHONY: test-crash
test-crash: ## kill the local cluster's programs in every way and see that up and down cope (a minute; it must be down)
	@test/cluster/crash.sh

.PHONY: test-kind
test-kind: node_modules/.installed ## make up and make down by a real kind, offline, on a node image made here (Docker or Podman, root; 10 minutes the first time)
	@test/cluster/kind-trial.sh

.PHONY: bench
bench: node_modules/.installed deps ## how fast it is here, side by side with what it is made of: docs/benchmarks.md (6 minutes; SOAK=1: 16)
	@$(NODE) test/bench/main.ts

.PHONY: bench-load-balancing
bench-load-balancing: node_modules/.installed ## how several API processes share replicas, simulated: docs/benchmarks-load-balancing.md (a minute)
	@REQUESTS=$(REQUESTS) SEED=$(SEED) $(NODE) test/bench/load-balancing/main.ts

.PHONY: bench-operator
bench-operator: node_modules/.installed ## the operator beside its twin in Go, 1,000 TtsDeployments on 500 KWOK nodes: docs/benchmarks-operator.md (35 minutes; SIZES=20,40 REST=30: minutes)
	@SIZES=$(SIZES) CHANGES=$(CHANGES) REST=$(REST) MINUTES=$(MINUTES) PAGE=$(PAGE) FROM=$(FROM) $(NODE) test/bench/operator/main.ts

.PHONY: images
images: ## build the server and operator images (PUSH=1 pushes them to SVC_TTS_IMAGE_REPOSITORY)
	@test/cluster/images.sh $(if $(PUSH),--push)

.PHONY: kind-node-image
kind-node-image: ## kind and its node image without a registry, for Docker or Podman: eval "$$(make -s kind-node-image)" && make up
	@test/cluster/kind-node.sh

.PHONY: up
up: node_modules/.installed ## a real Kubernetes node here or by kind (or KUBECONFIG=…), the operator, one TtsDeployment, and speech.wav
	@test/cluster/install.sh --speak

.PHONY: down
down: ## stop it and leave nothing behind
	@test/cluster/down.sh

.PHONY: kubeconfig
kubeconfig: ## the line that points kubectl at it: eval "$$(make -s kubeconfig)"
	@test/cluster/kubeconfig.sh
