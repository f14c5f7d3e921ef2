#!/usr/bin/env bash
# Builds external programs that validate manifests once from pinned Go modules, and prints their folder.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"
JUDGES_DIR="$REPO_DIR/test/judges"
PACKAGES=(./kstatus ./argohealth github.com/zegl/kube-score/cmd/kube-score)

case ${1:-} in -h | --help)
  echo "usage: build.sh   builds kstatus, argohealth, kube-score and helm-unittest (minutes the first time), and prints their folder"
  exit 0
  ;;
esac

compile() { # MODULE PACKAGE...
  local module=$1
  shift
  with_progress "compiling ${*##*/}" "$CACHE/judges/build.log" go -C "$module" build -ldflags "-s -w" -o "$temporary/" "$@" ||
    { show_log "$CACHE/judges/build.log" && fail "the programs that validate manifests could not be built" "the log is $CACHE/judges/build.log"; }
}

cd "$JUDGES_DIR"
final="$CACHE/judges/$(hash_of_files go.mod go.sum build.sh kstatus/main.go argohealth/main.go helm-unittest/go.mod helm-unittest/go.sum)"
if [ ! -d "$final" ]; then
  hold_lock judges
  if [ ! -d "$final" ]; then
    command -v go >/dev/null || fail "Go is not installed, but the programs that validate manifests are built from Go modules" \
      "install Go 1.26 or newer (https://go.dev/doc/install), then run this again"
    mkdir -p "$CACHE/judges"
    temporary=$(mktemp -d "$CACHE/judges/building.XXXXXX")
    trap 'rm -rf "$temporary"' EXIT
    export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath -mod=readonly"
    compile . "${PACKAGES[@]}"
    # helm-unittest has a separate module, because it needs a newer version of the Kubernetes libraries.
    compile helm-unittest github.com/helm-unittest/helm-unittest/cmd/helm-unittest
    chmod 755 "$temporary"
    mv "$temporary" "$final"
  fi
fi
printf '%s\n' "$final"
