"""Recordings through the `mcap` package of others, for the tests of `sinew replay --merge`.

    merged.py shift IN OUT NS    the same recording of a host whose clock of day is so much ahead
    merged.py forget IN OUT      the same recording without what it knows of other clocks
    merged.py look FILE SENT RECEIVED CYCLES
                                 what is in a merged file, as JSON: whether its messages stand in
                                 the order of their times; and of the messages of a link, found on
                                 both sides by their bytes, how many were received in a cycle that
                                 was over before they were sent
"""

import hashlib
import json
import sys
from bisect import bisect_right

from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer


def rewrite(source, target, shift_ns, with_clocks):
    with open(source, "rb") as file, open(target, "wb") as out:
        reader, writer = make_reader(file), Writer(out, compression=CompressionType.LZ4)
        writer.start("", "a test")
        for row in reader.iter_metadata():
            data = dict(row.metadata)
            if row.name == "sinew":
                data["clock_offset_ns"] = str(int(data["clock_offset_ns"]) + shift_ns)
            writer.add_metadata(row.name, data)
        for it in reader.iter_attachments():
            writer.add_attachment(it.create_time, it.log_time, it.name, it.media_type, it.data)
        numbers = {}
        for schema, topic, message in reader.iter_messages(log_time_order=False):
            if topic.topic.startswith("/@clock/") and not with_clocks:
                continue
            if topic.id not in numbers:
                of = writer.register_schema(schema.name, schema.encoding, schema.data)
                numbers[topic.id] = writer.register_channel(
                    topic.topic, topic.message_encoding, of, topic.metadata
                )
            writer.add_message(
                numbers[topic.id],
                message.log_time + shift_ns,
                message.data,
                message.publish_time + shift_ns,
                message.sequence,
            )
        writer.finish()


def once(rows):
    """Bytes that stand there once, with their times."""
    times = {}
    for time, data in rows:
        times.setdefault(data, []).append(time)
    return {data: them[0] for data, them in times.items() if len(them) == 1}


def look(file, sent, received, cycles):
    rows, digest, last, in_order = {}, hashlib.sha256(), 0, True
    with open(file, "rb") as stream:
        reader = make_reader(stream)
        for _, topic, message in reader.iter_messages(log_time_order=False):
            in_order &= message.log_time >= last
            last = message.log_time
            rows.setdefault(topic.topic, []).append((message.log_time, message.data))
            digest.update(f"{topic.topic} {message.log_time} {message.publish_time} ".encode())
            digest.update(message.data)
        order = [row.metadata for row in reader.iter_metadata() if row.name == "sinew/order"]
    begun = [time for time, _ in rows.get(cycles, [])]
    there, here = once(rows.get(sent, [])), once(rows.get(received, []))
    found, early = 0, 0
    for data in there.keys() & here.keys():
        at = bisect_right(begun, here[data])
        if at < len(begun):
            found += 1
            early += begun[at] < there[data]
    said = {
        "topics": {name: len(them) for name, them in rows.items()},
        "in_order": in_order,
        "digest": digest.hexdigest(),
        "found": found,
        "early": early,
        "order": json.loads(order[0]["order"]),
    }
    print(json.dumps(said))


match sys.argv[1:]:
    case ["shift", source, target, ns]:
        rewrite(source, target, int(ns), True)
    case ["forget", source, target]:
        rewrite(source, target, 0, False)
    case ["look", file, sent, received, cycles]:
        look(file, sent, received, cycles)
    case _:
        sys.exit(__doc__)
