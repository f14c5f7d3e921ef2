# shellcheck shell=bash
# Writes the configuration files of the programs of a node. up.sh and second-node.sh source this file.
set -euo pipefail

has_capability() { # NUMBER: returns success if root has the capability on this machine
  local bounding
  bounding=$(awk '/^CapBnd:/ {print $2}' /proc/self/status)
  (((16#$bounding >> $1) & 1))
}
CAP_SYS_RESOURCE=24

# In some sandboxes, root has no CAP_SYS_RESOURCE, so that no process may lower its OOM score.
restrict_oom_score() { if has_capability "$CAP_SYS_RESOURCE"; then echo false; else echo true; fi; }

write_cni_config() { # POD_SUBNET
  # The plugin is ptp instead of bridge, because it routes every packet, so that Services work without the module br_netfilter.
  cat >"$NODE_STATE/cni/10-svc-tts.conflist" <<J
{"cniVersion": "0.4.0", "name": "svc-tts", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "ranges": [[{"subnet": "$1"}]],
    "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
J
}

write_containerd_config() {
  cat >"$NODE_STATE/containerd.toml" <<T
version = 2
root = "$NODE_STATE/containerd"
state = "$RUN/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.internal.v1.opt"]
[grpc]
  address = "$CONTAINERD_SOCKET"
[ttrpc]
  address = "$CONTAINERD_SOCKET.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "svc-tts.local/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = $(restrict_oom_score)
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$CNI_PLUGINS"
    conf_dir = "$NODE_STATE/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
      runtime_type = "io.containerd.runc.v2"
T
}

write_kubelet_config() {
  echo "nameserver $FIRST_ADDRESS" >"$NODE_STATE/resolv.conf"
  cat >"$NODE_STATE/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
containerRuntimeEndpoint: unix://$CONTAINERD_SOCKET
address: $NODE_ADDRESS
healthzBindAddress: 127.0.0.1
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $PKI/node-$NODE.crt
tlsPrivateKeyFile: $PKI/node-$NODE.key
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
resolvConf: $NODE_STATE/resolv.conf
failSwapOn: false
oomScoreAdj: 0
enforceNodeAllocatable: [pods]
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
volumePluginDir: $NODE_STATE/volume-plugins
serializeImagePulls: false
nodeStatusUpdateFrequency: 1s
syncFrequency: 10s
Y
}

write_proxy_config() {
  cat >"$NODE_STATE/kube-proxy.yaml" <<Y
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
oomScoreAdj: 0
mode: nftables
clientConnection: {kubeconfig: $PKI/kube-proxy.kubeconfig}
clusterCIDR: $POD_RANGE
hostnameOverride: $NODE
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
Y
}

write_node_config() {
  mkdir -p "$RUN" "$LOGS" "$NODE_STATE/cni" "$NODE_STATE/volume-plugins"
  write_containerd_config
  write_kubelet_config
  write_proxy_config
}
