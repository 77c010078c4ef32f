"""What the hosts of a Sinew graph say to each other over zenoh, for programs in Python.

To read what a host sends, subscribe to ``heard(message_key(...))`` and give the bytes to ``parse``.
What does not bear the number of the key that you expect is misplaced: drop it.

To send commands a program must be a host of the graph: a peer in its spec, with its version. A
command is obeyed by the age of the stamp in it, a time that its receiver has said. So take the
stamps *before* you read what the command is made from::

    with Host(session, "arm", "planner", version) as host:
        stamps = host.stamps()
        command = decide(sensors.read())
        host.send("node", "port", type_hash, command, stamps)

The bytes are little-endian::

    0  "SNW" | 2
    4  u16 echoes | u16 zero
    8  u64 the sender: number(its name)
    16 u64 its life: another number each time that it starts, never 0
    24 u64 number(the key under which it sends)
    32 u64 sequence: 1, 2 and so on within a life, of each key by itself
    40 u64 when it was sent, ns since 1970: for logs
    48 the echoes, 24 bytes each: u64 host | u64 life | u64 stamp, ns
       the message; under @stamp: u64 own stamp, ns | u64 version | for each echo u64 how long the
       stamp was held, ns
       if the hosts share a secret: the HMAC-SHA-256 of all bytes before, 32 bytes
"""

import hashlib
import hmac
import random
import struct
import threading
import time
from typing import NamedTuple

MAGIC = b"SNW\x02"
HEAD = struct.Struct("<4sHHQQQQQ")
ECHO = struct.Struct("<QQQ")
STAMP = struct.Struct("<QQ")


class Echo(NamedTuple):
    """A stamp: whose, in which of its lives, when by its own clock, ns."""

    host: int
    life: int
    stamp_ns: int


class Message(NamedTuple):
    """A message and what is said of it."""

    host: int
    life: int
    key: int
    sequence: int
    sent_unix_ns: int
    echoes: list
    message: bytes


def number(text):
    """The number that stands for a host's name or for a key: FNV-1a, 64 bits."""
    found = 0xCBF29CE484222325
    for byte in text.encode():
        found = (found ^ byte) * 0x100000001B3 % 2**64
    return found


def message_key(graph, host, node, port, type_hash):
    """The key of what a port sends."""
    return f"sinew/{graph}/{host}/{node}/{port}/{type_hash:08x}"


def heard(key):
    """What to subscribe to for a key. Zenoh gives numbers to keys without wildcards, and mixes them
    up after short outages; this pattern gets none."""
    return key.replace("sinew/", "sinew$*/", 1)


def close(data, secret):
    """The bytes with their seal, if the hosts share a secret."""
    return data + hmac.digest(secret, data, hashlib.sha256) if secret else data


def parse(data, secret=None):
    """The message in bytes; ValueError if they are none, or not sealed with the secret."""
    if secret:
        data, seal = data[:-32], data[-32:]
        if not hmac.compare_digest(hmac.digest(secret, data, hashlib.sha256), seal):
            raise ValueError("the bytes are not sealed with the secret of the hosts")
    if len(data) < HEAD.size:
        raise ValueError(f"{len(data)} bytes are no header")
    magic, count, _, host, life, key, sequence, sent_unix_ns = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise ValueError("the bytes do not begin with 'SNW' and 2")
    end = HEAD.size + count * ECHO.size
    if len(data) < end:
        raise ValueError(f"{len(data)} bytes do not hold {count} echoes")
    echoes = [Echo(*it) for it in ECHO.iter_unpack(data[HEAD.size : end])]
    return Message(host, life, key, sequence, sent_unix_ns, echoes, bytes(data[end:]))


def write(host, life, key, sequence, echoes, message):
    """The bytes of a message; host and key by name."""
    numbers = number(host), life, number(key)
    head = HEAD.pack(MAGIC, len(echoes), 0, *numbers, sequence, time.time_ns())
    return head + b"".join(ECHO.pack(*it) for it in echoes) + message


class Host:
    """A host of a graph: says stamps, hears those of others, sends commands. If the hosts of the
    graph have a 'key', ``secret`` is what that file holds."""

    def __init__(self, session, graph, name, version, period_s=0.05, secret=None):
        self._session, self._graph, self._name = session, graph, name
        self._version, self._period_s = version, period_s
        self._secret = secret
        self._life = random.getrandbits(64) | 1
        self._sequences, self._heard = {}, {}
        self._lock, self._over = threading.Lock(), threading.Event()
        self._token = session.liveliness().declare_token(f"sinew/{graph}/{name}/@alive")
        stamps = heard(f"sinew/{graph}/*/@stamp")
        self._subscriber = session.declare_subscriber(stamps, self._hear)
        self._thread = threading.Thread(target=self._say, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        self._subscriber.undeclare()
        self._token.undeclare()

    def stamps(self):
        """The stamps that were heard: for commands that are made from what is read from now on."""
        with self._lock:
            return [echo for echo, _ in self._heard.values()]

    def send(self, node, port, type_hash, message, stamps):
        """Sends a message with stamps that were taken before it was made."""
        self._put(message_key(self._graph, self._name, node, port, type_hash), message, stamps)

    def ask(self, host, node, input, packet, wait_s, stamps):
        """Has an input of a host answer a packet; None if there is no answer."""
        key = f"sinew/{self._graph}/{host}/@call/{self._name}/{node}/{input}"
        sequence = self._next(key)
        wait = struct.pack("<Q", int(wait_s * 1000))
        question = self._sealed(key, sequence, stamps, wait + packet)
        for reply in self._session.get(key, payload=question, timeout=wait_s):
            if reply.ok is not None:
                said = parse(reply.ok.payload.to_bytes(), self._secret)
                is_answer = (said.host, said.key) == (number(host), number(key))
                if is_answer and said.sequence == sequence:
                    return said.message
        return None

    def _sealed(self, key, sequence, stamps, message):
        said = write(self._name, self._life, key, sequence, stamps, message)
        return close(said, self._secret)

    def _next(self, key):
        with self._lock:
            sequence = self._sequences[key] = self._sequences.get(key, 0) + 1
            return sequence

    def _put(self, key, message, stamps):
        import zenoh

        sequence = self._next(key)
        self._session.put(
            key,
            self._sealed(key, sequence, stamps, message),
            congestion_control=zenoh.CongestionControl.DROP,
            priority=zenoh.Priority.INTERACTIVE_HIGH,
            express=True,
        )

    def _hear(self, came):
        key = str(came.key_expr)
        host = number(key.split("/")[2])
        try:
            frame = parse(came.payload.to_bytes(), self._secret)
            stamp_ns, version = STAMP.unpack_from(frame.message)
        except (ValueError, struct.error):
            return
        is_misplaced = (frame.host, frame.key) != (host, number(key))
        if is_misplaced or version != self._version:
            return
        with self._lock:
            self._heard[host] = (Echo(host, frame.life, stamp_ns), time.monotonic_ns())

    def _say(self):
        key = f"sinew/{self._graph}/{self._name}/@stamp"
        while not self._over.is_set():
            now_ns = time.monotonic_ns()
            with self._lock:
                heard = list(self._heard.values())
            held = b"".join(struct.pack("<Q", now_ns - at_ns) for _, at_ns in heard)
            said = STAMP.pack(now_ns, self._version) + held
            self._put(key, said, [echo for echo, _ in heard])
            self._over.wait(self._period_s)
