#!/usr/bin/env bash
# Builds the server and operator images from the Containerfile with Docker, Podman or Buildah, and writes their names to a file.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=image-builder.sh
source "$CLUSTER_DIR/image-builder.sh"

usage() {
  cat <<'T'
usage: images.sh [--push] [--print-values]
  Builds the images `server` and `operator`. The tag of an image is the version and a hash of its source files, so that an
  unchanged tree needs no build. The names of the images and archives are written to ~/.cache/svc-tts/images/current.env.
  --push           push the images (to SVC_TTS_IMAGE_REPOSITORY)
  --print-values   print the values of the chart tts-operator for these images
  SVC_TTS_IMAGE_REPOSITORY   the repository of the images (default ghcr.io/svc-tts)
  SVC_TTS_BUILDER            docker, podman or buildah (default: the first that works)
  SVC_TTS_BASE=debian        build the base image from Debian and npm packages, also if an image registry is reachable
T
}

REPOSITORY="${SVC_TTS_IMAGE_REPOSITORY:-ghcr.io/svc-tts}"
ROLES=(server operator)
# The number of archives to keep for each role. A return to an earlier tree then needs no build.
ARCHIVES_KEPT=3

inputs_of() { # ROLE: prints every file that may become part of the image
  cd "$REPO_DIR" || exit 1
  echo Containerfile
  echo .dockerignore
  echo package.json
  echo package-lock.json
  echo .npmrc
  find config/contract config/images lib "$1" -type f
  if [ "$1" = operator ]; then find crds -name '*.ts' -type f; fi
}

tag_of() { # ROLE
  local files
  mapfile -t files < <(inputs_of "$1" | LC_ALL=C sort)
  printf '%s-%s' "$(version)" "$(cd "$REPO_DIR" && hash_of_files "${files[@]}")"
}

push() { # BUILDER IMAGE
  case $1 in
    docker | podman) "$1" push "$2" ;;
    buildah) buildah_ push "$2" "docker://$2" ;;
  esac || fail "$2 could not be pushed" "log in to the registry ($1 login), or set SVC_TTS_IMAGE_REPOSITORY to a repository that you may write to"
}

forget_old_archives() { # ROLE
  find "$IMAGES" -maxdepth 1 -name "$1-*.tar" -printf '%T@ %p\n' | sort -rn | tail -n +$((ARCHIVES_KEPT + 1)) | cut -d' ' -f2- | xargs --no-run-if-empty rm --
  rm -f "$IMAGES/$1"-*.tar.new
}

build_all() { # [--push]
  local role tag image archive builder='' started
  for role in "${ROLES[@]}"; do
    tag=$(tag_of "$role")
    image="$REPOSITORY/$role:$tag"
    archive="$IMAGES/$role-$(sha256sum <<<"$image" | cut -c1-8)-$tag.tar"
    if [ -e "$archive" ] && [ "${1:-}" != --push ]; then
      touch "$archive"
      say "$image: unchanged, not built again"
    else
      [ -n "$builder" ] || prepare_builder
      started=$(now_ms)
      rm -f "$archive"
      build_role "$builder" "$role" "$image" "$archive"
      say "$image: built with $builder in $(seconds_since "$started") s, $(($(stat -c %s "$archive") / 1048576)) MB"
      forget_old_archives "$role"
      [ "${1:-}" != --push ] || push "$builder" "$image"
    fi
    printf '%s_IMAGE=%q\n%s_TAG=%q\n%s_ARCHIVE=%q\n' "${role^^}" "$image" "${role^^}" "$tag" "${role^^}" "$archive" >>"$IMAGES/current.env.new"
  done
}

print_values() { # [--push]
  # shellcheck source=/dev/null
  source "$IMAGES/current.env"
  [ "${1:-}" = --push ] ||
    say "the images are on this machine only; to push them: SVC_TTS_IMAGE_REPOSITORY=registry.example/svc-tts make images PUSH=1"
  say "to install these images, add to helm upgrade --install tts-operator:"
  printf '    --set images.%s.repository=%s --set-string images.%s.tag=%s\n' \
    server "$REPOSITORY/server" server "$SERVER_TAG" operator "$REPOSITORY/operator" operator "$OPERATOR_TAG"
}

main() {
  local push='' values=''
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --push) push=$1 ;;
      --print-values) values=yes ;;
      *) usage >&2 && exit 2 ;;
    esac
    shift
  done
  mkdir -p "$IMAGES"
  hold_lock images
  rm -rf "$IMAGES"/{secrets,base,overlay}.??????
  printf '# Written by images.sh: the latest images.\nIMAGE_REPOSITORY=%q\n' "$REPOSITORY" >"$IMAGES/current.env.new"
  build_all "$push"
  mv "$IMAGES/current.env.new" "$IMAGES/current.env"
  [ -z "$values" ] || print_values "$push"
}

main "$@"
