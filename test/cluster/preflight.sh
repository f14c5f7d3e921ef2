# shellcheck shell=bash
# Checks whether this machine meets the requirements of the local cluster. Each error has a remedy. up.sh
# sources this file.
set -euo pipefail

# The Debian package of each required program.
declare -A NEEDS=(
  [containerd]=containerd [runc]=runc [nft]=nftables [iptables]=iptables [conntrack]=conntrack [ethtool]=ethtool
  [socat]=socat [ip]=iproute2 [openssl]=openssl [nsenter]=util-linux [mount]=mount [sysctl]=procps
)
CLUSTER_SPACE_MIB=8192

need_linux_root() {
  [ "$(uname -s)" = Linux ] || fail "the cluster needs Linux, and this is $(uname -s)" \
    "set KUBECONFIG=… to use an existing cluster, or start only the server with make run"
  [ "$(id -u)" = 0 ] || fail "starting a cluster needs root, and you are $(id -un)" \
    "run it with sudo (sudo -E make up), set KUBECONFIG=… to use an existing cluster, or start only the server with make run"
}

missing_packages() {
  local program
  for program in "${!NEEDS[@]}"; do
    command -v "$program" >/dev/null || echo "${NEEDS[$program]}"
  done
  [ -x "$CNI_PLUGINS/ptp" ] || echo containernetworking-plugins
}

install_packages() { # PACKAGE...
  command -v apt-get >/dev/null || fail "the programs of these Debian packages are not installed: $*" "install them with the package manager of this system, then run this again"
  say "installing Debian packages: $*"
  export DEBIAN_FRONTEND=noninteractive
  with_progress "apt-get update" "$CACHE/apt.log" apt-get update || { show_log "$CACHE/apt.log" && fail "apt-get update failed" "the log is $CACHE/apt.log"; }
  with_progress "apt-get install" "$CACHE/apt.log" \
    apt-get install --yes --no-install-recommends "$@" || { show_log "$CACHE/apt.log" && fail "apt-get could not install: $*" "the log is $CACHE/apt.log"; }
}

# Installs missing packages. The package containerd also starts a service, which the cluster does not use.
need_programs() {
  local missing
  mapfile -t missing < <(missing_packages | sort -u)
  [ "${#missing[@]}" -eq 0 ] || install_packages "${missing[@]}"
}

# need_free_range RANGE: fails if the machine has an address or route inside the range
need_free_range() {
  local taken
  taken=$(ip -4 -oneline route show table all root "$1" | grep -v "dev $HOST_LINK" | head -n 1 || true)
  [ -z "$taken" ] || fail "the address range $1 is taken on this machine: $taken" \
    "the cluster uses $NODE_RANGE, $SERVICE_RANGE and $POD_RANGE; remove that route, which may belong to another cluster or a VPN, and run this again"
}

need_no_other_kubelet() {
  local pid
  for pid in /proc/[0-9]*; do
    [ "$(cat "$pid/comm" 2>/dev/null)" = kubelet ] || continue
    [ "$(readlink "$pid/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ] ||
      fail "another kubelet already runs on this machine (process ${pid#/proc/})" \
        "use the cluster of that kubelet with KUBECONFIG=… make up, or stop that kubelet"
  done
}

need_namespaces() {
  unshare --mount --net --pid --fork true 2>/dev/null || fail "root may not create namespaces on this machine" \
    "inside a container, use --privileged; or set KUBECONFIG=… to use an existing cluster"
}

need_cgroups() {
  local folder
  while read -r folder; do
    [ ! -d "$folder" ] || continue
    mkdir -p "$folder" 2>/dev/null || fail "the cgroups under $(dirname "$folder") are read-only" \
      "inside a container, use --privileged (with Docker also --cgroupns=host, or --cgroupns=private with a writable mount)"
    rmdir "$folder" # The folder was created only for this check.
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
