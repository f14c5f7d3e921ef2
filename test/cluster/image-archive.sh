# shellcheck shell=bash
# Creates images without a container engine. Other scripts source this file.
set -euo pipefail

# image_archive OUT REFERENCE ENTRYPOINT USER FOLDER: writes a docker-archive with one layer, which contains the files of the folder.
# The same files always give the same bytes.
image_archive() {
  local work layer config
  local reproducible=(--sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner)
  work=$(mktemp -d "$(dirname "$1")/archive.XXXXXX")
  (cd "$5" && tar --create --file "$work/layer.tar" "${reproducible[@]}" -- *)
  (
    cd "$work"
    layer=$(sha256sum layer.tar | cut -d' ' -f1)
    printf '{"architecture":"%s","os":"linux","created":"1970-01-01T00:00:00Z","config":{"Entrypoint":["%s"],"User":"%s"},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
      "$(go env GOARCH)" "$3" "$4" "$layer" >config.json
    config=$(sha256sum config.json | cut -d' ' -f1).json
    mv config.json "$config"
    printf '[{"Config":"%s","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$config" "$2" >manifest.json
    tar --create --file "$1" "${reproducible[@]}" -- *
  )
  rm -r "$work"
}
