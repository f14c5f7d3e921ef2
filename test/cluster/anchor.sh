#!/usr/bin/env bash
# The first process of a node's namespaces: gives the node its own copies of the folders that Kubernetes and
# containerd have fixed paths for, then waits as `pause`. Started by up.sh; nothing here touches the machine's own mounts.
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
# pods whose volumes propagate need a shared tree; it is shared inside this namespace alone
mount --make-rshared /
ip link set lo up
sysctl -qw net.ipv4.ip_forward=1
touch "$RUN/anchored"
# the argument tells down.sh whose anchor this is
exec "$pause" "$RUN/"
