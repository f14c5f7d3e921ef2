#!/usr/bin/env bash
# Simulates several kinds of crashes of the local cluster. It fails if up.sh does not repair the cluster, or if down.sh does not
# remove everything. It uses the address ranges of the cluster, so no cluster may run. It takes about two minutes.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=state.sh
source "$CLUSTER_DIR/state.sh"

usage() { echo "usage: crash.sh   kills programs of the local cluster with SIGKILL, and tests that up.sh repairs it and that down.sh removes everything"; }

TOOLS=$("$CLUSTER_DIR/tools.sh")
up() { "$CLUSTER_DIR/up.sh"; }
assert_answers() { kube wait --for=condition=Ready "node/$NODE" --timeout=60s >/dev/null || fail "$1: the node $NODE is not ready after 60 s" "the logs are in $LOGS"; }
kill_components() { # NAME...
  local name
  for name in "$@"; do kill -KILL "$(program_of "$name")"; done
}

down_clean() { # SCENARIO
  "$CLUSTER_DIR/down.sh"
  "$CLUSTER_DIR/leftovers.sh" || fail "$1: make down did not remove everything (the remaining items are listed above)"
  say "$1: make down removed everything"
}

three_killed_then_down() {
  up
  kill_components kube-apiserver kubelet containerd
  down_clean "API server, kubelet and containerd killed"
}

three_killed_then_up() {
  local before
  up
  before=$(kube get namespace kube-system --output 'jsonpath={.metadata.uid}')
  kill_components kube-apiserver kubelet containerd
  sleep 1
  up
  assert_answers "make up after three programs were killed"
  [ "$(kube get namespace kube-system --output 'jsonpath={.metadata.uid}')" = "$before" ] || fail "make up created a new cluster instead of repairing the existing one"
}

everything_killed_then_up() {
  kill -KILL "$(process_of anchor)"
  up
  assert_answers "make up after all programs were killed"
  kill -KILL "$(process_of anchor)"
  down_clean "all programs killed"
}

half_started_then_down() {
  local starting
  setsid "$CLUSTER_DIR/up.sh" >"$CACHE/half.log" 2>&1 &
  starting=$!
  sleep "$1"
  kill -KILL "$starting"
  wait "$starting" 2>/dev/null || true
  down_clean "make up killed after $1 s"
}

main() {
  case ${1:-} in -h | --help) usage && exit 0 ;; esac
  "$CLUSTER_DIR/leftovers.sh" || fail "the local cluster is running" "stop it with make down, and run this again"
  three_killed_then_down
  three_killed_then_up
  everything_killed_then_up
  half_started_then_down 0.7
  half_started_then_down 2.5
  "$CLUSTER_DIR/down.sh"
  say "make up repaired the cluster, or make down removed it, after every crash"
}

main "$@"
