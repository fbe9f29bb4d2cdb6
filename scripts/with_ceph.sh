#!/bin/bash
# Run a command beside Ceph's S3 gateway on loopback:  scripts/with_ceph.sh make unit
#
# One monitor, one OSD whose objects are in memory, one gateway: a few hundred MB, gone at the end.
# Installs Debian's packages if they are missing, which needs root. The command finds the server in
# COREDATA_TEST_S3 (URL), AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
set -euo pipefail

if ! command -v radosgw >/dev/null || ! command -v ceph-osd >/dev/null; then
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
        radosgw ceph-mon ceph-osd
fi

home=$(mktemp -d "${TMPDIR:-/tmp}/coredata-ceph.XXXXXX")
mkdir -p "$home"/{mon,osd,gateway,run,log}
finish() {
    # The OSD waits for a monitor that is gone, and nothing is worth saving.
    for file in "$home"/run/*.pid; do
        [ -e "$file" ] && kill -9 "$(cat "$file")" 2>/dev/null || true
    done
    rm -rf "$home"
}
trap finish EXIT

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
port=$(free_port)
monitor_v2=$(free_port)
monitor_v1=$(free_port)
cluster=$(cat /proc/sys/kernel/random/uuid)
export CEPH_CONF=$home/ceph.conf
export AWS_ACCESS_KEY_ID=testkey AWS_SECRET_ACCESS_KEY=testsecretkey
export COREDATA_TEST_S3=http://127.0.0.1:$port

# tcp_nodelay: without it each small answer takes 44 ms. mon data avail crit: the monitor stops on a
# disk that is nearly full.
cat >"$CEPH_CONF" <<END
[global]
fsid = $cluster
mon host = [v2:127.0.0.1:$monitor_v2,v1:127.0.0.1:$monitor_v1]
mon initial members = a
mon allow pool size one = true
mon data avail crit = 1
mon data = $home/mon
public addr = 127.0.0.1
cluster addr = 127.0.0.1
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd crush chooseleaf type = 0
osd objectstore = memstore
osd memory target = 939524096
osd data = $home/osd
memstore device bytes = 4294967296
run dir = $home/run
log file = $home/log/\$name.log
admin socket = $home/run/\$name.asok
pid file = $home/run/\$name.pid
keyring = $home/keyring
[client.rgw.a]
rgw data = $home/gateway
rgw frontends = beast endpoint=127.0.0.1:$port tcp_nodelay=1
END

key() { ceph-authtool "$home/keyring" --gen-key "$@" >/dev/null; }
ceph-authtool --create-keyring "$home/keyring" >/dev/null
key -n mon. --cap mon 'allow *'
key -n client.admin --cap mon 'allow *' --cap osd 'allow *'
key -n osd.0 --cap mon 'allow profile osd' --cap osd 'allow *'
key -n client.rgw.a --cap mon 'allow rwx' --cap osd 'allow rwx'

{
    monmaptool --create --fsid "$cluster" \
        --addv a "[v2:127.0.0.1:$monitor_v2,v1:127.0.0.1:$monitor_v1]" "$home/monmap"
    ceph-mon --mkfs -i a --monmap "$home/monmap" --keyring "$home/keyring"
    ceph-mon -i a
    osd=$(cat /proc/sys/kernel/random/uuid)
    ceph osd new "$osd"
    ceph-osd -i 0 --mkfs --osd-uuid "$osd"
    ceph-osd -i 0
    radosgw -n client.rgw.a
    radosgw-admin user create --uid=test --display-name=test \
        --access-key="$AWS_ACCESS_KEY_ID" --secret="$AWS_SECRET_ACCESS_KEY"
} >"$home/log/start" 2>&1 || {
    cat "$home/log/start"
    exit 1
}
"$@"
