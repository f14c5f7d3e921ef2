#!/usr/bin/env bash
# Changes the number of simulated GPUs of the local node, and waits until the node reports the new number.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=state.sh
source "$CLUSTER_DIR/state.sh"

usage() { echo "usage: gpus.sh N   sets the number of nvidia.com/gpu of the node (0 removes all); running pods keep their GPUs"; }

allocatable() { kube get node "$NODE" -o 'jsonpath={.status.allocatable.nvidia\.com/gpu}'; }

main() {
  case ${1:-} in -h | --help | '') usage && exit 0 ;; esac
  [[ $1 =~ ^[0-9]+$ ]] || fail "the number of GPUs must be an integer from 0, not '$1'" "for example: gpus.sh 4"
  [ -e "$RUN/complete" ] || fail "no local cluster is running" "start it with make up"
  TOOLS=$("$CLUSTER_DIR/tools.sh" --path)
  echo "$1" >"$STATE/gpus.new"
  mv "$STATE/gpus.new" "$STATE/gpus"
  local deadline=$((SECONDS + 30))
  until [ "$(allocatable)" = "$1" ]; do
    [ "$SECONDS" -lt "$deadline" ] || fail "the node still reports $(allocatable) GPUs after 30 s" "the logs are $LOGS/deviceplugin.log and $LOGS/kubelet.log"
    sleep 0.2
  done
  say "node $NODE reports $1 GPUs"
}

main "$@"
