#!/usr/bin/env bash
# Lists items that a local cluster left on this machine, one per line. Exits with 1 if it finds an item.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=state.sh
source "$CLUSTER_DIR/state.sh"

usage() { echo "usage: leftovers.sh   lists processes, mounts, links, routes, rules, cgroups and files of the local cluster; exits with 1 if it finds any"; }

# Also searches for processes by their program, because the record of a process may be lost. Programs that integration tests run use
# other state folders, so they are not listed.
processes() {
  local program
  cluster_processes | sed 's/^/process /'
  while read -r program; do
    if grep -qazE "^([^ ]*=)?$STATE/" "${program%/exe}/cmdline" 2>/dev/null; then echo "process $(cut -d/ -f3 <<<"$program")"; fi
  done < <(find /proc -maxdepth 2 -name exe -lname "$CACHE/tools/*" 2>/dev/null)
  pgrep -f "containerd-shim.*$RUN/.*containerd.sock" | sed 's/^/process /' || true
}

mounts() { awk -v state="$STATE/" 'index($5, state) || index($4, state) {print "mount " $5}' /proc/self/mountinfo; }
links() { ip -oneline link show "$HOST_LINK" 2>/dev/null | awk '{print "link " $2}' || true; }
routes() {
  local range
  for range in "$NODE_RANGE" "$SERVICE_RANGE" "$POD_RANGE"; do
    ip -4 -oneline route show table all root "$range" | sed 's/^/route /'
  done
}

# Lists only the rules of kube-proxy, because rules of CNI may belong to another container engine.
rules() {
  command -v nft >/dev/null || return 0
  nft list tables 2>/dev/null | grep kube-proxy | sed 's/^/nftables /' || true
}

cgroups() {
  local folder
  while read -r folder; do [ ! -d "$folder" ] || echo "cgroup $folder"; done < <(cgroup_folders)
}

files() {
  [ -d "$STATE" ] || return 0
  find "$STATE" -mindepth 1 -maxdepth 1 ! -name logs | sed 's/^/file /'
}

main() {
  case ${1:-} in -h | --help) usage && exit 0 ;; esac
  local found
  found=$({ processes; mounts; links; routes; rules; cgroups; files; } | sort -u)
  [ -n "$found" ] || return 0
  printf '%s\n' "$found"
  return 1
}

main "$@"
