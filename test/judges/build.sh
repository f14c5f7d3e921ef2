#!/usr/bin/env bash
# Builds, once, the programs of others that judge our manifests, from their pinned Go modules, and prints the folder that holds them.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"
JUDGES_DIR="$REPO_DIR/test/judges"
PACKAGES=(./kstatus ./argohealth github.com/zegl/kube-score/cmd/kube-score)

case ${1:-} in -h | --help)
  echo "usage: build.sh   builds kstatus, argohealth and kube-score (two minutes the first time) and prints their folder"
  exit 0
  ;;
esac

cd "$JUDGES_DIR"
final="$CACHE/judges/$(hash_of_files go.mod go.sum build.sh kstatus/main.go argohealth/main.go)"
if [ ! -d "$final" ]; then
  hold_lock judges
  if [ ! -d "$final" ]; then
    command -v go >/dev/null || fail "Go is not installed, and the programs that judge manifests are built from Go modules" \
      "install Go 1.26 or newer (https://go.dev/doc/install), then run this again"
    mkdir -p "$CACHE/judges"
    temporary=$(mktemp -d "$CACHE/judges/building.XXXXXX")
    trap 'rm -rf "$temporary"' EXIT
    CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath -mod=readonly" with_progress "compiling kstatus, argohealth and kube-score" \
      "$CACHE/judges/build.log" go build -ldflags "-s -w" -o "$temporary/" "${PACKAGES[@]}" ||
      { show_log "$CACHE/judges/build.log" && fail "the programs that judge manifests could not be built" "the whole output is in $CACHE/judges/build.log"; }
    chmod 755 "$temporary"
    mv "$temporary" "$final"
  fi
fi
printf '%s\n' "$final"
