"""What rosbags, a reader that is not ours, says of types and bytes: a JSON list of [type, bytes in
hexadecimal digits] comes in, a list of what it makes of each goes out."""

import json
import sys

import numpy
from rosbags.typesys import Stores, get_typestore

store = get_typestore(Stores.ROS2_JAZZY)


def plain(value):
    if isinstance(value, numpy.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if hasattr(value, "__msgtype__"):
        # Its constants are no part of what crosses.
        _, fields = store.fielddefs[value.__msgtype__]
        return {name: plain(getattr(value, name)) for name, _ in fields}
    return value


said = []
for name, text in json.load(sys.stdin):
    raw = bytes.fromhex(text)
    message = store.deserialize_cdr(raw, name)
    again = bytes(store.serialize_cdr(message, name, little_endian=True))
    said.append({"hash": store.hash_rihs01(name), "value": plain(message), "bytes": again.hex()})
print(json.dumps(said))
