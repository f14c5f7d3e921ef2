#!/usr/bin/env bash
# Prints the line that selects the local cluster for kubectl. Use it as eval "$(make -s kubeconfig)".
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=state.sh
source "$CLUSTER_DIR/state.sh"
# shellcheck source-path=SCRIPTDIR source=kind.sh
source "$CLUSTER_DIR/kind.sh"

case ${1:-} in -h | --help) echo "usage: kubeconfig.sh   prints the shell command that exports KUBECONFIG of the local cluster" && exit 0 ;; esac
[ -s "$KUBECONFIG_FILE" ] || KUBECONFIG_FILE=$KIND_KUBECONFIG
[ -s "$KUBECONFIG_FILE" ] || fail "no local cluster is running" "start it with make up"
printf 'export KUBECONFIG=%q\n' "$KUBECONFIG_FILE"
