#!/bin/sh
# A machine of its own: tests/packages/boot.sh FOLDER PACKAGE
#
# The files of this one (or those of SINEW_TEST_ROOT) lie below, and what changes lies above them in
# memory; systemd is its first process. In a mount namespace, which takes all of it along.
set -e
place=$1
mount --make-rprivate /
mount -t tmpfs none "$place"
mkdir "$place/changed" "$place/work" "$place/root"
mount -t overlay none "$place/root" \
    -o "lowerdir=${SINEW_TEST_ROOT:-/},upperdir=$place/changed,workdir=$place/work"
cp "$2" "$place/root/sinew.deb"
# It gets a tree of cgroups of version 2, whatever this machine has.
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
own=/sys/fs/cgroup/sinew-test-$$
mkdir "$own"
echo $$ > "$own/cgroup.procs"
export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
# No more of this machine's services than the log.
setpriv --pdeathsig TERM systemd-nspawn --quiet --register=no --keep-unit --link-journal=no \
    --private-network --console=pipe --directory="$place/root" --boot \
    systemd.unit=basic.target </dev/null && status=0 || status=$?
echo $$ > /sys/fs/cgroup/cgroup.procs
find "$own" -depth -type d -exec rmdir {} +
exit $status
