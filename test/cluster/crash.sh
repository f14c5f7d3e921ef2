#!/usr/bin/env bash
# Simulates every kind of crash of the local cluster, and fails if up does not repair it or if down leaves something behind. It
# needs the address ranges of the cluster, so run it while no cluster runs (about two minutes).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=state.sh
source "$CLUSTER_DIR/state.sh"

usage() { echo "usage: crash.sh   kills parts of the local cluster with -9 and asserts that up mends it and down leaves nothing"; }

TOOLS=$("$CLUSTER_DIR/tools.sh")
up() { "$CLUSTER_DIR/up.sh"; }
assert_answers() { kube wait --for=condition=Ready "node/$NODE" --timeout=60s >/dev/null || fail "$1: the cluster does not answer"; }
kill_components() { # NAME...
  local name
  for name in "$@"; do kill -KILL "$(program_of "$name")"; done
}

down_clean() { # SCENARIO
  "$CLUSTER_DIR/down.sh"
  "$CLUSTER_DIR/leftovers.sh" || fail "$1: make down left something behind"
  say "$1: nothing left behind"
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
  assert_answers "up after three were killed"
  [ "$(kube get namespace kube-system --output 'jsonpath={.metadata.uid}')" = "$before" ] || fail "up made another cluster instead of mending this one"
}

everything_killed_then_up() {
  kill -KILL "$(process_of anchor)"
  up
  assert_answers "up after everything was killed"
  kill -KILL "$(process_of anchor)"
  down_clean "everything killed"
}

half_started_then_down() {
  local starting
  setsid "$CLUSTER_DIR/up.sh" >"$CACHE/half.log" 2>&1 &
  starting=$!
  sleep "$1"
  kill -KILL "$starting"
  wait "$starting" 2>/dev/null || true
  down_clean "start killed after $1 s"
}

main() {
  case ${1:-} in -h | --help) usage && exit 0 ;; esac
  "$CLUSTER_DIR/leftovers.sh" || fail "a cluster is running" "stop it first: make down"
  three_killed_then_down
  three_killed_then_up
  everything_killed_then_up
  half_started_then_down 0.7
  half_started_then_down 2.5
  "$CLUSTER_DIR/down.sh"
  say "every crash was mended or cleared"
}

main "$@"
