#!/usr/bin/env bash
# Builds the operator's twin from its pinned Go modules, if it is not built yet, and prints the path of the program.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../../../test/cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../../test/cluster/lib.sh"

case ${1:-} in -h | --help)
  echo "usage: build.sh   builds the operator's twin (two minutes the first time) and prints its path"
  exit 0
  ;;
esac

cd "$REPO_DIR/tools/bench/operator-twin"
final="$CACHE/operator-twin/$(hash_of_files go.mod go.sum build.sh ./*.go)"
if [ ! -d "$final" ]; then
  hold_lock operator-twin
  if [ ! -d "$final" ]; then
    command -v go >/dev/null || fail "Go is not installed, and the operator's twin is built from Go modules" \
      "install Go 1.26 or newer (https://go.dev/doc/install), then run this again"
    mkdir -p "$CACHE/operator-twin"
    temporary=$(mktemp -d "$CACHE/operator-twin/building.XXXXXX")
    trap 'rm -rf "$temporary"' EXIT
    CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath -mod=readonly" with_progress "compiling the operator's twin" \
      "$CACHE/operator-twin/build.log" go build -ldflags "-s -w" -o "$temporary/operator-twin" . ||
      { show_log "$CACHE/operator-twin/build.log" && fail "the operator's twin could not be built" "the whole output is in $CACHE/operator-twin/build.log"; }
    chmod 755 "$temporary"
    mv "$temporary" "$final"
  fi
fi
printf '%s\n' "$final/operator-twin"
