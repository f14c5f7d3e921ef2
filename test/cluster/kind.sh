# shellcheck shell=bash
# Starts and stops a cluster of kind (https://kind.sigs.k8s.io) with Docker or Podman. Source this file
# after lib.sh and state.sh.
set -euo pipefail

KIND_NAME=svc-tts
# shellcheck disable=SC2034
KIND_KUBECONFIG="$CACHE/kind/kubeconfig"
KIND_LOG="$CACHE/kind/kind.log"
KIND_GPUS="${SVC_TTS_GPUS:-4}"
KERNEL_MODULES=/lib/modules

# container_engine: prints docker or podman. The program may be installed without a running engine, so the function tests the
# engine.
container_engine() {
  local engine
  for engine in docker podman; do
    if timeout 5 "$engine" info >/dev/null 2>&1; then echo "$engine" && return; fi
  done
  return 1
}

# chosen_cluster: prints kind or node. Without SVC_TTS_CLUSTER, it chooses kind if kind is installed, an engine runs, and the local
# node does not run.
chosen_cluster() {
  case ${SVC_TTS_CLUSTER:-} in
    kind | node) echo "$SVC_TTS_CLUSTER" ;;
    '') if [ ! -s "$KUBECONFIG_FILE" ] && command -v kind >/dev/null && container_engine >/dev/null; then echo kind; else echo node; fi ;;
    *) fail "SVC_TTS_CLUSTER must be kind or node, not '$SVC_TTS_CLUSTER'" ;;
  esac
}

# Checks the prerequisites of kind. Without this check, a failed query would look like a missing cluster.
need_kind() {
  command -v kind >/dev/null || fail "kind is not installed" "install it (https://kind.sigs.k8s.io), or use the local node: SVC_TTS_CLUSTER=node make up"
  ENGINE=$(container_engine) || fail "neither Docker nor Podman answers, and kind needs one of them" "start Docker or Podman, or use the local node: SVC_TTS_CLUSTER=node make up"
  [ "$ENGINE" != podman ] || [ -d "$KERNEL_MODULES" ] || fail "kind mounts $KERNEL_MODULES, which does not exist on this machine, and Podman does not create it" "create the empty folder: mkdir $KERNEL_MODULES"
}

kind_() { KIND_EXPERIMENTAL_PROVIDER=$ENGINE kind "$@"; }

kind_runs() { kind_ get clusters 2>/dev/null | grep -qx "$KIND_NAME"; }

start_kind() {
  local image=()
  need_kind
  [ -z "${SVC_TTS_KIND_IMAGE:-}" ] || image=(--image "$SVC_TTS_KIND_IMAGE")
  mkdir -p "$(dirname "$KIND_KUBECONFIG")"
  if kind_runs; then
    kind_ export kubeconfig --name "$KIND_NAME" --kubeconfig "$KIND_KUBECONFIG" >"$KIND_LOG" 2>&1
  else
    with_progress "kind create cluster" "$KIND_LOG" \
      kind_ create cluster --name "$KIND_NAME" --config "$REPO_DIR/config/kind.yaml" --kubeconfig "$KIND_KUBECONFIG" "${image[@]}" --wait 180s
  fi || {
    show_log "$KIND_LOG"
    fail "kind did not start a cluster" "the log is $KIND_LOG" \
      "if the node image cannot be pulled: make kind-node-image builds it without an image registry" "if the cluster broke in a reboot: run make down, then make up"
  }
  offer_gpus
  say "kind runs the cluster $KIND_NAME"
}

# Adds simulated GPUs to the status of the node, as Kubernetes documents for extended resources. Pods with GPUs are then scheduled.
offer_gpus() {
  local patch
  patch=$(printf '[{"op": "add", "path": "/status/capacity/nvidia.com~1gpu", "value": "%s"}]' "$KIND_GPUS")
  kubectl --kubeconfig "$KIND_KUBECONFIG" patch node "$KIND_NAME-control-plane" --subresource=status --type=json --patch "$patch" >"$KIND_LOG" 2>&1 ||
    { show_log "$KIND_LOG" && fail "the simulated GPUs could not be added to the status of the node" "check that kubectl is 1.27 or newer"; }
}

# load_into_kind ARCHIVE...: loads images into the nodes
load_into_kind() {
  local archive
  for archive in "$@"; do
    with_progress "loading $(basename "$archive")" "$KIND_LOG" kind_ load image-archive "$archive" --name "$KIND_NAME" ||
      { show_log "$KIND_LOG" && fail "kind could not load $archive" "the log is $KIND_LOG"; }
  done
}

stop_kind() {
  [ -d "$(dirname "$KIND_KUBECONFIG")" ] || return 0
  need_kind
  if kind_runs; then
    with_progress "kind delete cluster" "$KIND_LOG" kind_ delete cluster --name "$KIND_NAME" --kubeconfig "$KIND_KUBECONFIG" ||
      { show_log "$KIND_LOG" && fail "kind could not delete the cluster $KIND_NAME" "delete it with kind delete cluster --name $KIND_NAME"; }
    say "the cluster $KIND_NAME of kind is deleted"
  fi
  rm -rf "$(dirname "$KIND_KUBECONFIG")"
}
