#!/usr/bin/env bash
# Builds the registry of the project Distribution once from its pinned Go module, and prints its path.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../../cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

case ${1:-} in -h | --help)
  echo "usage: build.sh   builds an image registry (a minute the first time), and prints its path"
  exit 0
  ;;
esac

cd "$REPO_DIR/test/release/registry"
folder="$CACHE/registry/$(hash_of_files go.mod go.sum main.go build.sh)"
program="$folder/registry"
if [ ! -f "$program" ]; then
  hold_lock registry
  if [ ! -f "$program" ]; then
    command -v go >/dev/null || fail "Go is not installed, but the registry is built from Go modules" \
      "install Go 1.26 or newer (https://go.dev/doc/install), then run this again"
    log="$CACHE/registry/build.log"
    mkdir -p "$folder"
    CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath -mod=readonly" \
      with_progress "compiling the registry" "$log" go build -ldflags "-s -w" -o "$program.new" . ||
      { show_log "$log" && fail "the registry could not be built" "the log is $log"; }
    mv "$program.new" "$program"
  fi
fi
printf '%s\n' "$program"
