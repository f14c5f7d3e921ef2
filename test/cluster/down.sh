#!/usr/bin/env bash
# Stops the local cluster and removes everything that it put on this machine, also after a crash. Can be run twice.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=state.sh
source "$CLUSTER_DIR/state.sh"
# shellcheck source-path=SCRIPTDIR source=kind.sh
source "$CLUSTER_DIR/kind.sh"

usage() {
  cat <<'T'
usage: down.sh
  Stops the local node and removes its namespaces, link, cgroups and state; deletes the cluster of kind that make up made.
  Logs stay until the next start; built
  programs and images stay in the cache (make clean removes them).
T
}

# The end of the first process of a process namespace ends every process in it.
stop_processes() {
  local anchor
  if anchor=$(process_of anchor); then kill -KILL "$anchor"; fi
  # a start that was killed before it recorded the process id of the anchor
  while read -r anchor; do kill -KILL "$anchor" 2>/dev/null || true; done < <(cluster_processes)
  local deadline=$((SECONDS + 15))
  while [ -n "$(cluster_processes)" ]; do
    [ "$SECONDS" -lt "$deadline" ] || fail "these processes of the cluster do not end: $(cluster_processes | tr '\n' ' ')" "look at them with ps, then run make down again"
    sleep 0.05
  done
}

# The kernel removes the link with the namespace, shortly after its last process.
remove_link() {
  local deadline=$((SECONDS + 5))
  while ip link show "$HOST_LINK" >/dev/null 2>&1 && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.05; done
  if ip link show "$HOST_LINK" >/dev/null 2>&1; then ip link del "$HOST_LINK"; fi
}

# A start that was killed during its checks may have left one.
any_cgroup() {
  local folder
  while read -r folder; do [ ! -d "$folder" ] || return 0; done < <(cgroup_folders)
  return 1
}

restore_sysctls() {
  [ ! -s "$STATE/sysctls" ] || sysctl --quiet --load="$STATE/sysctls" >/dev/null
}

remove_files() {
  local folder
  if [ -e "$STATE/made-folders" ]; then
    while read -r folder; do rmdir "$folder" 2>/dev/null || true; done <"$STATE/made-folders"
  fi
  [ -d "$STATE" ] || return 0
  find "$STATE" -mindepth 1 -maxdepth 1 ! -name logs -exec rm -rf --one-file-system {} +
}

main() {
  case ${1:-} in -h | --help) usage && exit 0 ;; esac
  local started
  started=$(now_ms)
  if [ -d "$(dirname "$KIND_KUBECONFIG")" ]; then
    stop_kind
    [ -e "$STATE/boot" ] || return 0
  fi
  [ "$(id -u)" = 0 ] || fail "stopping the cluster needs root, as starting it did" "run it with sudo (sudo -E make down)"
  [ "${1:-}" = --locked ] || hold_lock cluster
  if [ ! -e "$STATE/boot" ] && [ -z "$(cluster_processes)" ] && ! any_cgroup; then
    say "no cluster is running"
    return
  fi
  stop_processes
  remove_link
  remove_cgroups
  restore_sysctls
  remove_files
  "$CLUSTER_DIR/leftovers.sh" || fail "something of the cluster is left (listed above)" "run make down again; if it stays, please report it with this output"
  say "the cluster is down, nothing left behind, after $(seconds_since "$started") s"
}

main "$@"
