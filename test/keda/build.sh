#!/usr/bin/env bash
# Builds the three programs of KEDA once from its pinned Go module. Prints the folder with the programs and the manifests of KEDA.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

case ${1:-} in -h | --help)
  echo "usage: build.sh   builds the operator, the metrics server and the admission webhooks of KEDA (ten minutes the first time), and prints their folder"
  exit 0
  ;;
esac

MODULE=github.com/kedacore/keda/v2@v2.21.0

# Copies the source of KEDA with only one of its seventy scalers: the scaler that the ScaledObjects of the operator use. The other
# scalers need the SDKs of many clouds and databases, which doubles the time of the build. The versions of all modules are unchanged.
copy_source() { # MODULE_FOLDER INTO
  local file
  mkdir "$2"
  cp -r "$1"/{apis,cmd,controllers,pkg,version,go.mod,go.sum} "$2"
  chmod -R u+w "$2"
  for file in "$2"/pkg/scalers/*.go; do
    # All scalers use a constant of azure_queue_scaler.go.
    case ${file##*/} in scaler.go | metrics_api_scaler.go | azure_queue_scaler.go) ;; *) rm "$file" ;; esac
  done
  awk '/case "/ || /default:/ { kept = /case "metrics-api"/ || /default:/ } /TRIGGERS-START/ { within = 1 } /TRIGGERS-END/ { within = 0 }
    !within || kept || /TRIGGERS-START/ || /switch triggerType/' "$1/pkg/scaling/scalers_builder.go" >"$2/pkg/scaling/scalers_builder.go"
}

compile() { # SOURCE OUT
  cd "$1"
  go build -o "$2/keda" -ldflags "-s -w" ./cmd/operator &&
    go build -o "$2/keda-adapter" -ldflags "-s -w" ./cmd/adapter &&
    go build -o "$2/keda-admission-webhooks" -ldflags "-s -w" ./cmd/webhooks
}

cd "$REPO_DIR/test/keda"
final="$CACHE/keda/$(hash_of_files go.mod go.sum build.sh)"
if [ ! -d "$final" ]; then
  hold_lock keda
  if [ ! -d "$final" ]; then
    command -v go >/dev/null || fail "Go is not installed, but KEDA is built from Go modules" \
      "install Go 1.26 or newer (https://go.dev/doc/install), then run this again"
    mkdir -p "$CACHE/keda"
    temporary=$(mktemp -d "$CACHE/keda/building.XXXXXX")
    trap 'rm -rf "$temporary"' EXIT
    folder=$(go mod download -json "$MODULE" | sed -nE 's/^\s*"Dir": "(.*)".*/\1/p')
    [ -n "$folder" ] || fail "the Go module $MODULE could not be downloaded" "this machine needs a Go module proxy"
    copy_source "$folder" "$temporary/source"
    mkdir "$temporary/bin"
    CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath -mod=readonly" with_progress "compiling KEDA" "$CACHE/keda/build.log" \
      compile "$temporary/source" "$temporary/bin" ||
      { show_log "$CACHE/keda/build.log" && fail "KEDA could not be built" "the log is $CACHE/keda/build.log"; }
    cp -r "$folder/config" "$temporary/config"
    chmod -R u+w "$temporary/config"
    rm -rf "$temporary/source"
    chmod 755 "$temporary"
    mv "$temporary" "$final"
  fi
fi
printf '%s\n' "$final"
