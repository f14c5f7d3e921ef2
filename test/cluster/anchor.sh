#!/usr/bin/env bash
# The first process of a node's namespaces. It gives the node its own copies of the folders for which Kubernetes and containerd
# have fixed paths, and then waits as `pause`. Started by up.sh. The mounts of the machine do not change.
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
# pods with mount propagation need a shared tree, which is shared only inside this namespace
mount --make-rshared /
ip link set lo up
sysctl -qw net.ipv4.ip_forward=1
touch "$RUN/anchored"
# down.sh recognizes its anchor by this argument
exec "$pause" "$RUN/"
