# shellcheck shell=bash
# Installs missing Debian packages, and creates root file systems of Debian. Source this file after lib.sh.
set -euo pipefail

need_packages() { # LOG PROGRAM=PACKAGE...
  local pair log=$1 missing=()
  shift
  for pair in "$@"; do command -v "${pair%%=*}" >/dev/null || missing+=("${pair##*=}"); done
  [ "${#missing[@]}" -gt 0 ] || return 0
  command -v apt-get >/dev/null || fail "the programs of these Debian packages are not installed: ${missing[*]}" "install them with the package manager of this system, or use Docker or Podman"
  [ "$(id -u)" = 0 ] || fail "these Debian packages are not installed: ${missing[*]}" "install them (sudo apt-get install --no-install-recommends ${missing[*]}) and run this again"
  say "installing Debian packages: ${missing[*]}"
  with_progress "apt-get update" "$log" apt-get update || { show_log "$log" && fail "apt-get update failed" "the log is $log"; }
  DEBIAN_FRONTEND=noninteractive with_progress "apt-get install" "$log" apt-get install --yes --no-install-recommends "${missing[@]}" ||
    { show_log "$log" && fail "apt-get could not install: ${missing[*]}" "the log is $log"; }
}

# bootstrap_debian OUT.tar [OPTION]...: writes a root file system of Debian with mmdebstrap, which receives the options. It contains
# licenses but no documentation, like the slim image of Debian.
bootstrap_debian() {
  local option
  local options=(--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright'
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*')
  for option in Check-Valid-Until Check-Date; do
    [ -z "$(apt-config dump --format '%v' "Acquire::$option")" ] || options+=(--aptopt="Acquire::$option \"$(apt-config dump --format '%v' "Acquire::$option")\"")
  done
  mmdebstrap --quiet --variant=apt "${options[@]}" \
    --customize-hook="rm -rf \"\$1\"/var/lib/apt/lists/* \"\$1\"/var/cache/apt/* \"\$1\"/var/log/apt" "${@:2}" bookworm "$1"
}
