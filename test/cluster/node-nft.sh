#!/usr/bin/env bash
# Applies nftables rules in the network namespace of the first node of the local cluster.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=state.sh
source "$CLUSTER_DIR/state.sh"

usage() { echo "usage: node-nft.sh <RULES   applies the rules on standard input in one transaction (nft -f)"; }

main() {
  case ${1:-} in -h | --help) usage && exit 0 ;; esac
  [ -e "$RUN/complete" ] || fail "no local cluster is running" "start it with make up"
  PATH="$PATH:/usr/sbin:/sbin" in_cluster nft --file -
}

main "$@"
