# shellcheck shell=bash
# Starts one node of the local cluster: its namespaces, containerd, the kubelet and kube-proxy. Sourced after state.sh: by up.sh
# for the node of the control plane, and by second-node.sh.
set -euo pipefail

# what a kubelet sets for the whole machine; down.sh puts the old values back
KUBELET_SYSCTLS=(vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes)
# another one than Debian's, with its shim beside it
CONTAINERD="${SVC_TTS_CONTAINERD:-containerd}"

# await NAME WHAT COMMAND...: until the command succeeds; gives up when the component ends or a minute passes
await() {
  local name=$1 what=$2 started
  shift 2
  started=$(now_ms)
  until "$@" >/dev/null 2>&1; do
    { [ "$name" = anchor ] && process_of anchor >/dev/null; } || runs "$name" || { show_log "$LOGS/$name.log" && fail "$name ended while waiting for $what" "its log is $LOGS/$name.log"; }
    [ $(($(now_ms) - started)) -lt 60000 ] || { show_log "$LOGS/$name.log" && fail "$what: nothing after a minute" "the log is $LOGS/$name.log"; }
    sleep 0.1
  done
}

# outlive COMMAND...: the command in place of this shell, in a session of its own, without the locks and pipes that the shell
# inherited: a program that waits for those would wait for the end of the cluster
outlive() {
  local file
  for file in "/proc/$BASHPID/fd"/*; do
    file=${file##*/}
    if [ "$file" -gt 2 ] && [ "$file" != 255 ]; then eval "exec $file>&-"; fi
  done
  exec setsid "$@"
}

start() { # NAME PROGRAM ARGUMENT...: in the node's namespaces, unless it runs already
  local name=$1
  shift
  runs "$name" && return
  outlive nsenter --target "$(process_of anchor)" --mount --net --pid -- "$@" </dev/null >>"$LOGS/$name.log" 2>&1 &
  remember_process "$name" $!
  STARTED+=("$name")
}

own_mount_points() {
  local folder
  for folder in "${PRIVATE_FOLDERS[@]}"; do
    [ -d "$folder" ] || { echo "$folder" >>"$STATE/made-folders" && mkdir -p "$folder"; }
  done
}

start_anchor() {
  process_of anchor >/dev/null && return
  local outer pid=''
  own_mount_points
  rm -f "$RUN/anchored"
  outlive unshare --mount --net --pid --fork --kill-child --mount-proc -- \
    "$CLUSTER_DIR/anchor.sh" "$RUN/" "$TOOLS/pause" "$NODE" </dev/null >"$LOGS/anchor.log" 2>&1 &
  outer=$!
  until [ -n "$pid" ]; do
    kill -0 "$outer" 2>/dev/null || { show_log "$LOGS/anchor.log" && fail "the cluster's namespaces could not be made" "the log is $LOGS/anchor.log"; }
    pid=$(tr -d ' ' <"/proc/$outer/task/$outer/children" 2>/dev/null || true)
  done
  remember_process anchor "$pid"
  readlink "/proc/$pid/ns/mnt" >"$RUN/namespace"
  await anchor "the cluster's own folders" test -e "$RUN/anchored"
}

start_containerd() {
  local archive
  start containerd "$CONTAINERD" --config "$NODE_STATE/containerd.toml"
  await containerd "containerd" ctr --address "$CONTAINERD_SOCKET" version
  for archive in "$TOOLS"/../images/*.tar; do
    [ -e "$RUN/imported-$(basename "$archive")" ] && continue
    ctr --address "$CONTAINERD_SOCKET" --namespace k8s.io images import "$archive" >>"$LOGS/containerd.log" 2>&1 ||
      fail "containerd did not take $archive" "the log is $LOGS/containerd.log"
    touch "$RUN/imported-$(basename "$archive")"
  done
}

# A cpuset of cgroup v1 starts empty and takes no process until it has its parent's CPUs.
prepare_cgroups() {
  local folder parent
  while read -r folder; do
    mkdir -p "$folder"
    parent=$(dirname "$folder")
    for file in cpuset.cpus cpuset.mems; do
      if [ -e "$folder/cgroup.clone_children" ] && [ -e "$parent/$file" ]; then cat "$parent/$file" >"$folder/$file"; fi
    done
    if [ -e "$parent/cgroup.subtree_control" ]; then delegate_controllers "$parent" "$folder"; fi
    share_cpu "$folder"
  done < <(cgroup_folders)
}

# All pods together are one group, which else counts no more than one of the other processes of this machine: beside a few
# busy ones they would starve, and their probes fail. As much as three, so that the control plane does not starve beside them.
share_cpu() { # FOLDER
  if [ -e "$1/cpu.shares" ]; then echo 3072 >"$1/cpu.shares"; fi
  if [ -e "$1/cpu.weight" ]; then echo 300 >"$1/cpu.weight"; fi
}

delegate_controllers() { # PARENT FOLDER, of cgroup v2
  local controller folder
  for controller in cpuset cpu io memory hugetlb pids; do
    grep -qw "$controller" "$1/cgroup.controllers" || continue
    for folder in "$1" "$2"; do
      echo "+$controller" >"$folder/cgroup.subtree_control" || fail "the cgroup controller $controller cannot be handed on in $folder" \
        "inside a container, start it with an init that moves its processes out of the root cgroup (docker run --init is not one; kind's image is)"
    done
  done
}

start_kubelet() { # LABELS
  [ -e "$STATE/sysctls" ] || sysctl "${KUBELET_SYSCTLS[@]}" >"$STATE/sysctls" 2>/dev/null || true
  start kubelet "$TOOLS/kubelet" --config="$NODE_STATE/kubelet.yaml" --kubeconfig="$PKI/node-$NODE.kubeconfig" \
    --hostname-override="$NODE" --node-ip="$NODE_ADDRESS" --node-labels="$1"
  start kube-proxy "$TOOLS/kube-proxy" --config="$NODE_STATE/kube-proxy.yaml"
}

node_ready() { [ "$(kube get node "$NODE" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]; }
