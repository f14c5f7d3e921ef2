#!/usr/bin/env bash
# Starts the local cluster, which is one real node in its own namespaces. If the cluster already runs, checks and repairs it.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=state.sh
source "$CLUSTER_DIR/state.sh"
# shellcheck source-path=SCRIPTDIR source=preflight.sh
source "$CLUSTER_DIR/preflight.sh"
# shellcheck source-path=SCRIPTDIR source=node-config.sh
source "$CLUSTER_DIR/node-config.sh"
# shellcheck source-path=SCRIPTDIR source=node.sh
source "$CLUSTER_DIR/node.sh"

usage() {
  cat <<'T'
usage: up.sh [--check]
  Starts etcd, the API server, the controllers, the scheduler, containerd, the kubelet, kube-proxy, CoreDNS and a device
  plugin that advertises simulated GPUs. Needs root and about 8 GB of disk space. Installs missing Debian packages.
  --check        only check whether this machine meets the requirements
  SVC_TTS_GPUS   the initial number of GPUs of the node (default 4; gpus.sh changes it)
  SVC_TTS_CACHE  the folder of programs, images and state (default ~/.cache/svc-tts)
T
}

GPUS="${SVC_TTS_GPUS:-4}"

connect_network() {
  local anchor
  anchor=$(process_of anchor)
  ip link show "$HOST_LINK" >/dev/null 2>&1 && return
  ip link add "$HOST_LINK" type veth peer name eth0 netns "$anchor"
  ip addr add "$HOST_ADDRESS/24" dev "$HOST_LINK"
  ip link set "$HOST_LINK" up
  nsenter --target "$anchor" --net -- ip addr add "$NODE_ADDRESS/24" dev eth0
  nsenter --target "$anchor" --net -- ip link set eth0 up
  # With these routes, programs of the node and of this machine can connect to Services and pods.
  nsenter --target "$anchor" --net -- ip route add "$SERVICE_RANGE" dev eth0 src "$NODE_ADDRESS"
  ip route add "$SERVICE_RANGE" via "$NODE_ADDRESS"
  ip route add "$POD_RANGE" via "$NODE_ADDRESS"
}

start_etcd() {
  start etcd "$TOOLS/etcd" --data-dir "$STATE/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380
}

start_api_server() {
  start kube-apiserver "$TOOLS/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
    --bind-address="$NODE_ADDRESS" --advertise-address="$NODE_ADDRESS" --secure-port=6443 \
    --service-cluster-ip-range="$SERVICE_RANGE" --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
    --client-ca-file="$PKI/ca.crt" --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" \
    --kubelet-client-certificate="$PKI/apiserver-kubelet-client.crt" --kubelet-client-key="$PKI/apiserver-kubelet-client.key" \
    --kubelet-certificate-authority="$PKI/ca.crt" --kubelet-preferred-address-types=InternalIP \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local \
    --service-account-key-file="$PKI/service-account.pub" --service-account-signing-key-file="$PKI/service-account.key" \
    --requestheader-client-ca-file="$PKI/front-proxy-ca.crt" --requestheader-allowed-names=front-proxy-client \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$PKI/front-proxy.crt" --proxy-client-key-file="$PKI/front-proxy.key" \
    --allow-privileged=true --endpoint-reconciler-type=lease
  await kube-apiserver "the API server is ready" kube get --raw /readyz
}

# Starts the controller manager and the scheduler. Call this function after the API server is ready, because both end if the API
# server has not created its default roles yet.
start_controllers() {
  local config="$PKI/controller-manager.kubeconfig"
  start kube-controller-manager "$TOOLS/kube-controller-manager" --kubeconfig="$config" \
    --authentication-kubeconfig="$config" --authorization-kubeconfig="$config" --bind-address=127.0.0.1 \
    --client-ca-file="$PKI/ca.crt" --cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key" \
    --root-ca-file="$PKI/ca.crt" --service-account-private-key-file="$PKI/service-account.key" \
    --use-service-account-credentials=true --allocate-node-cidrs=true --cluster-cidr="$POD_RANGE" \
    --service-cluster-ip-range="$SERVICE_RANGE" --leader-elect=false --authentication-tolerate-lookup-failure=true \
    --kube-api-qps=300 --kube-api-burst=600
  config="$PKI/scheduler.kubeconfig"
  start kube-scheduler "$TOOLS/kube-scheduler" --kubeconfig="$config" --authentication-kubeconfig="$config" \
    --authorization-kubeconfig="$config" --kube-api-qps=300 --kube-api-burst=600 --bind-address=127.0.0.1 \
    --leader-elect=false --authentication-tolerate-lookup-failure=true
}

start_gpus() {
  [ -e "$STATE/gpus" ] || echo "$GPUS" >"$STATE/gpus"
  start deviceplugin "$TOOLS/deviceplugin" -count-file "$STATE/gpus"
}

dns_ready() { [ "$(kube -n kube-system get deployment coredns -o 'jsonpath={.status.readyReplicas}')" = 1 ]; }
gpus_ready() { [ "$(kube get node "$NODE" -o 'jsonpath={.status.allocatable.nvidia\.com/gpu}')" = "$(cat "$STATE/gpus")" ]; }

# Prints the version of a cluster, which is a hash of the scripts and tools that create it.
version() { (cd "$CLUSTER_DIR" && { hash_of_files up.sh anchor.sh node.sh node-config.sh pki.sh; echo "$TOOLS"; } | sha256sum | cut -c1-16); }

all_running() {
  local name
  for name in anchor "${COMPONENTS[@]}"; do process_of "$name" >/dev/null || return 1; done
}

healthy() { all_running && [ -e "$RUN/complete" ] && kube get --raw /readyz >/dev/null 2>&1 && node_ready && dns_ready; }

# Removes a cluster that cannot be repaired: its namespaces no longer exist after a crash or reboot, it never started completely, or
# its CA certificate is too old.
clear_remains() {
  [ -e "$STATE/boot" ] || return 0
  if process_of anchor >/dev/null && [ -e "$RUN/complete" ] && [ -z "$(find "$PKI/ca.crt" -mtime +25 2>/dev/null)" ]; then
    [ "$(cat "$STATE/version")" = "$(version)" ] || warn "another version of these scripts started the running cluster; to use this version, run make down && make up"
    return 0
  fi
  say "removing a cluster that did not stop cleanly"
  "$CLUSTER_DIR/down.sh" --locked >&2
}

prepare_state() {
  mkdir -p "$RUN" "$LOGS"
  [ -e "$STATE/boot" ] || cp /proc/sys/kernel/random/boot_id "$STATE/boot"
  [ -e "$STATE/version" ] || version >"$STATE/version"
  if [ ! -e "$KUBECONFIG_FILE" ]; then
    "$CLUSTER_DIR/pki.sh" "$PKI" "https://$FIRST_ADDRESS:6443" "$FIRST_ADDRESS" "node1=$FIRST_ADDRESS" "node2=$SECOND_ADDRESS"
    install -m 600 "$PKI/admin.kubeconfig" "$KUBECONFIG_FILE"
  fi
  write_node_config
  write_cni_config "$FIRST_PODS"
}

start_all() {
  start_anchor
  connect_network
  start_etcd
  start_api_server
  say "API server ready after $(seconds_since "$BEGUN") s"
  start_controllers
  start_containerd
  prepare_cgroups
  start_kubelet nvidia.com/gpu.present=true,nvidia.com/gpu.product=made-up
  start_gpus
  kube apply --server-side --filename "$CLUSTER_DIR/manifests/coredns.yaml" >>"$LOGS/kubectl.log" 2>&1 ||
    { show_log "$LOGS/kubectl.log" && fail "CoreDNS could not be applied" "the log is $LOGS/kubectl.log"; }
  await kubelet "the node is ready" node_ready
  say "node ready after $(seconds_since "$BEGUN") s"
  await kubelet "CoreDNS is ready" dns_ready
  await deviceplugin "the node reports the GPUs" gpus_ready
  touch "$RUN/complete"
}

main() {
  case ${1:-} in -h | --help) usage && exit 0 ;; esac
  BEGUN=$(now_ms)
  STARTED=()
  [[ $GPUS =~ ^[0-9]+$ ]] || fail "SVC_TTS_GPUS must be an integer from 0, not '$GPUS'" "for example SVC_TTS_GPUS=4"
  need_linux_root
  # The checks run before the build of the programs, which takes eight minutes.
  [ -e "$STATE/boot" ] || preflight
  if [ "${1:-}" = --check ]; then return; fi
  TOOLS=$("$CLUSTER_DIR/tools.sh")
  hold_lock cluster
  if healthy; then
    [ "$(cat "$STATE/version")" = "$(version)" ] || warn "another version of these scripts started the cluster; to use this version, run make down && make up"
    say "the cluster runs and is healthy (checked in $(seconds_since "$BEGUN") s)"
    return
  fi
  clear_remains
  preflight
  prepare_state
  start_all
  say "the cluster is ready after $(seconds_since "$BEGUN") s (started programs: ${STARTED[*]:-none})"
}

main "$@"
