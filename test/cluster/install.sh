#!/usr/bin/env bash
# Prepares a cluster for a TtsDeployment: starts the cluster, builds the images, and installs the operator with its chart.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=state.sh
source "$CLUSTER_DIR/state.sh"
# shellcheck source-path=SCRIPTDIR source=kind.sh
source "$CLUSTER_DIR/kind.sh"
# shellcheck source-path=SCRIPTDIR source=target.sh
source "$CLUSTER_DIR/target.sh"

usage() {
  cat <<'T'
usage: install.sh [--speak]
  Starts a cluster by kind or the local node (or takes the one of KUBECONFIG), builds the images, makes a development license key and
  installs the operator. With --speak it also applies config/samples/tts-deployment.yaml in namespace demo, waits until it
  is ready and writes speech.wav.
  SVC_TTS_CLUSTER            kind or node; without it kind, where it is installed and Docker or Podman answers
  KUBECONFIG                 a cluster to use instead of the local one; it must be able to pull the images, so give also
  SVC_TTS_IMAGE_REPOSITORY   where they are: REPOSITORY/server and REPOSITORY/operator (push them with make images PUSH=1)
T
}

NAMESPACE=svc-tts-system
RELEASE=tts-operator
DEVELOPMENT="$CACHE/dev"
SVC_TTS=("$REPO_DIR/node_modules/.bin/node" "$REPO_DIR/server/main.ts")

need_image_repository() {
  [ "$TARGET" != given ] || [ -n "${SVC_TTS_IMAGE_REPOSITORY:-}" ] ||
    fail "a cluster of your own must pull the images from somewhere" \
      "push them: SVC_TTS_IMAGE_REPOSITORY=registry.example/svc-tts make images PUSH=1" \
      "then: KUBECONFIG=$KUBECONFIG SVC_TTS_IMAGE_REPOSITORY=registry.example/svc-tts make up"
}

import_image() { # IMAGE ARCHIVE
  [ -z "$(ctr --address "$CONTAINERD_SOCKET" --namespace k8s.io images list --quiet "name==$1")" ] || return 0
  with_progress "importing $1" "$LOGS/import.log" ctr --address "$CONTAINERD_SOCKET" --namespace k8s.io images import "$2" ||
    { show_log "$LOGS/import.log" && fail "containerd did not take $1" "the log is $LOGS/import.log"; }
}

load_images() {
  "$CLUSTER_DIR/images.sh"
  # shellcheck source=/dev/null
  source "$CACHE/images/current.env"
  phase "images"
  case $TARGET in
    given) return 0 ;;
    kind) load_into_kind "$SERVER_ARCHIVE" "$OPERATOR_ARCHIVE" ;;
    node)
      import_image "$SERVER_IMAGE" "$SERVER_ARCHIVE"
      import_image "$OPERATOR_IMAGE" "$OPERATOR_ARCHIVE"
      ;;
  esac
  phase "images imported"
}

# A key pair that signs development licenses. Only a chart whose values enable it trusts the key.
make_license_key() {
  [ -s "$DEVELOPMENT/private.jwk" ] && [ -s "$DEVELOPMENT/jwks.json" ] && return
  (umask 077 && mkdir -p "$DEVELOPMENT")
  "${SVC_TTS[@]}" license keygen --out "$DEVELOPMENT" >/dev/null
}

install_operator() {
  make_license_key
  PROGRESS_DETAIL=operator_pods with_progress "helm upgrade --install $RELEASE" "$CACHE/helm.log" \
    helm upgrade --install "$RELEASE" "$REPO_DIR/charts/tts-operator" --namespace "$NAMESPACE" --create-namespace \
    --set images.server.repository="$IMAGE_REPOSITORY/server" --set-string images.server.tag="$SERVER_TAG" \
    --set images.operator.repository="$IMAGE_REPOSITORY/operator" --set-string images.operator.tag="$OPERATOR_TAG" \
    --set license.development.enabled=true --set-file license.development.jwks="$DEVELOPMENT/jwks.json" "$@" \
    --wait --timeout 120s || explain_operator
  phase "operator"
}

operator_pods() { kubectl --namespace "$NAMESPACE" get pods --no-headers 2>/dev/null | awk '{printf ", %s %s, %s restarts", $1, $3, $4}' || true; }

explain_operator() {
  show_log "$CACHE/helm.log"
  kubectl --namespace "$NAMESPACE" get pods >&2 || true
  kubectl --namespace "$NAMESPACE" logs --selector app.kubernetes.io/name=tts-operator --tail=20 >&2 || true
  fail "the operator did not start" "look at it: kubectl -n $NAMESPACE describe pods"
}

main() {
  case ${1:-} in -h | --help) usage && exit 0 ;; '' | --speak) ;; *) usage >&2 && exit 2 ;; esac
  local started line
  started=$(now_ms)
  # two concurrent installs, such as an early one in the background and one that needs the cluster now, share one cluster
  hold_lock install
  choose_target
  phase "cluster"
  need_image_repository
  load_images
  if [ "${1:-}" != --speak ]; then
    install_operator
  else
    # helm test then sends a request to the demonstration
    install_operator --set test.endpoint="http://demo-api.demo.svc:8000" --set test.apiKeySecret.name=demo-key
    # shellcheck source-path=SCRIPTDIR source=speak.sh
    source "$CLUSTER_DIR/speak.sh"
    speak
    for line in "${PHASES[@]}"; do printf '    %s\n' "$line" >&2; done
    say "all done in $(seconds_since "$started") s"
    next_steps
  fi
}

main "$@"
