#!/usr/bin/env bash
# Builds, once, the programs of others that judge our manifests, from their pinned Go modules, and prints the folder that holds them.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"
JUDGES_DIR="$REPO_DIR/test/judges"
PACKAGES=(./kstatus ./argohealth github.com/zegl/kube-score/cmd/kube-score)

case ${1:-} in -h | --help)
  echo "usage: build.sh   builds kstatus, argohealth, kube-score and helm-unittest (minutes the first time) and prints their folder"
  exit 0
  ;;
esac

compile() { # MODULE PACKAGE...
  local module=$1
  shift
  with_progress "compiling ${*##*/}" "$CACHE/judges/build.log" go -C "$module" build -ldflags "-s -w" -o "$temporary/" "$@" ||
    { show_log "$CACHE/judges/build.log" && fail "the programs that judge manifests could not be built" "the whole output is in $CACHE/judges/build.log"; }
}

cd "$JUDGES_DIR"
final="$CACHE/judges/$(hash_of_files go.mod go.sum build.sh kstatus/main.go argohealth/main.go helm-unittest/go.mod helm-unittest/go.sum)"
if [ ! -d "$final" ]; then
  hold_lock judges
  if [ ! -d "$final" ]; then
    command -v go >/dev/null || fail "Go is not installed, and the programs that judge manifests are built from Go modules" \
      "install Go 1.26 or newer (https://go.dev/doc/install), then run this again"
    mkdir -p "$CACHE/judges"
    temporary=$(mktemp -d "$CACHE/judges/building.XXXXXX")
    trap 'rm -rf "$temporary"' EXIT
    export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath -mod=readonly"
    compile . "${PACKAGES[@]}"
    # of its own module: it comes with a newer Kubernetes
    compile helm-unittest github.com/helm-unittest/helm-unittest/cmd/helm-unittest
    chmod 755 "$temporary"
    mv "$temporary" "$final"
  fi
fi
printf '%s\n' "$final"
