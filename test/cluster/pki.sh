#!/usr/bin/env bash
# Creates the certificate authorities, certificates and kubeconfigs of a cluster with openssl.
set -euo pipefail

usage() {
  cat <<'T'
usage: pki.sh DIR SERVER_URL API_SERVER_ADDRESS [NODE=ADDRESS]...
  Writes keys and certificates (30 days) to DIR: of the certificate authorities, the API server, the service accounts and all
  clients. Also writes a kubeconfig for each client: admin, controller-manager, scheduler, kube-proxy and node-NODE.
T
}

DAYS=30

new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }

authority() { # NAME SUBJECT
  new_key "$1"
  openssl req -x509 -new -key "$1.key" -subj "/CN=$2" -days "$DAYS" -out "$1.crt"
}

certificate() { # NAME SUBJECT AUTHORITY EXTENDED_KEY_USAGE [SUBJECT_ALTERNATIVE_NAMES]
  new_key "$1"
  {
    echo "keyUsage=digitalSignature,keyEncipherment"
    echo "extendedKeyUsage=$4"
    [ -z "${5:-}" ] || echo "subjectAltName=$5"
  } >"$1.ext"
  openssl req -new -key "$1.key" -subj "$2" |
    openssl x509 -req -CA "$3.crt" -CAkey "$3.key" -set_serial "0x$(openssl rand -hex 8)" -days "$DAYS" -extfile "$1.ext" -out "$1.crt" 2>"$1.log" ||
    { cat "$1.log" >&2 && exit 1; }
  rm "$1.ext" "$1.log"
}

kubeconfig() { # NAME
  cat >"$1.kubeconfig" <<Y
apiVersion: v1
kind: Config
current-context: svc-tts
clusters: [{name: svc-tts, cluster: {server: "$SERVER_URL", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$1.crt"), client-key-data: $(base64 -w0 "$1.key")}}]
contexts: [{name: svc-tts, context: {cluster: svc-tts, user: $1}}]
Y
}

client() { # NAME SUBJECT
  certificate "$1" "$2" ca clientAuth
  kubeconfig "$1"
}

main() {
  case ${1:-} in -h | --help | '') usage && exit 0 ;; esac
  local directory=$1 address=$3 node name
  SERVER_URL=$2
  shift 3
  umask 077
  mkdir -p "$directory"
  cd "$directory"
  authority ca svc-tts-cluster-ca
  authority front-proxy-ca svc-tts-cluster-front-proxy-ca
  new_key service-account
  openssl pkey -in service-account.key -pubout -out service-account.pub
  certificate apiserver /CN=kube-apiserver ca serverAuth \
    "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,DNS:localhost,IP:10.96.0.1,IP:127.0.0.1,IP:$address"
  certificate apiserver-kubelet-client /O=system:masters/CN=apiserver-kubelet-client ca clientAuth
  certificate front-proxy /CN=front-proxy-client front-proxy-ca clientAuth
  client admin /O=system:masters/CN=admin
  client controller-manager /CN=system:kube-controller-manager
  client scheduler /CN=system:kube-scheduler
  client kube-proxy /CN=system:kube-proxy
  for node in "$@"; do
    name=${node%%=*}
    certificate "node-$name" "/O=system:nodes/CN=system:node:$name" ca clientAuth,serverAuth "DNS:$name,IP:${node##*=}"
    kubeconfig "node-$name"
  done
}

main "$@"
