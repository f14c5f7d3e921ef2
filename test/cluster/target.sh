# shellcheck shell=bash
# Which cluster a script works on: the one of KUBECONFIG when that is set, else the local one, started when needed.
# Sourced after lib.sh and state.sh; sets LOCAL (yes or no), KUBECONFIG and PATH.
set -euo pipefail

choose_target() {
  LOCAL=yes
  if [ -n "${KUBECONFIG:-}" ] && [ "$(realpath -m "$KUBECONFIG")" != "$(realpath -m "$KUBECONFIG_FILE")" ]; then LOCAL=no; fi
  if [ "$LOCAL" = yes ]; then use_local; else use_given; fi
  export KUBECONFIG LOCAL
}

use_local() {
  "$CLUSTER_DIR/up.sh" --check
  TOOLS=$("$CLUSTER_DIR/tools.sh")
  phase "programs"
  "$CLUSTER_DIR/up.sh"
  KUBECONFIG="$KUBECONFIG_FILE"
  PATH="$TOOLS:$PATH"
}

# kubectl and helm of the machine do as well, so a cluster elsewhere needs nothing built.
use_given() {
  local program
  for program in kubectl helm; do
    command -v "$program" >/dev/null || {
      TOOLS=$("$CLUSTER_DIR/tools.sh")
      PATH="$TOOLS:$PATH"
    }
  done
  phase "programs"
  mkdir -p "$CACHE"
  kubectl version --request-timeout=10s >/dev/null 2>"$CACHE/kubectl.log" || {
    show_log "$CACHE/kubectl.log"
    fail "the cluster of KUBECONFIG=$KUBECONFIG does not answer" "check it with kubectl version, or unset KUBECONFIG to start a local cluster"
  }
  say "using the cluster of KUBECONFIG=$KUBECONFIG"
}

# phase NAME: the time since the last phase belongs to NAME
PHASES=()
PHASE_STARTED=$(now_ms)
phase() {
  PHASES+=("$(printf '%-22s %6s s' "$1" "$(seconds_since "$PHASE_STARTED")")")
  PHASE_STARTED=$(now_ms)
}
