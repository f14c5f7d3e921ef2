#!/usr/bin/env bash
# Builds kind and its node image without an image registry: the image has Debian, and Kubernetes from Go modules.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=debian.sh
source "$CLUSTER_DIR/debian.sh"
# shellcheck source-path=SCRIPTDIR source=kind.sh
source "$CLUSTER_DIR/kind.sh"

usage() {
  cat <<'T'
usage: kind-node.sh
  Builds kind and kubeadm from test/cluster/kind-node, and a node image with Debian, containerd and the programs of tools.sh.
  Imports the image into Docker or Podman, and prints the line that makes make up use it. Needs Go, root and apt-get.
T
}

NODE_IMAGES="$CACHE/kind-node"
NODE_LOG="$NODE_IMAGES/build.log"
SPACE_MIB=6144
# The packages of the original node image of kind, and the packages of the programs that kind builds from source.
PACKAGES=systemd,systemd-sysv,dbus,containerd,runc,containernetworking-plugins,iptables,nftables,conntrack,ethtool,socat,iproute2,kmod,jq,procps,ca-certificates,curl

kubernetes_version() { sed -nE 's/^\tk8s.io\/kubernetes (v[0-9.]+)$/\1/p' "$CLUSTER_DIR/kind-node/go.mod"; }

version_hash() {
  local files
  cd "$CLUSTER_DIR" || exit 1
  mapfile -t files < <(find kind-node -type f | LC_ALL=C sort)
  { hash_of_files kind-node.sh debian.sh image-archive.sh "${files[@]}" && echo "$1"; } | sha256sum | cut -c1-16
}

compile() { # OUT
  local version package flags="-s -w"
  version=$(kubernetes_version)
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$(cut -d. -f2 <<<"$version")"
  done
  cd "$CLUSTER_DIR/kind-node" || exit 1
  CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath -mod=readonly" go build -ldflags "$flags" -o "$1/" sigs.k8s.io/kind k8s.io/kubernetes/cmd/kubeadm
}

assemble() { # OUT.tar PROGRAMS BUILT
  local module
  module=$(cd "$CLUSTER_DIR/kind-node" && go list -m -f '{{.Dir}}' sigs.k8s.io/kind)
  export KIND_MODULE=$module PROGRAMS=$2 KUBEADM=$3/kubeadm KUBERNETES
  KUBERNETES=$(kubernetes_version)
  bootstrap_debian "$1" --include="$PACKAGES" --customize-hook="$CLUSTER_DIR/kind-node/customize.sh \"\$1\""
}

build() { # FINAL PROGRAMS
  local work
  need_space "$CACHE" "$SPACE_MIB" "building the node image of kind"
  need_packages "$NODE_LOG" mmdebstrap=mmdebstrap
  rm -rf "$NODE_IMAGES"/building.*
  work=$(mktemp -d "$NODE_IMAGES/building.XXXXXX")
  with_progress "compiling kind and kubeadm" "$NODE_LOG" compile "$work" ||
    { show_log "$NODE_LOG" && fail "kind and kubeadm could not be built" "the log is $NODE_LOG"; }
  with_progress "assembling the node image" "$NODE_LOG" assemble "$work/node.tar" "$2" "$work" ||
    { show_log "$NODE_LOG" && fail "the node image could not be assembled" "the log is $NODE_LOG"; }
  chmod 755 "$work"
  mv "$work" "$1"
}

main() {
  case ${1:-} in -h | --help) usage && exit 0 ;; esac
  local programs engine final image
  [ "$(id -u)" = 0 ] || fail "building the node image needs root" "run it with sudo (sudo -E make kind-node-image)"
  engine=$(container_engine) || fail "neither Docker nor Podman answers" "start Docker or Podman, and run this again"
  programs=$("$CLUSTER_DIR/tools.sh")
  mkdir -p "$NODE_IMAGES"
  hold_lock kind-node
  final="$NODE_IMAGES/$(version_hash "$programs")"
  image="localhost/svc-tts-kind-node:$(kubernetes_version)-$(basename "$final")"
  [ -d "$final" ] || build "$final" "$programs"
  "$engine" image inspect "$image" >/dev/null 2>&1 ||
    with_progress "importing the node image into $engine" "$NODE_LOG" "$engine" import --change 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' \
      --change "ENV container=$engine" "$final/node.tar" "$image" ||
    { show_log "$NODE_LOG" && fail "$engine could not import the node image" "the log is $NODE_LOG"; }
  # shellcheck disable=SC2016
  printf 'export PATH=%q:$PATH SVC_TTS_CLUSTER=kind SVC_TTS_KIND_IMAGE=%q\n' "$final" "$image"
}

main "$@"
