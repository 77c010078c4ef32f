"""Reads all recordings in a folder with the mcap package and says as JSON what is in them."""

import json
import struct
import sys
from pathlib import Path

from mcap.reader import NonSeekingReader, make_reader
from mcap.stream_reader import StreamReader
from mcap_ros2.decoder import DecoderFactory

MASK = (1 << 64) - 1


def mixed(number):
    z = (number + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


noises = {}


def noise(number):
    if number not in noises:
        data = b"".join(struct.pack("<Q", mixed(number * 128 + at)) for at in range(128))
        small = (number + 2**15) % 2**16 - 2**15
        head = struct.pack("<Qd4f", number, number / 2, *(number + more for more in range(4)))
        noises[number] = head + data + struct.pack("<4h", *[small] * 4)
    return noises[number]


def is_right(message, decoded):
    number = decoded.number
    return (
        message.data == b"\0\1\0\0" + noise(number)
        and decoded.half == number / 2
        and list(decoded.floats) == [number + more for more in range(4)]
        and bytes(decoded.bytes) == noise(number)[32:1056]
    )


def read(path, broken):
    part = {"name": path.name, "numbers": {}, "wrong": 0, "signals": [], "events": [], "whole": True}
    with open(path, "rb") as file:
        factories = [DecoderFactory()]
        if broken:
            reader = NonSeekingReader(file, decoder_factories=factories)
        else:
            reader = make_reader(file, validate_crcs=True, decoder_factories=factories)
        try:
            for row in reader.iter_decoded_messages(log_time_order=False):
                topic, decoded = row.channel.topic, row.decoded_message
                if topic == "/@events":
                    part["numbers"].setdefault(topic, []).append(row.message.sequence)
                    said = [decoded.level, decoded.name, decoded.function, decoded.msg]
                    part["events"].append(said)
                    continue
                part["numbers"].setdefault(topic, []).append(decoded.number)
                if not topic.endswith("/cycle"):
                    part["wrong"] += not is_right(row.message, decoded)
                elif hasattr(decoded.nodes, "source"):
                    part["signals"].append(struct.pack("<3d", *decoded.nodes.source.thirds).hex())
        except Exception as error:
            if not broken:
                raise
            part["whole"], part["error"] = False, repr(error)
    if not broken:
        add_summary(part, path)
    return part


def add_summary(part, path):
    with open(path, "rb") as file:
        reader = make_reader(file)
        part["head"] = next(it.metadata for it in reader.iter_metadata() if it.name == "sinew")
        part["gaps"] = [it.metadata for it in reader.iter_metadata() if it.name == "sinew/gap"]
        part["attachments"] = {it.name: it.data.decode() for it in reader.iter_attachments()}
        summary = reader.get_summary()
        part["schemas"] = sorted({it.name for it in summary.schemas.values()})
        counts = summary.statistics.channel_message_counts
        topics = {summary.channels[id].topic: count for id, count in counts.items()}
        part["counts_agree"] = topics == {k: len(v) for k, v in part["numbers"].items()}
        part["metadata"] = {it.topic: it.metadata for it in summary.channels.values()}
        # Past the index, record by record: all sums are right.
        file.seek(0)
        for _ in StreamReader(file, validate_crcs=True).records:
            pass


folder, broken = Path(sys.argv[1]), "--broken" in sys.argv
parts = [read(path, broken) for path in sorted(folder.glob("*.mcap"))]
json.dump(parts, sys.stdout)
