#!/usr/bin/env bash
# Prints the memory of each svc-tts container from its cgroup: the used memory without reclaimable file cache.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() { echo "usage: memory.sh   prints the memory in MB of each svc-tts container in the cluster of kubectl"; }
# /sys/fs/cgroup shows a container its own cgroup, in version 2 or version 1.
# shellcheck disable=SC2016
IN_CONTAINER='cd /sys/fs/cgroup; if [ -e memory.current ]; then cat memory.current; grep "^inactive_file " memory.stat;
  else cat memory/memory.usage_in_bytes; grep "^total_inactive_file " memory/memory.stat; fi'

containers() {
  kubectl get pods --all-namespaces --selector app.kubernetes.io/part-of=svc-tts --field-selector status.phase=Running \
    --output 'jsonpath={range .items[*]}{.metadata.namespace}{" "}{.metadata.name}{" "}{.spec.containers[0].name}{"\n"}{end}'
}

main() {
  case ${1:-} in -h | --help) usage && exit 0 ;; esac
  command -v kubectl >/dev/null || fail "kubectl is not in PATH" "make up prints the command that adds it"
  local found namespace pod container
  found=$(containers)
  [ -n "$found" ] || fail "no pod of svc-tts runs on this cluster" "start a demonstration with make up"
  while read -r namespace pod container; do
    kubectl --namespace "$namespace" exec "$pod" --container "$container" -- sh -c "$IN_CONTAINER" </dev/null |
      awk -v name="$namespace/$pod $container" 'NR == 1 {used = $1} NR == 2 {used -= $2} END {printf "%-60s %5d MB\n", name, used / 1e6}'
  done <<<"$found"
}

main "$@"
