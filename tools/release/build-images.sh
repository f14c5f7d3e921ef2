#!/usr/bin/env bash
# Builds images of the Containerfile for a release without the cache of earlier builds, and writes them as docker-archives.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../../test/cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../test/cluster/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../../test/cluster/image-builder.sh
source "$CLUSTER_DIR/image-builder.sh"

usage() {
  cat <<'T'
usage: build-images.sh FOLDER ROLE...
  Builds the images of the roles (server, operator, arcana) for the architecture of this machine, and writes FOLDER/ROLE.tar. The file
  FOLDER/bases.txt lists the base images, with their digests if an image registry is reachable.
  SVC_TTS_BUILDER    docker, podman or buildah (default: the first that works)
  SVC_TTS_BASE=debian   build the base image from Debian and npm packages, also if an image registry is reachable
T
}

# pinned_bases BUILDER: prints a --build-arg with the digest of each base image of the Containerfile, one word per line
pinned_bases() {
  local name reference digest programs
  base_can_be_had "$1" || return 0
  programs=$("$REPO_DIR/tools/release/programs.sh")
  for name in BASE RUNTIME; do
    reference=$(sed -nE "s/^ARG $name=//p" "$REPO_DIR/Containerfile")
    digest=$("$programs/crane" digest "$reference") || fail "the digest of the base image $reference could not be read" "check the connection to its registry"
    printf '%s\n' --build-arg "$name=$reference@$digest"
  done
}

build() { # FOLDER ROLE...
  local folder=$1 role builder='' lines pinned=()
  shift
  prepare_builder
  lines=$(pinned_bases "$builder")
  [ -z "$lines" ] || mapfile -t pinned <<<"$lines"
  : >"$folder/bases.txt"
  [ -z "$lines" ] || grep -v '^--build-arg$' <<<"$lines" >"$folder/bases.txt"
  for role in "$@"; do
    build_role "$builder" "$role" "localhost/svc-tts-release/$role:$(version)" "$folder/$role.tar" --no-cache "${pinned[@]}"
    say "built $role with $builder, $(($(stat -c %s "$folder/$role.tar") / 1048576)) MB"
  done
}

case ${1:-} in
  -h | --help) usage && exit 0 ;;
esac
[ $# -ge 2 ] || { usage >&2 && exit 2; }
mkdir -p "$IMAGES" "$1"
hold_lock images
build "$(realpath "$1")" "${@:2}"
