# shellcheck shell=bash
# Reads the state of the local cluster for the other scripts. Source this file after lib.sh.
#
# Every program of the cluster runs in the same process, mount and network namespaces. Their first process is the anchor
# (`pause`). When the anchor ends, the kernel ends every program and pod, and removes the mounts, the network and its rules. A
# crash can therefore leave only files and empty cgroups.
set -euo pipefail

# shellcheck disable=SC2034
{
  STATE="$CACHE/cluster"
  PKI="$STATE/pki"
  KUBECONFIG_FILE="$STATE/kubeconfig"
  FIRST_ADDRESS=10.250.0.1
  SECOND_ADDRESS=10.250.0.2
  HOST_ADDRESS=10.250.0.254
  NODE_RANGE=10.250.0.0/24
  SERVICE_RANGE=10.96.0.0/16
  POD_RANGE=10.244.0.0/16
  # The pod network that the controller manager assigns to the first node.
  FIRST_PODS=10.244.0.0/24
  HOST_LINK=svc-tts0
  CNI_PLUGINS=/usr/lib/cni
  # Kubernetes, containerd and CNI have these fixed paths. The cluster mounts its own folders there.
  PRIVATE_FOLDERS=(/run/containerd /run/netns /var/lib/kubelet /var/lib/cni /var/log/containers /var/log/pods)
  COMPONENTS=(etcd kube-apiserver kube-controller-manager kube-scheduler containerd kubelet kube-proxy deviceplugin)
}

# use_node NAME: selects the node for the functions of this file. node1 also has the control plane.
# shellcheck disable=SC2034
use_node() {
  NODE=$1
  NODE_STATE="$STATE" RUN="$STATE/run" LOGS="$STATE/logs" CGROUP=svc-tts-cluster NODE_ADDRESS=$FIRST_ADDRESS
  if [ "$NODE" != node1 ]; then
    NODE_STATE="$STATE/$NODE" RUN="$RUN/$NODE" LOGS="$LOGS/$NODE" CGROUP="$CGROUP/$NODE" NODE_ADDRESS=$SECOND_ADDRESS
  fi
  CONTAINERD_SOCKET="$RUN/containerd.sock"
}
use_node node1

start_time_of() { # PID: prints its start in clock ticks since boot, which distinguishes it from a later process with the same id
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  # The name in brackets may contain spaces. The start time is the 20th field after the name.
  awk '{printf "%s", $20}' <<<"${stat##*) }"
}

remember_process() { printf '%s %s\n' "$2" "$(start_time_of "$2")" >"$RUN/$1.pid"; } # NAME PID

# process_of NAME: prints the recorded process id if the process still runs
process_of() {
  local pid started
  [ -r "$RUN/$1.pid" ] || return 1
  read -r pid started <"$RUN/$1.pid" || return 1
  [ -n "$started" ] && [ "$(start_time_of "$pid")" = "$started" ] || return 1
  printf '%s' "$pid"
}

# runs NAME: nsenter may end shortly after its program, so the function checks both processes.
runs() { process_of "$1" >/dev/null && [ -n "$(program_of "$1")" ]; }

# program_of NAME: prints the process id of the program. The recorded process is nsenter, which waits for the program.
program_of() {
  local outer
  outer=$(process_of "$1") || return 1
  tr -d ' ' <"/proc/$outer/task/$outer/children" 2>/dev/null
}

in_cluster() { # COMMAND...: runs the command in the namespaces of the running cluster
  nsenter --target "$(process_of anchor)" --mount --net --pid -- "$@"
}

# Prints the folder of the cgroup of the cluster in each hierarchy. cgroup v2 has one hierarchy, cgroup v1 has one for each
# controller, and mixed systems have both.
cgroup_folders() { awk '$3 ~ /^cgroup2?$/ {print $2}' /proc/self/mounts | sort -u | sed "s|\$|/$CGROUP|"; }

kube() { "$TOOLS/kubectl" --kubeconfig "$KUBECONFIG_FILE" "$@"; }

# cluster_processes: prints every process in the namespaces of the cluster, and every process that was started to create or enter them
cluster_processes() { { members; starters; } | cut -d/ -f3 | sort -un; }

# Prints processes in the mount namespace of the cluster. Linux reuses the numbers of namespaces, so the function also checks that
# the process sees the folders of this cluster.
members() {
  local file
  [ -s "$RUN/namespace" ] || return 0
  while read -r file; do
    if [ "${file%/ns/mnt}/root/var/lib/kubelet" -ef "$NODE_STATE/private/var/lib/kubelet" ]; then echo "$file"; fi
  done < <(find /proc -maxdepth 3 -path '/proc/[0-9]*/ns/mnt' -lname "$(sed 's/[][]/\\&/g' "$RUN/namespace")" 2>/dev/null || true)
}

# Finds processes by their arguments, because a start that was killed may not have recorded them.
starters() {
  local file
  while read -r file; do
    case $(cat "${file%/cmdline}/comm" 2>/dev/null) in unshare | nsenter | anchor.sh | pause) echo "$file" ;; esac
  done < <(grep -alzE "^([^ ]*=)?$STATE/" /proc/[0-9]*/cmdline 2>/dev/null || true)
}

remove_cgroups() {
  local folder
  while read -r folder; do
    [ -d "$folder" ] || continue
    find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null || { sleep 0.3 && find "$folder" -depth -type d -exec rmdir {} +; }
  done < <(cgroup_folders)
}
