#!/usr/bin/env bash
# Runs as the first process in the namespaces of a node. It mounts the node's own folders at the fixed paths of Kubernetes and
# containerd, and then becomes `pause`, which waits. The mounts of the machine do not change. up.sh and second-node.sh start it.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=state.sh
source "$CLUSTER_DIR/state.sh"
pause=$2
use_node "$3"
private=$NODE_STATE/private

mount --make-rprivate /
for folder in "${PRIVATE_FOLDERS[@]}"; do
  mkdir -p "$private$folder"
  mount --bind "$private$folder" "$folder"
done
# Pods with mount propagation need a shared mount tree. This tree is shared only inside this namespace.
mount --make-rshared /
ip link set lo up
sysctl -qw net.ipv4.ip_forward=1
touch "$RUN/anchored"
# down.sh recognizes the anchor of its cluster by this argument.
exec "$pause" "$RUN/"
