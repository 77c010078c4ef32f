"""A node of somebody else: one that speaks as rmw_zenoh's docs/design.md and sources say that its
nodes do, by eclipse-zenoh's Python package, with bytes and type hashes by rosbags.

zenoh_peer.py PORT COMMAND ...; the router is at that port. What it finds it says as one JSON object
per line. It ends with its standard input.
"""

import json
import os
import struct
import sys
import threading
import time

import numpy
import zenoh
import zenoh.ext
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_JAZZY)
TRIGGER = "RIHS01_eeff2cd6fa5ad9d27cdf4dec64818317839b62f212a91e6b5304b634b2062c5f"
GET = "RIHS01_bf9803d5c74cf989a5de3e0c2e99444599a627c7ff75f97b8c05b01003675cbc"
SET = "RIHS01_56eed9a67e169f9cb6c1f987bc88f868c14a8fc9f743a263bc734c154015d7e0"
LIST = "RIHS01_3e6062bfbb27bfb8730d4cef2558221f51a11646d78e7bb30a1e83afac3aad9d"
GID = bytes(range(16))
PORT = sys.argv[1]


def say(**what):
    print(json.dumps(what), flush=True)


def session():
    """As rmw_zenoh's default configuration of a session has it."""
    return zenoh.open(zenoh.Config.from_json5(f"""{{
        mode: "peer",
        connect: {{ endpoints: ["tcp/127.0.0.1:{PORT}"], timeout_ms: -1, exit_on_failure: false }},
        listen: {{ endpoints: ["tcp/127.0.0.1:0"] }},
        scouting: {{
            multicast: {{ enabled: false }},
            gossip: {{
                enabled: true, target: {{ peer: ["router"] }},
                autoconnect: {{ peer: ["router", "peer"] }},
                autoconnect_strategy: {{ peer: {{ to_router: "always", to_peer: "greater-zid" }} }},
            }},
        }},
        timestamping: {{ enabled: true }},
    }}"""))


def router():
    """Rmw_zenoh's router: a session of mode router, with its default configuration."""
    with zenoh.open(zenoh.Config.from_json5(f"""{{
        mode: "router", listen: {{ endpoints: ["tcp/127.0.0.1:{PORT}"] }},
        scouting: {{ multicast: {{ enabled: false }}, gossip: {{ enabled: true }} }},
        routing: {{ router: {{ peers_failover_brokering: true }} }},
        timestamping: {{ enabled: true }},
    }}""")):
        say(ready=True)
        time.sleep(3600)


def key(domain, topic, package, name, hash_=None, sort="msg"):
    hash_ = hash_ or STORE.hash_rihs01(f"{package}/{sort}/{name}")
    return f"{domain}/{topic.strip('/')}/{package}::{sort}::dds_::{name}_/{hash_}"


def attachment(number, gid=GID):
    return struct.pack("<qqB16s", number, time.time_ns(), 16, gid)


def read(found):
    """Number, when it was sent, and by whom."""
    bytes_ = bytes(found.attachment)
    number, sent, length, gid = struct.unpack("<qqB16s", bytes_)
    assert length == 16, bytes_
    return number, sent, gid.hex()


def plain(value):
    if isinstance(value, numpy.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if hasattr(value, "__msgtype__"):
        _, fields = STORE.fielddefs[value.__msgtype__]
        return {name: plain(getattr(value, name)) for name, _ in fields}
    return value


def hear(domain, topic, package, name):
    """Says each message, with what goes with it."""
    with session() as own:
        found = own.declare_subscriber(key(domain, topic, package, name))
        for it in found:
            bytes_ = bytes(it.payload)
            number, sent, gid = read(it)
            message = plain(STORE.deserialize_cdr(bytes_, f"{package}/msg/{name}"))
            say(message=message, number=number, gid=gid, head=bytes_[:4].hex(),
                off_s=abs(sent / 1e9 - time.time()))


def late(domain, topic, package, name):
    """As a subscription that is transient local: what was sent before it came."""
    with session() as own:
        found = zenoh.ext.declare_advanced_subscriber(
            own, key(domain, topic, package, name), subscriber_detection=True,
            history=zenoh.ext.HistoryConfig(detect_late_publishers=True, max_samples=1),
            recovery=zenoh.ext.RecoveryConfig(heartbeat=True),
        )
        for it in found:
            message = plain(STORE.deserialize_cdr(bytes(it.payload), f"{package}/msg/{name}"))
            say(message=message, number=read(it)[0])


def twist(domain, topic, linear, angular, how="good"):
    """Sends a twist again and again; how it is not as it should be says `how`."""
    types = STORE.types
    vector = types["geometry_msgs/msg/Vector3"]
    message = types["geometry_msgs/msg/Twist"](
        vector(float(linear), 0.0, 0.0), vector(0.0, 0.0, float(angular))
    )
    bytes_ = bytes(STORE.serialize_cdr(message, "geometry_msgs/msg/Twist", little_endian=True))
    hash_ = "RIHS01_" + 64 * "0" if how == "hash" else None
    gids = {"hash": bytes(16), "gaps": bytes([7] * 16), "late": bytes([8] * 16)}
    with session() as own:
        publisher = own.declare_publisher(key(domain, topic, "geometry_msgs", "Twist", hash_))
        number = 0
        while True:
            number += 3 if how == "gaps" else 1
            with_ = attachment(number, gids.get(how, GID))
            if how == "attachment":
                with_ = with_[:-1]
            elif how == "bytes":
                bytes_ = bytes_[:20]
            if how == "none":
                publisher.put(bytes_)
            else:
                publisher.put(bytes_, attachment=with_)
            if how != "flood":
                time.sleep(0.02)


def tokens(domain):
    """What 'ros2 node list' and 'ros2 topic list' would read: all tokens, now and later."""
    with session() as own:
        seen = own.liveliness().declare_subscriber(f"@ros2_lv/{domain}/**", history=True)
        for it in seen:
            say(token=str(it.key_expr), is_there="PUT" in str(it.kind))


def text(value):
    bytes_ = value.encode() + b"\0"
    return struct.pack("<I", len(bytes_)) + bytes_


def asked(own, where, body, with_=None):
    """Calls a service as rmw_zenoh's client does; the answers."""
    number = 41
    replies = own.get(
        where, payload=b"\0\1\0\0" + body, attachment=with_ or attachment(number),
        target=zenoh.QueryTarget.ALL_COMPLETE, consolidation=zenoh.ConsolidationMode.NONE,
        timeout=3,
    )
    for reply in replies:
        if reply.ok:
            assert read(reply.ok)[::2] == (number, GID.hex()), bytes(reply.ok.attachment)
            yield bytes(reply.ok.payload)


def trigger(domain, service):
    """Asks until somebody answers; first in a way that nobody can read."""
    where = key(domain, service, "std_srvs", "Trigger", TRIGGER, "srv")
    with session() as own:
        while True:
            unread = [*asked(own, where, b"\0", with_=b"no"), *asked(own, where, b"")]
            for bytes_ in asked(own, where, b"\0"):
                (length,) = struct.unpack("<I", bytes_[8:12])
                say(head=bytes_[:4].hex(), success=bytes_[4] == 1, unread=len(unread),
                    message=bytes_[12:11 + length].decode())


def parameters(domain, node):
    """Reads a number, sets it to two others, lists what there is, hears what was set."""
    def where(name, type_, hash_):
        return key(domain, f"{node}/{name}", "rcl_interfaces", type_, hash_, "srv")

    def padded(bytes_, to):
        return bytes_ + bytes(-len(bytes_) % to)

    def value(bytes_):
        # Of get_parameters: how many, the first one's type, truth, whole number, number.
        return struct.unpack_from("<IBBxxqd", bytes_, 4)

    def set_to(number):
        body = padded(struct.pack("<I", 1) + text("gain"), 1)
        body = padded(body + struct.pack("<BB", 3, 0), 8) + struct.pack("<qd", 0, number)
        body = padded(body + text(""), 4) + struct.pack("<IIIII", 0, 0, 0, 0, 0)
        for bytes_ in asked(own, where("set_parameters", "SetParameters", SET), body):
            return bytes_[8] == 1, bytes_[16:-1].decode()
        return None

    def told():
        """Sets it until that is told to all: nobody says when the two have found each other."""
        while True:
            set_to(0.5)
            time.sleep(0.1)
            if event := events.try_recv():
                name = "rcl_interfaces/msg/ParameterEvent"
                event = STORE.deserialize_cdr(bytes(event.payload), name)
                (changed,) = event.changed_parameters
                return [event.node, changed.name, changed.value.double_value]

    with session() as own:
        events = own.declare_subscriber(
            key(domain, "/parameter_events", "rcl_interfaces", "ParameterEvent")
        )
        get = struct.pack("<I", 1) + text("gain")
        while True:
            for bytes_ in asked(own, where("get_parameters", "GetParameters", GET), get):
                names = next(asked(own, where("list_parameters", "ListParameters", LIST),
                                   struct.pack("<IIQ", 0, 0, 0)))
                say(before=value(bytes_)[1::3], set=[set_to(0.5), set_to(2.5)],
                    names=[name for name in ("gain", "lamp") if name.encode() in names],
                    told=told())
                time.sleep(3600)


def end_with_input():
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=end_with_input, daemon=True).start()
    globals()[sys.argv[2]](*sys.argv[3:])
