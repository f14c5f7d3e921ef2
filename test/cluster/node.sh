# shellcheck shell=bash
# Starts a node of the local cluster: its namespaces, containerd, the kubelet and kube-proxy. up.sh sources
# it for the first node, which also has the control plane, and second-node.sh for the second node. Source this file after
# state.sh.
set -euo pipefail

# The kernel settings that the kubelet changes for the whole machine. down.sh restores the old values.
KUBELET_SYSCTLS=(vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes)
# The containerd program. Its shim must be in the same folder.
CONTAINERD="${SVC_TTS_CONTAINERD:-containerd}"

# await NAME WHAT COMMAND...: waits until the command succeeds. It fails if the component ends, or after a minute.
await() {
  local name=$1 what=$2 started
  shift 2
  started=$(now_ms)
  until "$@" >/dev/null 2>&1; do
    { [ "$name" = anchor ] && process_of anchor >/dev/null; } || runs "$name" || { show_log "$LOGS/$name.log" && fail "$name ended before this succeeded: $what" "its log is $LOGS/$name.log"; }
    [ $(($(now_ms) - started)) -lt 60000 ] || { show_log "$LOGS/$name.log" && fail "timed out after a minute: $what" "the log is $LOGS/$name.log"; }
    sleep 0.1
  done
}

# outlive COMMAND...: replaces this shell by the command in a new session, and closes the locks and pipes that the shell inherited.
# Otherwise a program that waits for a lock or the end of a pipe would wait until the cluster ends.
outlive() {
  local file
  for file in "/proc/$BASHPID/fd"/*; do
    file=${file##*/}
    if [ "$file" -gt 2 ] && [ "$file" != 255 ]; then eval "exec $file>&-"; fi
  done
  exec setsid "$@"
}

start() { # NAME PROGRAM ARGUMENT...: starts a program in the namespaces of the node if it does not run yet
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
    kill -0 "$outer" 2>/dev/null || { show_log "$LOGS/anchor.log" && fail "the namespaces of the cluster could not be created" "the log is $LOGS/anchor.log"; }
    pid=$(tr -d ' ' <"/proc/$outer/task/$outer/children" 2>/dev/null || true)
  done
  remember_process anchor "$pid"
  readlink "/proc/$pid/ns/mnt" >"$RUN/namespace"
  await anchor "the folders of the cluster are mounted" test -e "$RUN/anchored"
}

start_containerd() {
  local archive
  start containerd "$CONTAINERD" --config "$NODE_STATE/containerd.toml"
  await containerd "containerd responds" ctr --address "$CONTAINERD_SOCKET" version
  for archive in "$TOOLS"/../images/*.tar; do
    [ -e "$RUN/imported-$(basename "$archive")" ] && continue
    ctr --address "$CONTAINERD_SOCKET" --namespace k8s.io images import "$archive" >>"$LOGS/containerd.log" 2>&1 ||
      fail "containerd could not import $archive" "the log is $LOGS/containerd.log"
    touch "$RUN/imported-$(basename "$archive")"
  done
}

# A new cpuset of cgroup v1 is empty, and accepts processes only after it has CPUs, so this function copies the CPUs of its
# parent.
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

# Sets the CPU weight of the cgroup with all pods. With the default weight, the pods together get as much CPU time as one other
# process, so that probes fail on a busy machine. The weight is three times the default, which leaves enough for the control plane.
share_cpu() { # FOLDER
  if [ -e "$1/cpu.shares" ]; then echo 3072 >"$1/cpu.shares"; fi
  if [ -e "$1/cpu.weight" ]; then echo 300 >"$1/cpu.weight"; fi
}

delegate_controllers() { # PARENT FOLDER: for cgroup v2
  local controller folder
  for controller in cpuset cpu io memory hugetlb pids; do
    grep -qw "$controller" "$1/cgroup.controllers" || continue
    for folder in "$1" "$2"; do
      echo "+$controller" >"$folder/cgroup.subtree_control" || fail "the cgroup controller $controller cannot be delegated in $folder" \
        "inside a container, use an init process that moves processes out of the root cgroup, such as the entrypoint of the kind image (docker run --init does not)"
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
