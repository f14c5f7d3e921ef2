#!/usr/bin/env bash
# Tests make up with a real kind, offline: the node image, the images, the sentence, helm test, and the cleanup by make down.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=kind.sh
source "$CLUSTER_DIR/kind.sh"

usage() { echo "usage: kind-trial.sh   make up and make down by kind, on a node image made here (Docker or Podman, root, Go and Debian's package client)"; }

nodes() { "$ENGINE" ps --all --quiet --filter "label=io.x-k8s.kind.cluster=$KIND_NAME"; }

spoken() { # 16-bit samples of one channel; a second of silence would be all zeros
  [ "$(head -c 4 "$REPO_DIR/speech.wav")" = RIFF ] && [ "$(tail -c +45 "$REPO_DIR/speech.wav" | tr -d '\0' | wc -c)" -gt 10000 ]
}

main() {
  case ${1:-} in -h | --help) usage && exit 0 ;; esac
  local lines
  unset KUBECONFIG
  [ ! -d "$(dirname "$KIND_KUBECONFIG")" ] || fail "a cluster by kind is up already" "make down"
  lines=$("$CLUSTER_DIR/kind-node.sh")
  eval "$lines"
  need_kind
  rm -f "$REPO_DIR/speech.wav"
  trap '"$CLUSTER_DIR/down.sh"' EXIT
  "$CLUSTER_DIR/install.sh" --speak
  spoken || fail "speech.wav holds no speech"
  PATH="$PATH:$("$CLUSTER_DIR/tools.sh" --path)" helm --kubeconfig "$KIND_KUBECONFIG" test tts-operator --namespace svc-tts-system --timeout 120s >&2
  trap - EXIT
  "$CLUSTER_DIR/down.sh"
  [ -z "$(nodes)" ] && [ ! -d "$(dirname "$KIND_KUBECONFIG")" ] || fail "make down left a node of kind behind: $(nodes)"
  say "make up by kind with $ENGINE spoke, helm test passed, and make down left nothing"
}

main "$@"
