# shellcheck shell=bash
# Runs the demonstration of make up: creates a TtsDeployment in namespace demo, waits until it is ready, and
# requests speech through its Service. install.sh sources this file.
set -euo pipefail

DEMO=demo
SENTENCE="We will meet at the station tomorrow morning at nine."
READY_WITHIN_S=240
SPEECH="$REPO_DIR/speech.wav"
FORWARDED_PORT=8000

apply_secret() { # NAME FILE [NAMESPACE]
  kubectl --namespace "${3:-$DEMO}" create secret generic "$1" --from-file="$2" --dry-run=client --output yaml | kubectl apply --server-side --filename - >/dev/null
}

# Creates an API key once, so that a command that was printed earlier stays valid.
make_api_key() {
  [ -s "$DEVELOPMENT/api-key" ] && [ -s "$DEVELOPMENT/keys.yaml" ] && return
  rm -f "$DEVELOPMENT/keys.yaml"
  (umask 077 && "${SVC_TTS[@]}" keys create --name demo --file "$DEVELOPMENT/keys.yaml" 2>/dev/null | grep -oE 'svc_[A-Za-z0-9]+' | head -n 1 >"$DEVELOPMENT/api-key")
}

apply_demo() {
  kubectl create namespace "$DEMO" --dry-run=client --output yaml | kubectl apply --server-side --filename - >/dev/null
  "${SVC_TTS[@]}" license issue --key "$DEVELOPMENT/private.jwk" --licensee "$(id -un)@$(uname -n)" --days 30 >"$DEVELOPMENT/license.jwt"
  make_api_key
  apply_secret tts-license "$DEVELOPMENT/license.jwt"
  apply_secret tts-keys "$DEVELOPMENT/keys.yaml"
  apply_secret demo-key apiKey="$DEVELOPMENT/api-key" "$NAMESPACE" # helm test reads this Secret.
  kubectl --namespace "$DEMO" apply --filename "$REPO_DIR/config/samples/tts-deployment.yaml" >/dev/null
}

conditions() {
  kubectl --namespace "$DEMO" get ttsd demo \
    --output 'jsonpath={range .status.conditions[*]}{.type} {.status} {.reason}{"\n"}{end}' 2>/dev/null || true
}

# Prints one line with the conditions that have an unexpected status. Reconciling is omitted, because it repeats the reason of
# another condition.
unexpected_conditions() {
  local type status reason all unexpected=()
  all=$(conditions)
  [ -n "$all" ] || { echo "no status yet" && return; }
  while read -r type status reason; do
    case $type=$status in
      Reconciling=* | Stalled=False | RevisionOutdated=False) ;;
      Stalled=* | RevisionOutdated=*) unexpected+=("$type=$status ($reason)") ;;
      *=True) ;;
      *) unexpected+=("$type=$status ($reason)") ;;
    esac
  done <<<"$all"
  [ "${#unexpected[@]}" -gt 0 ] || unexpected=("every condition is as expected")
  echo "${unexpected[*]}"
}

# Requires that the condition belongs to the current generation. An older condition may be True for earlier settings.
is_ready() {
  [ "$(kubectl --namespace "$DEMO" get ttsd demo \
    --output 'jsonpath={.metadata.generation} {.status.conditions[?(@.type=="Ready")].observedGeneration} {.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null)" = \
    "$(kubectl --namespace "$DEMO" get ttsd demo --output 'jsonpath={.metadata.generation} {.metadata.generation} True')" ]
}

await_ready() {
  local seen='' now started=$SECONDS
  say "waiting for TtsDeployment $DEMO/demo"
  until is_ready; do
    now=$(unexpected_conditions)
    if [ "$now" != "$seen" ]; then
      printf '    %3d s  %s\n' $((SECONDS - started)) "$now" >&2
      seen=$now
    fi
    [ $((SECONDS - started)) -lt "$READY_WITHIN_S" ] || explain_unready
    sleep 1
  done
  printf '    %3d s  ready; %s\n' $((SECONDS - started)) "$(unexpected_conditions)" >&2
}

explain_unready() {
  kubectl --namespace "$DEMO" get ttsd,ttsmp,pods >&2 || true
  kubectl --namespace "$DEMO" get ttsd demo --output 'jsonpath={range .status.conditions[*]}{.type}={.status}: {.message}{"\n"}{end}' >&2 || true
  fail "TtsDeployment $DEMO/demo was not ready within $READY_WITHIN_S s" "the conditions above state the cause; for details, run kubectl -n $DEMO describe ttsd demo"
}

# Sets BASE_URL, the URL of the Service for this machine. This machine routes to the Services of the local node. For other
# clusters, the function forwards a port.
open_service() {
  if [ "$TARGET" = node ]; then
    BASE_URL="http://$(kubectl --namespace "$DEMO" get service demo-api --output 'jsonpath={.spec.clusterIP}'):8000"
    return
  fi
  BASE_URL="http://127.0.0.1:$FORWARDED_PORT"
  kubectl --namespace "$DEMO" port-forward service/demo-api "$FORWARDED_PORT:8000" >"$CACHE/port-forward.log" 2>&1 9>&- &
  FORWARD=$!
  trap 'kill "$FORWARD" 2>/dev/null || true' EXIT
  local deadline=$((SECONDS + 15))
  until timeout 1 bash -c "</dev/tcp/127.0.0.1/$FORWARDED_PORT" 2>/dev/null; do
    { kill -0 "$FORWARD" 2>/dev/null && [ "$SECONDS" -lt "$deadline" ]; } ||
      { show_log "$CACHE/port-forward.log" && fail "port $FORWARDED_PORT could not be forwarded to the Service" "check that no other program uses port $FORWARDED_PORT on this machine"; }
    sleep 0.2
  done
}

curl_line() { # Prints the curl command for the user.
  # shellcheck disable=SC2016
  printf 'curl -sS --fail-with-body %s/v1/svc-tts -H "Authorization: Bearer $(cat %q)" -H "Content-Type: application/json" -H "Accept: audio/wav" -d '\''%s'\'' -o speech.wav\n' \
    "$BASE_URL" "$DEVELOPMENT/api-key" "{\"modelId\":\"mist\",\"speaker\":\"alan\",\"text\":\"$SENTENCE\"}"
}

speak() {
  apply_demo
  await_ready
  phase "demo ready"
  open_service
  command -v curl >/dev/null || fail "curl is not installed" "install it with apt-get install curl"
  # The script prints this command for the user, so this run also tests the command.
  (cd "$REPO_DIR" && bash -c "$(curl_line)") || fail "the request for speech failed (the response may be in $SPEECH)" "the logs are in kubectl -n $DEMO logs -l tts.svc.dev/deployment=demo"
  [ "$(head -c 4 "$SPEECH")" = RIFF ] || fail "the response is not a WAV file: $(head -c 200 "$SPEECH")"
  phase "sentence"
  say "speech.wav: $(($(stat -c %s "$SPEECH") / 1024)) kB, \"$SENTENCE\""
  kubectl --namespace "$DEMO" get ttsd >&2
}

next_steps() {
  echo
  echo "export KUBECONFIG=$(printf '%q' "$KUBECONFIG")"
  [ -z "${TOOLS:-}" ] || echo "export PATH=$(printf '%q' "$TOOLS"):\$PATH   # kubectl and helm"
  [ "$TARGET" = node ] || echo "kubectl -n $DEMO port-forward service/demo-api $FORWARDED_PORT:8000 &"
  curl_line
}
