#!/usr/bin/env bash
# Three networks on one machine, one for each host of graphs/cell, joined by a bridge: to run it as
# on three machines, and to pull cables. Needs root, 'ip' and (for 'worse') 'tc' with netem.
#
#   sudo graphs/cell/netns.sh up
#   sudo graphs/cell/netns.sh in cell   sinew run graphs/cell/cell.yaml --host cell
#   sudo graphs/cell/netns.sh in office sinew run graphs/cell/cell.yaml --host office
#   sudo graphs/cell/netns.sh in hall   sinew run graphs/cell/cell.yaml --host hall
#   sudo graphs/cell/netns.sh cut office           # pulls its cable
#   sudo graphs/cell/netns.sh mend office
#   sudo graphs/cell/netns.sh worse office delay 40ms 20ms loss 5%
#   sudo graphs/cell/netns.sh better office
#   sudo graphs/cell/netns.sh down
set -euo pipefail

# Tests set another word, to have networks of their own.
word=${SINEW_NETNS:-sinew}
hosts=(cell office hall)
# TEST-NET-2 of RFC 5737: nobody routes it.
net=198.51.100

usage() {
    sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}

number_of() { # number_of HOST
    for at in "${!hosts[@]}"; do
        if [ "${hosts[at]}" = "$1" ]; then
            echo $((at + 1))
            return
        fi
    done
    echo "there is no host '$1'; expected one of ${hosts[*]}" >&2
    exit 2
}

up() {
    down
    ip netns add "$word-lan"
    ip -n "$word-lan" link add bridge type bridge
    ip -n "$word-lan" link set bridge up
    for host in "${hosts[@]}"; do
        number=$(number_of "$host")
        ip netns add "$word-$host"
        ip -n "$word-lan" link add "$host" type veth peer name eth0 netns "$word-$host"
        ip -n "$word-lan" link set "$host" master bridge up
        ip -n "$word-$host" address add "$net.$number/24" dev eth0
        ip -n "$word-$host" link set eth0 up
        ip -n "$word-$host" link set lo up
    done
}

down() {
    for host in "${hosts[@]}" lan; do
        if [ -e "/run/netns/$word-$host" ]; then ip netns delete "$word-$host"; fi
    done
}

case ${1:-} in
up) up ;;
down) down ;;
in)
    host=${2:-}
    number_of "$host" >/dev/null
    shift 2
    export CELL="$net.1:7447" OFFICE="$net.2:7447"
    exec ip netns exec "$word-$host" "$@"
    ;;
cut | mend)
    number_of "${2:-}" >/dev/null
    ip -n "$word-lan" link set "$2" "$([ "$1" = cut ] && echo down || echo up)"
    ;;
worse)
    host=${2:-}
    number_of "$host" >/dev/null
    shift 2
    tc -n "$word-lan" qdisc replace dev "$host" root netem "$@" ||
        { echo "'tc' refused that; does this kernel have netem (module sch_netem)?" >&2; exit 1; }
    ;;
better)
    number_of "${2:-}" >/dev/null
    tc -n "$word-lan" qdisc delete dev "$2" root
    ;;
*) usage ;;
esac
