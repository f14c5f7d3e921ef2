#!/usr/bin/env bash
# Stops the local cluster, and removes everything that the cluster created on this machine, also after a crash. A second run does
# nothing.
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
  Stops the local node, and removes its namespaces, network link, cgroups and state. If make up created a cluster with kind,
  deletes that cluster. Logs stay until the next start. Built programs and images stay in the cache (~/.cache/svc-tts, or
  SVC_TTS_CACHE), which no make target deletes.
T
}

# Kills the first process of the process namespace, which ends every process in the namespace.
stop_processes() {
  local anchor
  if anchor=$(process_of anchor); then kill -KILL "$anchor"; fi
  # A start that was killed may not have recorded the process id of the anchor.
  while read -r anchor; do kill -KILL "$anchor" 2>/dev/null || true; done < <(cluster_processes)
  local deadline=$((SECONDS + 15))
  while [ -n "$(cluster_processes)" ]; do
    [ "$SECONDS" -lt "$deadline" ] || fail "these processes of the cluster did not end within 15 s: $(cluster_processes | tr '\n' ' ')" "examine them with ps, then run make down again"
    sleep 0.05
  done
}

# The kernel removes the link together with the network namespace, shortly after the last process has ended.
remove_link() {
  local deadline=$((SECONDS + 5))
  while ip link show "$HOST_LINK" >/dev/null 2>&1 && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.05; done
  if ip link show "$HOST_LINK" >/dev/null 2>&1; then ip link del "$HOST_LINK"; fi
}

# A start that was killed during its checks may have left a cgroup.
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
  [ "$(id -u)" = 0 ] || fail "stopping the cluster needs root" "run it with sudo (sudo -E make down)"
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
  "$CLUSTER_DIR/leftovers.sh" || fail "the items of the cluster that are listed above remain" "run make down again; if they still remain, report this output as a bug"
  say "the cluster is stopped and removed after $(seconds_since "$started") s"
}

main "$@"
