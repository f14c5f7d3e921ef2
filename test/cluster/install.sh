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
  Starts a cluster with kind or the local node (or uses the cluster of KUBECONFIG), builds the images, creates a development
  license key, and installs the operator. With --speak it also applies config/samples/tts-deployment.yaml in namespace demo, waits
  until the TtsDeployment is ready, and writes speech.wav.
  SVC_TTS_CLUSTER            kind or node; the default is kind if it is installed and Docker or Podman runs
  KUBECONFIG                 a cluster to use instead of the local cluster; it must be able to pull the images, so also set
  SVC_TTS_IMAGE_REPOSITORY   the repository with the images server and operator (push them with make images PUSH=1)
T
}

NAMESPACE=svc-tts-system
RELEASE=tts-operator
DEVELOPMENT="$CACHE/dev"
SVC_TTS=("$REPO_DIR/node_modules/.bin/node" "$REPO_DIR/server/main.ts")

need_image_repository() {
  [ "$TARGET" != given ] || [ -n "${SVC_TTS_IMAGE_REPOSITORY:-}" ] ||
    fail "KUBECONFIG selects a cluster that must pull the images, and SVC_TTS_IMAGE_REPOSITORY is not set" \
      "push the images: SVC_TTS_IMAGE_REPOSITORY=registry.example/svc-tts make images PUSH=1" \
      "then: KUBECONFIG=$KUBECONFIG SVC_TTS_IMAGE_REPOSITORY=registry.example/svc-tts make up"
}

import_image() { # IMAGE ARCHIVE
  [ -z "$(ctr --address "$CONTAINERD_SOCKET" --namespace k8s.io images list --quiet "name==$1")" ] || return 0
  with_progress "importing $1" "$LOGS/import.log" ctr --address "$CONTAINERD_SOCKET" --namespace k8s.io images import "$2" ||
    { show_log "$LOGS/import.log" && fail "containerd could not import the image $1" "the log is $LOGS/import.log"; }
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

# Creates a key pair that signs development licenses. The operator trusts the key only if values of the chart enable this.
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
  fail "the operator did not start within 120 s" "find the cause with kubectl -n $NAMESPACE describe pods"
}

main() {
  case ${1:-} in -h | --help) usage && exit 0 ;; '' | --speak) ;; *) usage >&2 && exit 2 ;; esac
  local started line
  started=$(now_ms)
  # Concurrent installs share one cluster, for example an install in the background and an install of a test that needs the cluster.
  hold_lock install
  choose_target
  phase "cluster"
  need_image_repository
  load_images
  if [ "${1:-}" != --speak ]; then
    install_operator
  else
    # With these values, helm test sends a request to the demonstration.
    install_operator --set test.endpoint="http://demo-api.demo.svc:8000" --set test.apiKeySecret.name=demo-key
    # shellcheck source-path=SCRIPTDIR source=speak.sh
    source "$CLUSTER_DIR/speak.sh"
    speak
    for line in "${PHASES[@]}"; do printf '    %s\n' "$line" >&2; done
    say "finished in $(seconds_since "$started") s"
    next_steps
  fi
}

main "$@"
