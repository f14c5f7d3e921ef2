# shellcheck shell=bash
# Selects the cluster of a script: the cluster of KUBECONFIG if it is set, and otherwise kind or the local
# node, which it starts if needed. Sets TARGET (given, kind or node), KUBECONFIG and PATH. Source this file after lib.sh, state.sh
# and kind.sh.
set -euo pipefail

choose_target() {
  case $(realpath -m "${KUBECONFIG:-$KUBECONFIG_FILE}") in
    "$(realpath -m "$KIND_KUBECONFIG")") TARGET=kind ;;
    "$(realpath -m "$KUBECONFIG_FILE")") TARGET=$(chosen_cluster) ;;
    *) TARGET=given ;;
  esac
  case $TARGET in
    node) use_local ;;
    kind) use_kind ;;
    given) use_given ;;
  esac
  export KUBECONFIG TARGET
}

use_local() {
  "$CLUSTER_DIR/up.sh" --check
  TOOLS=$("$CLUSTER_DIR/tools.sh")
  phase "programs"
  "$CLUSTER_DIR/up.sh"
  KUBECONFIG="$KUBECONFIG_FILE"
  PATH="$TOOLS:$PATH"
}

use_kind() {
  find_programs
  start_kind
  KUBECONFIG="$KIND_KUBECONFIG"
}

# Uses kubectl and helm of the machine if they are installed, so that the programs of the local node need not be built.
find_programs() {
  local program
  for program in kubectl helm; do
    command -v "$program" >/dev/null || {
      TOOLS=$("$CLUSTER_DIR/tools.sh")
      PATH="$TOOLS:$PATH"
    }
  done
  phase "programs"
}

use_given() {
  find_programs
  mkdir -p "$CACHE"
  kubectl version --request-timeout=10s >/dev/null 2>"$CACHE/kubectl.log" || {
    show_log "$CACHE/kubectl.log"
    fail "the cluster of KUBECONFIG=$KUBECONFIG does not answer" "check it with kubectl version, or unset KUBECONFIG to start a local cluster"
  }
  say "using the cluster of KUBECONFIG=$KUBECONFIG"
}

# phase NAME: records the time since the previous phase as the duration of NAME
PHASES=()
PHASE_STARTED=$(now_ms)
phase() {
  PHASES+=("$(printf '%-22s %6s s' "$1" "$(seconds_since "$PHASE_STARTED")")")
  PHASE_STARTED=$(now_ms)
}
