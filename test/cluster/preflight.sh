# shellcheck shell=bash
# Checks the requirements of a machine for a cluster, and prints a remedy for each that is missing. Sourced by up.sh.
set -euo pipefail

# program:package of Debian
declare -A NEEDS=(
  [containerd]=containerd [runc]=runc [nft]=nftables [iptables]=iptables [conntrack]=conntrack [ethtool]=ethtool
  [socat]=socat [ip]=iproute2 [openssl]=openssl [nsenter]=util-linux [mount]=mount [sysctl]=procps
)
CLUSTER_SPACE_MIB=8192

need_linux_root() {
  [ "$(uname -s)" = Linux ] || fail "the cluster needs Linux, and this is $(uname -s)" \
    "give KUBECONFIG=… to use a cluster that you have, or make run for the server alone"
  [ "$(id -u)" = 0 ] || fail "starting a cluster needs root, and you are $(id -un)" \
    "run it with sudo (sudo -E make up), give KUBECONFIG=… to use a cluster that you have, or make run for the server alone"
}

missing_packages() {
  local program
  for program in "${!NEEDS[@]}"; do
    command -v "$program" >/dev/null || echo "${NEEDS[$program]}"
  done
  [ -x "$CNI_PLUGINS/ptp" ] || echo containernetworking-plugins
}

install_packages() { # PACKAGE...
  command -v apt-get >/dev/null || fail "these programs are missing: $*" "install them with this system's package manager, then run this again"
  say "installing Debian packages: $*"
  export DEBIAN_FRONTEND=noninteractive
  with_progress "apt-get update" "$CACHE/apt.log" apt-get update || { show_log "$CACHE/apt.log" && fail "apt-get update failed" "see $CACHE/apt.log"; }
  with_progress "apt-get install" "$CACHE/apt.log" \
    apt-get install --yes --no-install-recommends "$@" || { show_log "$CACHE/apt.log" && fail "apt-get could not install: $*" "see $CACHE/apt.log"; }
}

# The packages bring a containerd service that the cluster does not use; it is left as it is.
need_programs() {
  local missing
  mapfile -t missing < <(missing_packages | sort -u)
  [ "${#missing[@]}" -eq 0 ] || install_packages "${missing[@]}"
}

# need_free_range RANGE: no address or route of the machine inside it
need_free_range() {
  local taken
  taken=$(ip -4 -oneline route show table all root "$1" | grep -v "dev $HOST_LINK" | head -n 1 || true)
  [ -z "$taken" ] || fail "the address range $1 is taken on this machine: $taken" \
    "the cluster uses $NODE_RANGE, $SERVICE_RANGE and $POD_RANGE; remove that route (another cluster or a VPN?) and run this again"
}

need_no_other_kubelet() {
  local pid
  for pid in /proc/[0-9]*; do
    [ "$(cat "$pid/comm" 2>/dev/null)" = kubelet ] || continue
    [ "$(readlink "$pid/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ] ||
      fail "a kubelet runs on this machine already (process ${pid#/proc/})" \
        "this machine is a Kubernetes node: use its cluster with KUBECONFIG=… make up, or stop that kubelet"
  done
}

need_namespaces() {
  unshare --mount --net --pid --fork true 2>/dev/null || fail "this machine does not let root make namespaces" \
    "inside a container it needs --privileged; or give KUBECONFIG=… to use a cluster that you have"
}

need_cgroups() {
  local folder
  while read -r folder; do
    [ ! -d "$folder" ] || continue
    mkdir -p "$folder" 2>/dev/null || fail "the cgroups under $(dirname "$folder") are read-only" \
      "inside a container it needs --privileged (Docker: also --cgroupns=host or private with a writable mount)"
    rmdir "$folder" # it was only to see whether it can be made
  done < <(cgroup_folders)
}

preflight() {
  local range
  need_linux_root
  need_space "$STATE" "$CLUSTER_SPACE_MIB" "the cluster"
  need_programs
  for range in "$NODE_RANGE" "$SERVICE_RANGE" "$POD_RANGE"; do need_free_range "$range"; done
  need_no_other_kubelet
  need_namespaces
  need_cgroups
}
