#!/usr/bin/env bash
# Starts or stops a second real node of the running local cluster, for tests that drain a whole node.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=state.sh
source "$CLUSTER_DIR/state.sh"
# shellcheck source-path=SCRIPTDIR source=node-config.sh
source "$CLUSTER_DIR/node-config.sh"
# shellcheck source-path=SCRIPTDIR source=node.sh
source "$CLUSTER_DIR/node.sh"

usage() {
  cat <<'T'
usage: second-node.sh start|stop|crash
  start  adds node2 to the running local cluster, with its own namespaces, containerd, kubelet and kube-proxy, and with the
         latest images. The node has no GPU. It also starts node2 again after a crash.
  stop   removes node2 and kills its pods (run kubectl drain node2 before to end them gracefully); make down also removes it
  crash  kills every program and every pod of node2, as a power failure does; the cluster keeps the node
  SVC_TTS_CONTAINERD   the containerd of the node (default: containerd from PATH)
T
}

LINK=svc-tts1

# Creates a link to the first node. The first node routes between the pods of both nodes, and between this machine and the second
# node.
connect_to_first() {
  local first own
  own=$(process_of anchor)
  first=$(first_anchor)
  if has_link; then return; fi
  nsenter --target "$first" --net -- ip link add "$LINK" type veth peer name eth0 netns "$own"
  nsenter --target "$first" --net -- ip link set "$LINK" up
  nsenter --target "$first" --net -- ip route add "$NODE_ADDRESS/32" dev "$LINK" src "$FIRST_ADDRESS"
  nsenter --target "$own" --net -- ip addr add "$NODE_ADDRESS/32" dev eth0
  nsenter --target "$own" --net -- ip link set eth0 up
  nsenter --target "$own" --net -- ip route add "$FIRST_ADDRESS/32" dev eth0 src "$NODE_ADDRESS"
  nsenter --target "$own" --net -- ip route add default via "$FIRST_ADDRESS" dev eth0 src "$NODE_ADDRESS"
}

first_anchor() { (use_node node1 && process_of anchor); }

pod_subnet() { kube get node "$NODE" -o 'jsonpath={.spec.podCIDR}'; }
has_pod_subnet() { [ -n "$(pod_subnet)" ]; }

route_pods() {
  write_cni_config "$1"
  nsenter --target "$(first_anchor)" --net -- ip route replace "$1" via "$NODE_ADDRESS" dev "$LINK" onlink
}

import_images() {
  local archive
  [ -s "$CACHE/images/current.env" ] || fail "the images have not been built" "build them with make images"
  # shellcheck source=/dev/null
  source "$CACHE/images/current.env"
  for archive in "$SERVER_ARCHIVE" "$OPERATOR_ARCHIVE"; do
    with_progress "importing $(basename "$archive")" "$LOGS/import.log" \
      ctr --address "$CONTAINERD_SOCKET" --namespace k8s.io images import "$archive" ||
      { show_log "$LOGS/import.log" && fail "containerd could not import $archive" "the log is $LOGS/import.log"; }
  done
}

start_node() {
  local begun
  begun=$(now_ms)
  [ -e "$RUN/complete" ] || fail "no local cluster is running" "start it with make up"
  [ -e "$PKI/node-node2.crt" ] || fail "an older version of these scripts started the running cluster" "start it again with make down && make up"
  use_node node2
  STARTED=()
  write_node_config
  start_anchor
  connect_to_first
  start_containerd
  import_images
  prepare_cgroups
  start_kubelet svc-tts.local/node=second
  await kubelet "$NODE has addresses for its pods" has_pod_subnet
  route_pods "$(pod_subnet)"
  await kubelet "$NODE is ready" node_ready
  say "$NODE is ready after $(seconds_since "$begun") s"
}

# Kills the first process of the node, which ends every process in its namespaces.
kill_node() {
  local anchor deadline=$((SECONDS + 15))
  if anchor=$(process_of anchor); then kill -KILL "$anchor"; fi
  while runs containerd || runs kubelet || runs kube-proxy; do
    [ "$SECONDS" -lt "$deadline" ] || fail "the programs of $NODE did not end within 15 s" "stop the whole cluster with make down"
    sleep 0.05
  done
}

has_link() { nsenter --target "$(first_anchor)" --net -- ip link show "$LINK" >/dev/null 2>&1; }

crash_node() {
  local deadline=$((SECONDS + 15))
  use_node node2
  process_of anchor >/dev/null || fail "the second node does not run" "start it with second-node.sh start"
  kill_node
  # The kernel removes the link shortly after the last process of the network namespace.
  while has_link; do
    [ "$SECONDS" -lt "$deadline" ] || fail "the link $LINK to $NODE still exists after 15 s" "stop the whole cluster with make down"
    sleep 0.05
  done
  # A reboot empties these folders, which are in memory on a real node.
  rm -rf --one-file-system "$RUN/containerd" "$NODE_STATE/private/run"
  say "$NODE is down"
}

stop_node() {
  local begun
  begun=$(now_ms)
  use_node node2
  [ -d "$NODE_STATE" ] || { say "the second node does not run" && return; }
  kill_node
  kube delete node "$NODE" --ignore-not-found --timeout=30s >>"$LOGS/kubectl.log" 2>&1 ||
    { show_log "$LOGS/kubectl.log" && fail "the node $NODE could not be deleted" "the log is $LOGS/kubectl.log"; }
  remove_cgroups
  rm -rf --one-file-system "$NODE_STATE" "$RUN"
  say "$NODE is removed after $(seconds_since "$begun") s"
}

main() {
  case ${1:-} in start | stop | crash) ;; *) usage && exit 0 ;; esac
  need_root
  TOOLS=$("$CLUSTER_DIR/tools.sh" --path)
  hold_lock cluster
  "${1}_node"
}

need_root() { [ "$(id -u)" = 0 ] || fail "starting and stopping a node needs root" "run it with sudo"; }

main "$@"
