#!/usr/bin/env bash
# Tests make up and make down with a real kind and without an image registry. The test covers the node image, the images of
# svc-tts, a synthesized sentence, helm test and the cleanup.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=kind.sh
source "$CLUSTER_DIR/kind.sh"

usage() { echo "usage: kind-trial.sh   tests make up and make down with kind and a node image that it builds (needs Docker or Podman, root, Go and apt-get)"; }

nodes() { "$ENGINE" ps --all --quiet --filter "label=io.x-k8s.kind.cluster=$KIND_NAME"; }

spoken() { # Returns success if speech.wav has audio: more than 10000 bytes of the samples are not zero.
  [ "$(head -c 4 "$REPO_DIR/speech.wav")" = RIFF ] && [ "$(tail -c +45 "$REPO_DIR/speech.wav" | tr -d '\0' | wc -c)" -gt 10000 ]
}

main() {
  case ${1:-} in -h | --help) usage && exit 0 ;; esac
  local lines
  unset KUBECONFIG
  [ ! -d "$(dirname "$KIND_KUBECONFIG")" ] || fail "a cluster of kind already runs" "stop it with make down, and run this again"
  lines=$("$CLUSTER_DIR/kind-node.sh")
  eval "$lines"
  need_kind
  rm -f "$REPO_DIR/speech.wav"
  trap '"$CLUSTER_DIR/down.sh"' EXIT
  "$CLUSTER_DIR/install.sh" --speak
  spoken || fail "speech.wav has no audio: it is not a WAV file or it is silent"
  PATH="$PATH:$("$CLUSTER_DIR/tools.sh" --path)" helm --kubeconfig "$KIND_KUBECONFIG" test tts-operator --namespace svc-tts-system --timeout 120s >&2
  trap - EXIT
  "$CLUSTER_DIR/down.sh"
  [ -z "$(nodes)" ] && [ ! -d "$(dirname "$KIND_KUBECONFIG")" ] || fail "make down did not remove the cluster of kind; remaining nodes: $(nodes)"
  say "make up with kind and $ENGINE synthesized speech, helm test passed, and make down removed everything"
}

main "$@"
