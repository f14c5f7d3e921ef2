# shellcheck shell=bash
# Builds the images of the Containerfile with Docker, Podman or Buildah. Source this file after lib.sh.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=debian.sh
source "$CLUSTER_DIR/debian.sh"

IMAGES="$CACHE/images"
SPACE_MIB=4096

version() { sed -nE 's/^  "version": "([^"]+)".*/\1/p' "$REPO_DIR/package.json"; }
node_version() { sed -nE 's/^    "node": "([0-9][^"]*)".*/\1/p' "$REPO_DIR/package.json"; }

registry_answers() { timeout 5 bash -c '</dev/tcp/registry-1.docker.io/443' 2>/dev/null; }

# The docker program is often installed without a running engine, so this function tests the engine.
choose_builder() {
  local builder=${SVC_TTS_BUILDER:-}
  if [ -z "$builder" ]; then
    if timeout 5 docker info >/dev/null 2>&1; then builder=docker; elif timeout 5 podman info >/dev/null 2>&1; then builder=podman; else builder=buildah; fi
  fi
  case $builder in docker | podman | buildah) echo "$builder" ;; *) fail "SVC_TTS_BUILDER must be docker, podman or buildah, not '$builder'" ;; esac
}

OWN_MOUNTS=()
if unshare --mount true 2>/dev/null; then OWN_MOUNTS=(unshare --mount --propagation private); fi

# Runs Buildah with its own storage in the cache. The storage uses overlay mounts if the kernel allows them, and plain folders
# otherwise. Buildah does not unmount layers. In a separate mount namespace, the mounts end with the process, so that the cache can
# be deleted.
buildah_() {
  BUILDAH_ISOLATION=chroot "${OWN_MOUNTS[@]}" buildah --storage-driver "$(storage_driver)" --root "$IMAGES/storage" --runroot "$IMAGES/storage-run" "$@"
}

storage_driver() {
  [ -s "$IMAGES/storage-driver" ] || {
    local trial
    trial=$(mktemp -d "$IMAGES/overlay.XXXXXX")
    mkdir "$trial"/{lower,upper,work,merged}
    if unshare --mount mount -t overlay overlay -o "lowerdir=$trial/lower,upperdir=$trial/upper,workdir=$trial/work" "$trial/merged" 2>/dev/null; then
      echo overlay
    else
      echo vfs
    fi >"$IMAGES/storage-driver"
    rm -rf "$trial"
  }
  cat "$IMAGES/storage-driver"
}

# Writes the npm registry and the certificate authority of this machine to files for the build.
write_secrets() { # DIRECTORY
  (umask 077 && {
    cat "$HOME/.npmrc" 2>/dev/null || true
    echo
    echo "registry=$(npm config get registry 2>/dev/null)"
  } >"$1/npmrc")
  cat "${NODE_EXTRA_CA_CERTS:-/dev/null}" >"$1/ca.pem"
}

# --- The base image without an image registry: Debian from mmdebstrap, and node and npm from npm packages.

# Unpacks the packages that contain the binary of node for this platform and npm.
unpack_node() { # DIRECTORY
  local node npm
  mkdir -p "$1/usr/local/bin" "$1/usr/local/lib/node_modules"
  (
    cd "$1"
    node=$(npm pack --silent "node-linux-$(node_arch)@$(node_version)")
    npm=$(npm pack --silent "npm@11")
    tar --extract --file "$node" --strip-components=2 --directory usr/local/bin package/bin/node
    tar --extract --file "$npm" --directory usr/local/lib/node_modules
    mv usr/local/lib/node_modules/package usr/local/lib/node_modules/npm
    rm "$node" "$npm"
  )
  chmod 755 "$1/usr/local/bin/node"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$1/usr/local/bin/npm"
}

node_arch() { case $(uname -m) in x86_64) echo x64 ;; aarch64) echo arm64 ;; *) fail "npm has no package with a node binary for $(uname -m)" "use Docker or Podman with an image registry" ;; esac; }

# store_bases BUILDER KEY FOLDER: stores the base images of the folder with the names that the build uses
store_bases() {
  local debian="localhost/svc-tts-debian:$2" node="localhost/svc-tts-node:$2" container
  local path=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  case $1 in
    docker | podman)
      "$1" import --change "ENV $path" --change 'CMD ["/bin/bash"]' "$3/debian.tar" "$debian"
      printf 'FROM %s\nCOPY . /\n' "$debian" | "$1" build --tag "$node" --file - "$3/node"
      ;;
    buildah)
      container=$(buildah_ from scratch)
      buildah_ add --quiet "$container" "$3/debian.tar" /
      buildah_ config --env "$path" --cmd /bin/bash "$container"
      buildah_ commit --quiet "$container" "$debian"
      buildah_ add --quiet "$container" "$3/node" /
      buildah_ commit --quiet --rm "$container" "$node"
      ;;
  esac
}

make_bases() { # BUILDER KEY
  local work
  work=$(mktemp -d "$IMAGES/base.XXXXXX")
  with_progress "creating a Debian base image" "$IMAGES/base.log" bootstrap_debian "$work/debian.tar" ||
    { show_log "$IMAGES/base.log" && fail "mmdebstrap could not create a base image" "the log is $IMAGES/base.log; check that apt-get update works on this machine"; }
  with_progress "downloading node $(node_version)" "$IMAGES/base.log" unpack_node "$work/node" ||
    { show_log "$IMAGES/base.log" && fail "node could not be downloaded from the npm registry" "the log is $IMAGES/base.log"; }
  with_progress "storing the base images" "$IMAGES/base.log" store_bases "$1" "$2" "$work" ||
    { show_log "$IMAGES/base.log" && fail "the base image could not be stored" "the log is $IMAGES/base.log"; }
  rm -rf "$work"
}

# Returns success if the base image of the Containerfile can be used. The engine may use a mirror, so this function also tries a
# pull.
base_can_be_had() { # BUILDER
  local base
  [ "${SVC_TTS_BASE:-}" != debian ] || return 1
  if registry_answers; then return; fi
  [ "$1" != buildah ] || return 1
  base=$(sed -nE 's/^ARG BASE=//p' "$REPO_DIR/Containerfile")
  "$1" image inspect "$base" >/dev/null 2>&1 || timeout 120 "$1" pull "$base" >/dev/null 2>&1 ||
    # Without apt-get, this script cannot build a base image. The build then fails with the error of the engine about the pull.
    ! command -v apt-get >/dev/null
}

has_image() { # BUILDER IMAGE
  case $1 in
    docker | podman) "$1" image inspect "$2" ;;
    buildah) buildah_ inspect --type image "$2" ;;
  esac >/dev/null 2>&1
}

# base_arguments BUILDER: prints the --build-arg flags for the base image, one per line
base_arguments() {
  local key
  if base_can_be_had "$1"; then return; fi
  key="bookworm-node$(node_version)"
  if ! has_image "$1" "localhost/svc-tts-node:$key"; then
    say "no image registry is reachable: building the base image from Debian and npm packages"
    need_packages "$IMAGES/apt.log" mmdebstrap=mmdebstrap npm=npm
    make_bases "$1" "$key" >&2
  fi
  printf '%s\n' --build-arg "BASE=localhost/svc-tts-node:$key" --build-arg "RUNTIME=localhost/svc-tts-debian:$key"
}

# build_role BUILDER ROLE IMAGE ARCHIVE [OPTION]...: builds the image and writes it as a docker-archive. The builder receives the options.
build_role() {
  local builder=$1 role=$2 image=$3 archive=$4 secrets common lines base=()
  secrets=$(mktemp -d "$IMAGES/secrets.XXXXXX")
  write_secrets "$secrets"
  lines=$(base_arguments "$builder") || exit 1
  [ -z "$lines" ] || mapfile -t base <<<"$lines"
  common=(--target "$role" --tag "$image" --file "$REPO_DIR/Containerfile" --build-arg "VERSION=$(version)" "${base[@]}" "${@:5}"
    --secret "id=npmrc,src=$secrets/npmrc" --secret "id=ca,src=$secrets/ca.pem")
  case $builder in
    docker) DOCKER_BUILDKIT=1 with_progress "building $role" "$IMAGES/$role.log" docker build "${common[@]}" "$REPO_DIR" ;;
    podman) with_progress "building $role" "$IMAGES/$role.log" podman build --layers "${common[@]}" "$REPO_DIR" ;;
    buildah) with_progress "building $role" "$IMAGES/$role.log" buildah_ build --layers "${common[@]}" "$REPO_DIR" ;;
  esac || { rm -rf "$secrets" && show_log "$IMAGES/$role.log" 30 && fail "the $role image could not be built" "the log is $IMAGES/$role.log"; }
  rm -rf "$secrets"
  case $builder in
    docker) docker save --output "$archive.new" "$image" ;;
    podman) podman save --quiet --format docker-archive --output "$archive.new" "$image" ;;
    buildah) buildah_ push --quiet "$image" "docker-archive:$archive.new:$image" ;;
  esac
  mv "$archive.new" "$archive"
}

prepare_builder() {
  builder=$(choose_builder)
  need_space "$IMAGES" "$SPACE_MIB" "building images"
  [ "$builder" != buildah ] || need_packages "$IMAGES/apt.log" buildah=buildah
}
