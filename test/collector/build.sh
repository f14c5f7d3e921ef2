#!/usr/bin/env bash
# Builds the OpenTelemetry Collector once from pinned Go modules, and prints its path. It has only the components that the
# configuration of the operator uses.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

case ${1:-} in -h | --help)
  echo "usage: build.sh   builds the OpenTelemetry Collector (three minutes the first time), and prints its path"
  exit 0
  ;;
esac

cd "$REPO_DIR/test/collector"
folder="$CACHE/collector/$(hash_of_files go.mod go.sum main.go build.sh)"
program="$folder/otelcol"
if [ ! -f "$program" ]; then
  hold_lock collector
  if [ ! -f "$program" ]; then
    command -v go >/dev/null || fail "Go is not installed, but the OpenTelemetry Collector is built from Go modules" \
      "install Go 1.26 or newer (https://go.dev/doc/install), then run this again"
    log="$CACHE/collector/build.log"
    mkdir -p "$folder"
    # The tag removes service discovery, which would add the SDKs of all cloud providers.
    CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath -mod=readonly -tags=remove_all_sd" \
      with_progress "compiling the OpenTelemetry Collector" "$log" go build -ldflags "-s -w" -o "$program.new" . ||
      { show_log "$log" && fail "the OpenTelemetry Collector could not be built" "the log is $log"; }
    mv "$program.new" "$program"
  fi
fi
printf '%s\n' "$program"
