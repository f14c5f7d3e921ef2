# shellcheck shell=bash
# Functions for all scripts of the local cluster: paths, output, progress and locks.
set -euo pipefail

CLUSTER_DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
REPO_DIR="$(cd "$CLUSTER_DIR/../.." && pwd)"
# The path is absolute, because programs with other working directories also use the path.
CACHE=$(realpath --canonicalize-missing --no-symlinks "${SVC_TTS_CACHE:-$HOME/.cache/svc-tts}")
export CLUSTER_DIR REPO_DIR CACHE

say() { printf '==> %s\n' "$*" >&2; }
warn() { printf 'warning: %s\n' "$*" >&2; }

# fail MESSAGE [REMEDY]...: prints the error and each remedy on its own line, and exits
fail() {
  printf 'error: %s\n' "$1" >&2
  shift
  local line
  for line in "$@"; do printf '       %s\n' "$line" >&2; done
  exit 1
}

now_ms() { date +%s%3N; }
seconds_since() { # START_MS
  local ms=$(($(now_ms) - $1))
  printf '%d.%d' $((ms / 1000)) $((ms % 1000 / 100))
}

show_log() { # FILE [LINES]
  [ -s "$1" ] || return 0
  printf -- '--- last lines of %s\n' "$1" >&2
  tail -n "${2:-15}" "$1" | cut -c1-400 | sed 's/^/    /' >&2
}

# with_progress LABEL LOG COMMAND...: runs the command with its output in LOG, and prints the elapsed time every four seconds.
# PROGRESS_DETAIL may name a function that prints details of the progress, for example from the log.
with_progress() {
  local label=$1 log=$2 started status=0 job shown=0
  shift 2
  started=$(now_ms)
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 &
  job=$!
  while sleep 0.2 && kill -0 "$job" 2>/dev/null; do
    if [ $(($(now_ms) - started)) -ge $(((shown + 1) * 4000)) ]; then
      shown=$((($(now_ms) - started) / 4000))
      printf '    %s: %s s%s\n' "$label" "$(seconds_since "$started")" "$("${PROGRESS_DETAIL:-true}" "$log")" >&2
    fi
  done
  wait "$job" || status=$?
  return "$status"
}

free_mib() { # DIRECTORY: if it does not exist, its nearest existing parent is used
  local dir=$1
  while [ ! -e "$dir" ]; do dir=$(dirname "$dir"); done
  df -Pm "$dir" | awk 'NR==2 {print $4}'
}

need_space() { # DIRECTORY MIB WHAT
  local free
  free=$(free_mib "$1")
  [ "$free" -ge "$2" ] || fail "$3 needs about $(($2 / 1024)) GB under $1, and $((free / 1024)).$((free % 1024 * 10 / 1024)) GB are free" \
    "free some space there, or set SVC_TTS_CACHE to a folder on a larger disk"
}

# hold_lock NAME: waits for the lock, and holds it until this shell and every child that inherits file descriptor 9 have ended
hold_lock() {
  mkdir -p "$CACHE/locks"
  exec 9>"$CACHE/locks/$1"
  flock -n 9 || {
    say "waiting for another run, which holds the lock $CACHE/locks/$1"
    flock 9
  }
}

hash_of_files() { # FILE...: prints one hash of the names and contents
  sha256sum "$@" | sha256sum | cut -c1-16
}
