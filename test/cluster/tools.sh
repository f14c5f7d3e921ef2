#!/usr/bin/env bash
# Builds the programs of the local cluster once from pinned Go modules, and prints their folder.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=image-archive.sh
source "$CLUSTER_DIR/image-archive.sh"

usage() {
  cat <<'T'
usage: tools.sh [--path]
  Builds etcd, the Kubernetes programs, CoreDNS, helm, kwok, kubeconform, the device plugin and pause from
  test/cluster/tools (about 8 minutes and 6 GB the first time), and prints their folder. Later runs use the built programs.
  --path   print the folder without a build
  SVC_TTS_CACHE   the folder of the results (default ~/.cache/svc-tts)
T
}

KUBERNETES=v1.36.3
HELM=v3.21.4
GO_MINOR=26
PACKAGES=(
  ./etcd ./coredns ./deviceplugin ./pause
  k8s.io/kubernetes/cmd/kube-{apiserver,controller-manager,scheduler,proxy}
  k8s.io/kubernetes/cmd/kubelet k8s.io/kubernetes/cmd/kubectl
  helm.sh/helm/v3/cmd/helm sigs.k8s.io/kwok/cmd/kwok github.com/yannh/kubeconform/cmd/kubeconform
)
SPACE_MIB=6144

link_flags() {
  local package flags="-s -w"
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=$KUBERNETES -X $package.gitMajor=1 -X $package.gitMinor=36"
    flags+=" -X $package.gitTreeState=clean -X $package.gitCommit=0000000000000000000000000000000000000000"
    flags+=" -X $package.buildDate=2026-01-01T00:00:00Z"
  done
  printf '%s -X helm.sh/helm/v3/internal/version.version=%s' "$flags" "$HELM"
}

version_hash() {
  cd "$CLUSTER_DIR/tools" || exit 1
  {
    find . -type f \( -name '*.go' -o -name 'go.*' \) -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
    printf '%s\n' "${PACKAGES[@]}" "$(link_flags)" "$(uname -m)"
  } | sha256sum | cut -c1-16
}

need_go() {
  command -v go >/dev/null || fail "Go is not installed, but the programs of the cluster are built from Go modules" \
    "install Go 1.$GO_MINOR or newer (https://go.dev/doc/install), or Go 1.21 or newer, which downloads Go 1.$GO_MINOR automatically" \
    "(on Debian: apt-get install golang-go from trixie or backports), then run this again"
  local version minor
  version=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
  minor=$(sed -E 's/^go1\.([0-9]+).*/\1/' <<<"$version")
  [[ $minor =~ ^[0-9]+$ ]] || return 0 # This is a development version of Go, so its number is unknown.
  [ "$minor" -ge 21 ] || fail "Go is too old: $version, and 1.$GO_MINOR is needed" "install Go 1.$GO_MINOR or newer (https://go.dev/doc/install)"
  if [ "$minor" -ge "$GO_MINOR" ]; then export GOTOOLCHAIN=local; else
    say "$version will download Go 1.$GO_MINOR through its module proxy"
    export GOTOOLCHAIN=auto
  fi
}

explain_failure() { # LOG
  show_log "$1"
  if grep -qE 'no space left on device' "$1"; then
    fail "the disk is full" "free about 6 GB (the caches of Go are $(go env GOCACHE) and $(go env GOMODCACHE)), then run this again"
  elif grep -qE 'dial tcp|no such host|i/o timeout|TLS handshake|connection refused|proxyconnect' "$1"; then
    fail "the Go modules could not be downloaded" "this machine needs a Go module proxy (GOPROXY is $(go env GOPROXY | sed -E 's#//[^/@]*@#//#'))"
  fi
  fail "the programs of the cluster could not be built" "the log is $1"
}

compiled_packages() { # LOG: the output of go build -v, which has one package per line
  printf ', %s packages compiled (about 1,900 without a cache), now %s' "$(wc -l <"$1")" "$(tail -n 1 "$1" | cut -c1-60)"
}

compile() { # OUT
  cd "$CLUSTER_DIR/tools" || exit 1
  export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath -mod=readonly"
  with_progress "downloading Go modules (0.8 GB)" "$CACHE/tools/download.log" go mod download || explain_failure "$CACHE/tools/download.log"
  PROGRESS_DETAIL=compiled_packages with_progress "compiling the programs of the cluster" "$CACHE/tools/build.log" \
    go build -v -ldflags "$(link_flags)" -o "$1/bin/" "${PACKAGES[@]}" || explain_failure "$CACHE/tools/build.log"
}

# Writes the Stage objects of the KWOK module, which define how KWOK simulates nodes and pods.
kwok_stages() { # OUT
  local stages file
  stages=$(cd "$CLUSTER_DIR/tools" && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
  for file in "$stages"/{node/fast,node/heartbeat-with-lease,pod/fast}/*.yaml; do
    [ "$(basename "$file")" = kustomization.yaml ] || { echo ---; cat "$file"; }
  done >"$1/kwok-stages.yaml"
}

# program_archive OUT REFERENCE PROGRAM: writes an image with one static program
program_archive() {
  local folder
  folder=$(mktemp -d)
  install -m 755 "$3" "$folder/"
  image_archive "$1" "$2" "/$(basename "$3")" 65532 "$folder"
  rm -r "$folder"
}

build() { # FINAL
  local started temporary
  started=$(now_ms)
  need_go
  need_space "$CACHE" "$SPACE_MIB" "building the programs of the cluster"
  need_space "$(go env GOCACHE)" "$SPACE_MIB" "the build cache of Go"
  mkdir -p "$CACHE/tools"
  rm -rf "$CACHE"/tools/building.*
  temporary=$(mktemp -d "$CACHE/tools/building.XXXXXX")
  # The trap removes the incomplete output of an interrupted build.
  # shellcheck disable=SC2064
  trap "rm -rf '$temporary'" EXIT
  say "building the programs of the cluster (about 8 minutes on two cores the first time; the result is stored in $CACHE/tools)"
  compile "$temporary"
  kwok_stages "$temporary"
  install -m 644 "$(cd "$CLUSTER_DIR/tools" && go list -m -f '{{.Dir}}' k8s.io/kubernetes)/api/openapi-spec/swagger.json" "$temporary/"
  mkdir "$temporary/images"
  program_archive "$temporary/images/pause.tar" svc-tts.local/pause:1 "$temporary/bin/pause"
  program_archive "$temporary/images/coredns.tar" svc-tts.local/coredns:1 "$temporary/bin/coredns"
  chmod 755 "$temporary"
  seconds_since "$started" >"$temporary/build-seconds"
  mv "$temporary" "$1"
  say "the programs of the cluster are built after $(cat "$1/build-seconds") s"
}

main() {
  local final
  case ${1:-} in -h | --help) usage && exit 0 ;; esac
  final="$CACHE/tools/$(version_hash)"
  if [ "${1:-}" != --path ] && [ ! -d "$final" ]; then
    hold_lock tools
    [ -d "$final" ] || build "$final" >&2
  fi
  printf '%s/bin\n' "$final"
}

main "$@"
