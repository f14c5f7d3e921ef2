# Targets for developers and users. `make help` lists them under the headings (`##@`).
SHELL := /bin/bash
.DEFAULT_GOAL := help
NODE := node_modules/.bin/node
BIN := node_modules/.bin
# Tools start Node by name. With this PATH they find the pinned version.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
# With a compile cache, each process starts a second sooner.
export NODE_COMPILE_CACHE := $(or $(SVC_TTS_CACHE),$(HOME)/.cache/svc-tts)/compiled

node_modules/.installed: package.json package-lock.json
	@echo "==> installing npm packages (Node 24 among them)"
	@npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
	@npm rebuild node --silent # the only install script that runs: it links the pinned Node
	@touch $@

##@ Start here

.PHONY: help
help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { gsub(/\$$\$$/, "$$"); printf "  %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# PORT_OFFSET=N shifts the ports, DEV=1 restarts a tier when its files change, NATURAL_VOICES=0 fetches no voices.
.PHONY: run
run: node_modules/.installed deps ## run the three tiers here, without a cluster (PORT_OFFSET=N, DEV=1, NATURAL_VOICES=0)
	@$(NODE) server/main.ts all $(if $(filter 0,$(NATURAL_VOICES)),,--fetch kokoro-82m)

# The node runs on this machine or in kind. KUBECONFIG=… selects an existing cluster instead.
.PHONY: up
up: node_modules/.installed ## start a Kubernetes node, install the operator and one TtsDeployment, write speech.wav
	@test/cluster/install.sh --speak

.PHONY: kubeconfig
kubeconfig: ## print the line that configures kubectl: eval "$$(make -s kubeconfig)"
	@test/cluster/kubeconfig.sh

.PHONY: down
down: ## stop the cluster and remove it
	@test/cluster/down.sh

# If libflite1 is missing, eSpeak NG synthesizes the English voices.
.PHONY: deps
deps: ## install libflite1 for English voices (Debian, as root)
	@if PATH="$$PATH:/sbin:/usr/sbin" ldconfig -p | grep -q 'libflite\.so\.1 '; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		$(call apt-install,libflite1); \
	else echo "==> libflite1 is missing, so eSpeak NG synthesizes English; for better voices: sudo apt-get install libflite1"; fi

##@ Test

# This target does not run test-e2e-long, test-keda, test-speech, test-browser, test-clients, test-vllm, test-crash, test-kind, test-release and fuzz.
.PHONY: test
test: node_modules/.installed test-deps ## check, unit, integration and e2e tests, and one of the long tests (SEED=… selects it)
	@$(NODE) test/run/main.ts

.PHONY: test-unit
test-unit: node_modules/.installed test-deps ## run the unit tests
	@$(BIN)/vitest run --project unit

# The first run builds Kubernetes and the other programs of the tests, which takes 12 minutes.
.PHONY: test-integration
test-integration: node_modules/.installed test-deps ## test the server, and the operator with a real API server
	@for built in cluster/tools.sh judges/build.sh collector/build.sh; do test/$$built >/dev/null || exit; done
	@$(BIN)/vitest run --project server --project cluster

.PHONY: test-e2e
test-e2e: node_modules/.installed ## test the main functions on a real cluster, local or KUBECONFIG=…
	@$(BIN)/vitest run --project e2e --project e2e-release

# The tests cover scaling from zero, an upgrade, a rollback, a drain of a node, a collector, two API pods with PostgreSQL, kubectl patch
# of every child, a shared model cache, two tenants, and TLS: docs/evidence/cluster.md.
.PHONY: test-e2e-long
test-e2e-long: node_modules/.installed ## run all long tests on the same cluster (13 files, minutes each)
	@$(BIN)/vitest run --project e2e-long

# This target prints how often each test failed.
.PHONY: test-repeat
test-repeat: node_modules/.installed test-deps ## run test files repeatedly next to busy loops: N=10 FILES="…" BUSY=2
	@N="$(N)" FILES="$(FILES)" BUSY="$(BUSY)" $(NODE) test/run/repeat/main.ts

# PICTURES=folder stores screenshots in the folder.
.PHONY: test-browser
test-browser: node_modules/.installed test-deps ## test the dashboard in Chromium, with SQLite and PostgreSQL (2 minutes)
	@if [ ! -x /usr/bin/chromium ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then $(call apt-install,chromium); \
		else echo "==> Chromium is missing and this test needs it: sudo apt-get install chromium"; exit 1; fi; fi
	@$(BIN)/vitest run --project browser

# The first run installs the clients (1 GB).
.PHONY: test-clients
test-clients: node_modules/.installed ## test the WebSockets with the published clients of two agent frameworks (a minute)
	@CLIENTS=all $(BIN)/vitest run --project clients

# The tests cover recognition with and without a simulated telephone line, the difference between voices, and numbers in four languages.
# NUMBERS=deu,fra selects the languages of the last test. The first run installs Kokoro and Whisper (1 GB).
.PHONY: test-speech
test-speech: node_modules/.installed test-deps ## test voices and numbers with speech recognizers (15 minutes)
	@$(BIN)/vitest run --project speech

# The first run installs vLLM (6 GB).
.PHONY: test-vllm
test-vllm: node_modules/.installed ## test arcana with a real vLLM and a tiny model on a CPU
	@test/vllm/install.sh >/dev/null
	@$(BIN)/vitest run --project vllm

.PHONY: test-keda
test-keda: node_modules/.installed ## test scaling with KEDA on the same cluster (5 minutes; KEDA is built once: 10)
	@test/keda/build.sh >/dev/null
	@$(BIN)/vitest run --project keda

# `make test` stops the operator only after every eleventh write. The seed of `make test` selects the first of these writes.
.PHONY: test-operator-faults
test-operator-faults: node_modules/.installed ## stop the operator after each single write of a create, an update and a delete
	@test/cluster/tools.sh >/dev/null
	@CRASH_STEP=1 $(BIN)/vitest run --project cluster test/integration/operator/crash-

# The test takes a minute. Stop the cluster before (make down).
.PHONY: test-crash
test-crash: ## kill the programs of the local cluster in every way, then test make up and make down
	@test/cluster/crash.sh

# The test needs Docker or Podman, and root. The first run takes 10 minutes.
.PHONY: test-kind
test-kind: node_modules/.installed ## test make up and make down with kind, offline, with a node image built here
	@test/cluster/kind-trial.sh

# `make test` sends a few of these requests.
.PHONY: fuzz
fuzz: node_modules/.installed test-deps ## send requests that Schemathesis generates from /openapi.json for ten minutes
	@FUZZ_EXAMPLES=2000 FUZZ_SECONDS=600 $(BIN)/vitest run --project server test/integration/server/api/schemathesis.test.ts

# The first run builds cosign (five minutes), and needs root and Debian, or Docker or Podman.
.PHONY: test-release
test-release: node_modules/.installed ## build a release twice, push it to a local registry and verify it (6 minutes)
	@$(BIN)/vitest run --project release

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

##@ Measure

.PHONY: bench
bench: node_modules/.installed deps ## measure the server next to its engines (15 minutes; SOAK=1: 25; IDLE_SOCKETS=10000)
	@$(NODE) tools/bench/main.ts

.PHONY: agent-loop
agent-loop: node_modules/.installed deps ## print the transcript of a voice agent with a scripted language model (2 minutes)
	@$(NODE) tools/agent-loop/main.ts

# The simulation takes a minute.
.PHONY: bench-load-balancing
bench-load-balancing: node_modules/.installed ## simulate load balancing of several API processes: docs/benchmarks-load-balancing.md
	@REQUESTS=$(REQUESTS) SEED=$(SEED) $(NODE) tools/bench/load-balancing/main.ts

# The benchmark creates 1,000 TtsDeployments on 500 KWOK nodes. With SIZES=20,40 REST=30 it takes minutes. TRAFFIC=1 measures the operator alone,
# with streams in every pool, and writes docs/benchmarks-operator-traffic.md.
.PHONY: bench-operator
bench-operator: node_modules/.installed ## measure the operator next to its twin in Go: docs/benchmarks-operator.md (35 minutes)
	@SIZES=$(SIZES) CHANGES=$(CHANGES) REST=$(REST) MINUTES=$(MINUTES) WINDOW=$(WINDOW) PAGE=$(PAGE) FROM=$(FROM) $(NODE) tools/bench/operator/$(if $(TRAFFIC),traffic/)main.ts

##@ Build and release

.PHONY: images
images: ## build the server and operator images (PUSH=1 pushes to SVC_TTS_IMAGE_REPOSITORY)
	@test/cluster/images.sh --print-values $(if $(PUSH),--push)

# KEY=cosign.key signs with a key, and KEYLESS=1 with the identity of a workflow. The files are in .run/release.
.PHONY: release
release: release-images release-publish ## build, sign and push a release: VERSION=0.1.0 REGISTRY=registry.example/tts KEY=cosign.key

.PHONY: release-images
release-images: node_modules/.installed ## build reproducible images for the architecture of this machine
	@$(NODE) tools/release/main.ts images --out .run/release/build

# BUILDS=folder,folder lists the results of release-images on machines of several architectures.
.PHONY: release-publish
release-publish: node_modules/.installed ## add charts, CRDs and SBOMs to the images of release-images, push and sign them
	@$(NODE) tools/release/main.ts publish --version "$(VERSION)" --registry "$(REGISTRY)" --out ".run/release/$(VERSION)" \
		--builds "$(or $(BUILDS),.run/release/build)" $(if $(KEYLESS),--keyless,--key "$(KEY)")

# The build needs Docker or Podman, but no image registry.
.PHONY: kind-node-image
kind-node-image: ## build kind and its node image: eval "$$(make -s kind-node-image)" && make up
	@test/cluster/kind-node.sh

##@ Develop

.PHONY: check
check: node_modules/.installed ## check types, lint, format and the project's own rules
	@$(BIN)/tsc -p .
	@$(BIN)/biome check --error-on-warnings .
	@$(NODE) test/check/main.ts
	@test/check/shell.sh
	@$(BIN)/knip && echo "dead files and exports: none"
	@$(MAKE) --no-print-directory verify

# The generated files are the CRDs and their reference, the chart's CRDs and roles, docs/openapi.json, docs/asyncapi.json, and the picture
# of packages.
.PHONY: generate
generate: node_modules/.installed ## write the generated files
	@$(generate)

generate = $(NODE) crds/generate.ts && $(NODE) charts/generate.ts && $(NODE) server/api/openapi/main.ts > docs/openapi.json && $(NODE) server/api/asyncapi/main.ts > docs/asyncapi.json && $(NODE) tools/packages/main.ts
generated := docs/openapi.json docs/asyncapi.json docs/architecture.md docs/reference.md crds/*.yaml charts/tts-operator/templates/crds charts/tts-operator/templates/rbac.yaml charts/tts-operator/templates/user-roles.yaml charts/tts-operator/templates/class-policy.yaml charts/tts-deployment/values.schema.json charts/tts-deployment/files charts/tts-operator/files charts/*/README.md config/kustomize/crds config/kustomize/*/rbac.yaml config/kustomize/cluster-wide/class-policy.yaml charts/tts-operator/templates/writes-policy.yaml config/kustomize/*/writes-policy.yaml

.PHONY: verify
verify: node_modules/.installed ## fail if a generated file differs from its source
	@sums() { find $(generated) -type f | sort | xargs sha256sum; }; before=$$(sums); { $(generate); } >/dev/null; \
		diff <(echo "$$before") <(sums) >/dev/null || \
		{ git --no-pager diff --stat -- $(generated); echo "==> generated files were out of date; they are written now: look at them and commit them"; exit 1; }

# This target keeps the cache of built programs, and the cluster (make down removes the cluster).
.PHONY: clean
clean: ## remove generated files
	rm -rf node_modules .run coverage speech.wav
