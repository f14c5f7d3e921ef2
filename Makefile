# Targets for developers and users. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
NODE := node_modules/.bin/node
BIN := node_modules/.bin
# Tools start Node by name; this makes them find the pinned one.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
# With a compile cache, each process starts a second sooner.
export NODE_COMPILE_CACHE := $(or $(SVC_TTS_CACHE),$(HOME)/.cache/svc-tts)/compiled

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/; s/\$$\$$/$$/g' | expand -t 20

node_modules/.installed: package.json package-lock.json
	@echo "==> installing npm packages (Node 24 among them)"
	@npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
	@npm rebuild node --silent # the only install script that runs: it links the pinned Node
	@touch $@

.PHONY: deps
deps: ## install libflite1 for English voices (Debian, as root); without it eSpeak NG speaks English
	@if PATH="$$PATH:/sbin:/usr/sbin" ldconfig -p | grep -q 'libflite\.so\.1 '; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		$(call apt-install,libflite1); \
	else echo "==> libflite1 is missing, so English is spoken by eSpeak NG; for better English: sudo apt-get install libflite1"; fi

.PHONY: test-deps
test-deps: deps ## install FFmpeg and nftables for the tests
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
run: node_modules/.installed deps ## run the three tiers on this machine, without a cluster (PORT_OFFSET=N, DEV=1; NATURAL_VOICES=0 fetches no voices)
	@$(NODE) server/main.ts all $(if $(filter 0,$(NATURAL_VOICES)),,--fetch kokoro-82m)

.PHONY: check
check: node_modules/.installed ## check types, lint, format and the project's own rules
	@$(BIN)/tsc -p .
	@$(BIN)/biome check --error-on-warnings .
	@$(NODE) test/check/main.ts
	@test/check/shell.sh
	@$(BIN)/knip && echo "dead files and exports: none"
	@$(MAKE) --no-print-directory verify

.PHONY: test
test: node_modules/.installed test-deps ## check, unit, integration and e2e tests, and one long test in turn (SEED=… repeats a run). Not included: test-e2e-long, test-keda, test-speech, test-browser, test-clients, test-vllm, test-crash, test-kind, fuzz
	@$(NODE) test/run/main.ts

.PHONY: test-unit
test-unit: node_modules/.installed test-deps ## run the unit tests
	@$(BIN)/vitest run --project unit

.PHONY: test-repeat
test-repeat: node_modules/.installed test-deps ## run test files repeatedly next to busy loops and print how often each test failed: N=10 FILES="…" BUSY=2
	@N="$(N)" FILES="$(FILES)" BUSY="$(BUSY)" $(NODE) test/run/repeat/main.ts

.PHONY: fuzz
fuzz: node_modules/.installed test-deps ## send requests that Schemathesis generates from /openapi.json for ten minutes (make test sends a few)
	@FUZZ_EXAMPLES=2000 FUZZ_SECONDS=600 $(BIN)/vitest run --project server test/integration/server/api/schemathesis.test.ts

.PHONY: clean
clean: ## remove generated files (not the cache of built programs, and not the cluster: make down)
	rm -rf node_modules .run coverage speech.wav

.PHONY: generate
generate: node_modules/.installed ## write the generated files: CRDs and their reference, the chart's CRDs and roles, docs/openapi.json, docs/asyncapi.json, the picture of packages
	@$(generate)

generate = $(NODE) crds/generate.ts && $(NODE) charts/generate.ts && $(NODE) server/api/openapi/main.ts > docs/openapi.json && $(NODE) server/api/asyncapi/main.ts > docs/asyncapi.json && $(NODE) tools/packages/main.ts
generated := docs/openapi.json docs/asyncapi.json docs/architecture.md docs/reference.md crds/*.yaml charts/tts-operator/templates/crds charts/tts-operator/templates/rbac.yaml charts/tts-operator/templates/user-roles.yaml charts/tts-deployment/values.schema.json charts/tts-deployment/files charts/tts-operator/files charts/*/README.md config/kustomize/crds config/kustomize/*/rbac.yaml

.PHONY: verify
verify: node_modules/.installed ## fail if a generated file differs from its source
	@sums() { find $(generated) -type f | sort | xargs sha256sum; }; before=$$(sums); { $(generate); } >/dev/null; \
		diff <(echo "$$before") <(sums) >/dev/null || \
		{ git --no-pager diff --stat -- $(generated); echo "==> generated files were out of date; they are written now: look at them and commit them"; exit 1; }

.PHONY: test-integration
test-integration: node_modules/.installed test-deps ## test the server, and the operator with a real API server (programs are built once: 12 minutes)
	@for built in cluster/tools.sh judges/build.sh collector/build.sh; do test/$$built >/dev/null || exit; done
	@$(BIN)/vitest run --project server --project cluster

.PHONY: test-operator-faults
test-operator-faults: node_modules/.installed ## stop the operator after each single write of a create, an update and a delete (make test uses every eleventh; its seed selects the first)
	@test/cluster/tools.sh >/dev/null
	@CRASH_STEP=1 $(BIN)/vitest run --project cluster test/integration/operator/crash-

.PHONY: test-e2e
test-e2e: node_modules/.installed ## test the main functions on a real cluster, local or KUBECONFIG=…
	@$(BIN)/vitest run --project e2e --project e2e-release

.PHONY: test-speech
test-speech: node_modules/.installed test-deps ## test every English voice with a speech recognizer, plain and over a telephone, and that voices differ (7 minutes)
	@$(BIN)/vitest run --project speech

.PHONY: test-clients
test-clients: node_modules/.installed ## test the WebSockets with the published clients of two agent frameworks (a minute; they are installed once: 1 GB)
	@CLIENTS=all $(BIN)/vitest run --project clients

.PHONY: test-browser
test-browser: node_modules/.installed test-deps ## test the dashboard in Chromium, with SQLite and PostgreSQL (2 minutes; PICTURES=folder keeps screenshots)
	@if [ ! -x /usr/bin/chromium ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then $(call apt-install,chromium); \
		else echo "==> Chromium is missing and this test needs it: sudo apt-get install chromium"; exit 1; fi; fi
	@$(BIN)/vitest run --project browser

.PHONY: test-vllm
test-vllm: node_modules/.installed ## test arcana with a real vLLM and a tiny model on a processor (vLLM is installed once: 6 GB)
	@test/vllm/install.sh >/dev/null
	@$(BIN)/vitest run --project vllm

.PHONY: test-e2e-long
test-e2e-long: node_modules/.installed ## run all long tests on the same cluster: scaling from zero, an upgrade, a drain of a node, a collector, two API pods with PostgreSQL, kubectl patch of every child (seven files, minutes each)
	@$(BIN)/vitest run --project e2e-long

.PHONY: test-keda
test-keda: node_modules/.installed ## test scaling with KEDA on the same cluster (5 minutes; KEDA is built once: 10)
	@test/keda/build.sh >/dev/null
	@$(BIN)/vitest run --project keda

.PHONY: test-crash
test-crash: ## kill the programs of the local cluster in every way, and test make up and make down after it (a minute; the cluster must be down)
	@test/cluster/crash.sh

.PHONY: test-kind
test-kind: node_modules/.installed ## test make up and make down with kind, offline, with a node image built here (Docker or Podman, root; 10 minutes the first time)
	@test/cluster/kind-trial.sh

.PHONY: bench
bench: node_modules/.installed deps ## measure the server side by side with its parts: docs/benchmarks.md (9 minutes; SOAK=1: 19; IDLE_SOCKETS=10000)
	@$(NODE) tools/bench/main.ts

.PHONY: bench-load-balancing
bench-load-balancing: node_modules/.installed ## simulate load balancing of several API processes: docs/benchmarks-load-balancing.md (a minute)
	@REQUESTS=$(REQUESTS) SEED=$(SEED) $(NODE) tools/bench/load-balancing/main.ts

.PHONY: bench-operator
bench-operator: node_modules/.installed ## measure the operator next to its twin in Go, 1,000 TtsDeployments on 500 KWOK nodes: docs/benchmarks-operator.md (35 minutes; SIZES=20,40 REST=30: minutes; TRAFFIC=1: with callers on every pool)
	@SIZES=$(SIZES) CHANGES=$(CHANGES) REST=$(REST) MINUTES=$(MINUTES) WINDOW=$(WINDOW) PAGE=$(PAGE) FROM=$(FROM) $(NODE) tools/bench/operator/$(if $(TRAFFIC),traffic/)main.ts

.PHONY: images
images: ## build the server and operator images (PUSH=1 pushes them to SVC_TTS_IMAGE_REPOSITORY)
	@test/cluster/images.sh $(if $(PUSH),--push)

.PHONY: kind-node-image
kind-node-image: ## build kind and its node image without a registry, for Docker or Podman: eval "$$(make -s kind-node-image)" && make up
	@test/cluster/kind-node.sh

.PHONY: up
up: node_modules/.installed ## start a Kubernetes node here or with kind (or use KUBECONFIG=…), install the operator and one TtsDeployment, write speech.wav
	@test/cluster/install.sh --speak

.PHONY: down
down: ## stop the cluster and remove it
	@test/cluster/down.sh

.PHONY: kubeconfig
kubeconfig: ## print the line that configures kubectl for the cluster: eval "$$(make -s kubeconfig)"
	@test/cluster/kubeconfig.sh
