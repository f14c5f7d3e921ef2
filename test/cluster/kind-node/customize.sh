#!/usr/bin/env bash
# customize.sh ROOT: turns a Debian root into a node of kind, as the Dockerfile images/base of kind does. mmdebstrap runs it.
#   KIND_MODULE   the source folder of kind, which has the entrypoint, the units and the settings
#   PROGRAMS      the folder of kubelet, kubectl and the programs of the control plane
#   KUBEADM       the path of kubeadm
#   KUBERNETES    the version, such as v1.36.3
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source-path=SCRIPTDIR source=../image-archive.sh
source "$HERE/../image-archive.sh"
ROOT=$1

take_from_kind() {
  local from="$KIND_MODULE/images/base/files"
  cp -R --no-preserve=mode "$from"/etc "$from"/kind "$ROOT/"
  install -m 755 "$from/usr/local/bin/entrypoint" "$ROOT/usr/local/bin/"
  chmod 755 "$ROOT"/kind/bin/*
  cp -R --no-preserve=mode "$HERE"/files/. "$ROOT/"
}

put_programs() {
  install -m 755 "$PROGRAMS"/{kubelet,kubectl} "$KUBEADM" "$ROOT/usr/bin/"
  ln -sf /usr/bin/containerd "$ROOT/usr/local/bin/containerd"
  mkdir -p "$ROOT/opt/cni" "$ROOT/etc/kubernetes/manifests"
  ln -sfn /usr/lib/cni "$ROOT/opt/cni/bin"
  echo "$KUBERNETES" >"$ROOT/kind/version"
  # In some sandboxes, root has no CAP_SYS_RESOURCE, so that no process may lower its OOM score.
  sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' "$ROOT/etc/containerd/config.toml"
  # shellcheck disable=SC2016
  chroot "$ROOT" bash -euo pipefail -c 'ctr oci spec | jq "$1" >/etc/containerd/cri-base.json' - \
    '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)'
}

choose_units() {
  rm -f "$ROOT"/lib/systemd/system/{multi-user,local-fs,basic}.target.wants/* "$ROOT"/etc/systemd/system/*.wants/* \
    "$ROOT"/lib/systemd/system/sockets.target.wants/*{udev,initctl}* "$ROOT"/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service
  echo ReadKMsg=no >>"$ROOT/etc/systemd/journald.conf"
  ln -sf /usr/lib/systemd/systemd "$ROOT/sbin/init"
  chroot "$ROOT" systemctl enable kubelet.service containerd.service undo-mount-hacks.service import-images.service
  chroot "$ROOT" systemctl mask systemd-binfmt.service
}

# Copies the programs that kube-proxy calls, and their libraries, into the folder of its image.
packet_programs() { # FOLDER
  local name
  mkdir -p "$1/usr/sbin"
  cp "$ROOT"/usr/sbin/{xtables-nft-multi,nft,conntrack} "$1/usr/sbin/"
  for name in {iptables,ip6tables}{,-save,-restore}; do ln -s xtables-nft-multi "$1/usr/sbin/$name"; done
  # shellcheck disable=SC2016
  chroot "$ROOT" bash -c 'ldd /usr/sbin/{xtables-nft-multi,nft,conntrack} /usr/lib/*/xtables/*.so' | grep -oE '/lib[^ ]+[0-9] ' | sort -u |
    (cd "$ROOT" && sed 's/^/./' | xargs cp --dereference --parents --target-directory "$1" && cp --recursive --parents --target-directory "$1" usr/lib/*/xtables)
}

# image NAME PROGRAM: writes the archive of an image with this program. kubeadm uses the image by this name.
image() {
  local folder program=$2
  folder=$(mktemp -d)
  install -D -m 755 "$PROGRAMS/$program" "$folder/usr/local/bin/$program"
  [ "$program" != coredns ] || ln "$folder/usr/local/bin/coredns" "$folder/coredns"
  [ "$program" != kube-proxy ] || packet_programs "$folder"
  image_archive "$ROOT/kind/images/$program.tar" "$1" "/usr/local/bin/$program" 0 "$folder"
  rm -r "$folder"
}

put_images() {
  local name program
  mkdir -p "$ROOT/kind/images"
  while read -r name; do
    program=${name##*/}
    program=${program%%:*}
    # The image of pause needs the name in the containerd settings of kind, which differs from the name that kubeadm lists.
    [ "$program" != pause ] || name=$(sed -nE 's/^ *sandbox_image = "(.*)"/\1/p' "$ROOT/etc/containerd/config.toml")
    image "$name" "$program"
  done < <("$KUBEADM" config images list --kubernetes-version "$KUBERNETES")
}

take_from_kind
put_programs
choose_units
put_images
rm -rf "$ROOT"/var/lib/apt/lists/* "$ROOT"/var/cache/apt/*
