"""A node of somebody else: Cyclone DDS, by its own Python package, with types from IDL.

peer.py DOMAIN COMMAND ...; what it finds it says as one JSON object per line. It ends with its
standard input.
"""

import json
import os
import sys
import threading
import time
import typing

os.environ["CYCLONEDDS_URI"] = """<CycloneDDS xmlns="https://cdds.io/config"><Domain Id="any">
<General><Interfaces><NetworkInterface address="127.0.0.1"/></Interfaces>
<AllowMulticast>false</AllowMulticast></General>
<Discovery><ParticipantIndex>auto</ParticipantIndex>
<MaxAutoParticipantIndex>11</MaxAutoParticipantIndex><SPDPInterval>500ms</SPDPInterval>
<LeaseDuration>60s</LeaseDuration>
<Peers><Peer Address="127.0.0.1"/></Peers></Discovery></Domain></CycloneDDS>"""

from dataclasses import asdict, dataclass, is_dataclass

from cyclonedds.builtin import (
    BuiltinDataReader,
    BuiltinTopicDcpsPublication,
    BuiltinTopicDcpsSubscription,
)
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, bounded_str, float64, int32, sequence, uint8, uint32
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration


@dataclass
class Time(IdlStruct, typename="builtin_interfaces.msg.dds_.Time_"):
    sec: int32
    nanosec: uint32


@dataclass
class Header(IdlStruct, typename="std_msgs.msg.dds_.Header_"):
    stamp: Time
    frame_id: str


@dataclass
class JointState(IdlStruct, typename="sensor_msgs.msg.dds_.JointState_"):
    header: Header
    name: sequence[str]
    position: sequence[float64]
    velocity: sequence[float64]
    effort: sequence[float64]


@dataclass
class Vector3(IdlStruct, typename="geometry_msgs.msg.dds_.Vector3_"):
    x: float64
    y: float64
    z: float64


@dataclass
class Quaternion(IdlStruct, typename="geometry_msgs.msg.dds_.Quaternion_"):
    x: float64
    y: float64
    z: float64
    w: float64


@dataclass
class Point(IdlStruct, typename="geometry_msgs.msg.dds_.Point_"):
    x: float64
    y: float64
    z: float64


@dataclass
class Pose(IdlStruct, typename="geometry_msgs.msg.dds_.Pose_"):
    position: Point
    orientation: Quaternion


@dataclass
class PoseStamped(IdlStruct, typename="geometry_msgs.msg.dds_.PoseStamped_"):
    header: Header
    pose: Pose


@dataclass
class Twist(IdlStruct, typename="geometry_msgs.msg.dds_.Twist_"):
    linear: Vector3
    angular: Vector3


@dataclass
class TwistStamped(IdlStruct, typename="geometry_msgs.msg.dds_.TwistStamped_"):
    header: Header
    twist: Twist


@dataclass
class Duration(IdlStruct, typename="builtin_interfaces.msg.dds_.Duration_"):
    sec: int32
    nanosec: uint32


@dataclass
class JointTrajectoryPoint(IdlStruct, typename="trajectory_msgs.msg.dds_.JointTrajectoryPoint_"):
    positions: sequence[float64]
    velocities: sequence[float64]
    accelerations: sequence[float64]
    effort: sequence[float64]
    time_from_start: Duration


@dataclass
class JointTrajectory(IdlStruct, typename="trajectory_msgs.msg.dds_.JointTrajectory_"):
    header: Header
    joint_names: sequence[str]
    points: sequence[JointTrajectoryPoint]


@dataclass
class Transform(IdlStruct, typename="geometry_msgs.msg.dds_.Transform_"):
    translation: Vector3
    rotation: Quaternion


@dataclass
class TransformStamped(IdlStruct, typename="geometry_msgs.msg.dds_.TransformStamped_"):
    header: Header
    child_frame_id: str
    transform: Transform


@dataclass
class TFMessage(IdlStruct, typename="tf2_msgs.msg.dds_.TFMessage_"):
    transforms: sequence[TransformStamped]


@dataclass
class KeyValue(IdlStruct, typename="diagnostic_msgs.msg.dds_.KeyValue_"):
    key: str
    value: str


@dataclass
class DiagnosticStatus(IdlStruct, typename="diagnostic_msgs.msg.dds_.DiagnosticStatus_"):
    level: uint8
    name: str
    message: str
    hardware_id: str
    values: sequence[KeyValue]


@dataclass
class DiagnosticArray(IdlStruct, typename="diagnostic_msgs.msg.dds_.DiagnosticArray_"):
    header: Header
    status: sequence[DiagnosticStatus]


@dataclass
class Image(IdlStruct, typename="sensor_msgs.msg.dds_.Image_"):
    header: Header
    height: uint32
    width: uint32
    encoding: str
    is_bigendian: uint8
    step: uint32
    data: sequence[uint8]


@dataclass
class Gid(IdlStruct, typename="rmw_dds_common.msg.dds_.Gid_"):
    data: array[uint8, 16]


@dataclass
class NodeEntitiesInfo(IdlStruct, typename="rmw_dds_common.msg.dds_.NodeEntitiesInfo_"):
    node_namespace: bounded_str[256]
    node_name: bounded_str[256]
    reader_gid_seq: sequence[Gid]
    writer_gid_seq: sequence[Gid]


@dataclass
class ParticipantEntitiesInfo(
    IdlStruct, typename="rmw_dds_common.msg.dds_.ParticipantEntitiesInfo_"
):
    gid: Gid
    node_entities_info_seq: sequence[NodeEntitiesInfo]


def qos(depth=10, reliable=True, kept=False, typehash=None):
    """As rclcpp would have it, in the representation that ROS uses."""
    policies = [
        Policy.Reliability.Reliable(duration(milliseconds=100))
        if reliable
        else Policy.Reliability.BestEffort,
        Policy.Durability.TransientLocal if kept else Policy.Durability.Volatile,
        Policy.History.KeepLast(depth),
        Policy.DataRepresentation(use_cdrv0_representation=True),
    ]
    if typehash:
        policies.append(Policy.Userdata(f"typehash={typehash};".encode()))
    return Qos(*policies)


def say(**what):
    print(json.dumps(what), flush=True)


def joint_states(participant, topic, seconds):
    """Counts for so long; the first position of each message numbers them."""
    reader = DataReader(participant, Topic(participant, topic, JointState), qos=qos(depth=10000))
    begun, first, last, count, gaps, names, stamps = None, None, None, 0, [], [], []
    while begun is None or time.monotonic() - begun < float(seconds):
        for message in reader.take_iter(timeout=duration(milliseconds=200)):
            number = message.position[0]
            if begun is None:
                begun, first, names = time.monotonic(), number, message.name
                say(heard=number, names=names, velocity=message.velocity, effort=message.effort,
                    frame_id=message.header.frame_id)
            elif number != last + 1:
                gaps.append([last, number, time.time()])
            last, count = number, count + 1
            stamps.append(message.header.stamp.sec + message.header.stamp.nanosec / 1e9)
            if time.monotonic() - begun >= float(seconds):
                break
    say(count=count, first=first, last=last, gaps=gaps, off_s=abs(stamps[-1] - time.time()),
        rising=all(a <= b for a, b in zip(stamps, stamps[1:])))


def twist(participant, topic, linear, angular, reliable="reliable", hash_=None, hz="50"):
    """Sends a twist again and again."""
    how = qos(reliable=reliable == "reliable", typehash=hash_)
    writer = DataWriter(participant, Topic(participant, topic, Twist), qos=how)
    message = Twist(Vector3(float(linear), 0.0, 0.0), Vector3(0.0, 0.0, float(angular)))
    say(ready=True)
    while True:
        writer.write(message)
        if float(hz) > 0:
            time.sleep(1 / float(hz))


def built(ty, value):
    """A value of a type of the wire, from one of JSON."""
    if is_dataclass(ty):
        types = typing.get_type_hints(ty)
        return ty(**{name: built(types[name], part) for name, part in value.items()})
    if isinstance(value, list):
        (part,) = typing.get_args(ty)
        return [built(part, it) for it in value]
    return value


def send(participant, topic, ty, *values):
    """Sends these messages, given as JSON, one after the other, again and again."""
    ty = globals()[ty]
    writer = DataWriter(participant, Topic(participant, topic, ty), qos=qos())
    messages = [built(ty, json.loads(value)) for value in values]
    while True:
        for message in messages:
            writer.write(message)
            time.sleep(0.02)


def hear(participant, topic, ty):
    """Says each message as it is."""
    for message in read(participant, topic, globals()[ty]):
        say(**asdict(message))


def read(participant, topic, ty, depth=10, kept=False):
    reader = DataReader(
        participant, Topic(participant, topic, ty), qos=qos(depth=depth, kept=kept)
    )
    while True:
        yield from reader.take_iter(timeout=duration(milliseconds=200))


def transforms(participant, topic, kept):
    for message in read(participant, topic, TFMessage, kept=kept == "kept"):
        for it in message.transforms:
            place, turned = it.transform.translation, it.transform.rotation
            say(frame=it.header.frame_id, child=it.child_frame_id,
                place=[place.x, place.y, place.z], turned=[turned.x, turned.y, turned.z, turned.w])


def diagnostics(participant):
    for message in read(participant, "rt/diagnostics", DiagnosticArray):
        say(status={it.name: [it.level, it.message, {v.key: v.value for v in it.values}]
                    for it in message.status})


def images(participant, topic):
    reader = DataReader(participant, Topic(participant, topic, Image), qos=qos(reliable=False))
    while True:
        for it in reader.take_iter(timeout=duration(milliseconds=200)):
            say(width=it.width, height=it.height, encoding=it.encoding, step=it.step,
                bytes=len(it.data), first=list(it.data[:6]))


def nodes(participant):
    """What 'ros2 node list' and 'ros2 topic list -t' would read."""
    endpoints = [
        BuiltinDataReader(participant, topic)
        for topic in (BuiltinTopicDcpsPublication, BuiltinTopicDcpsSubscription)
    ]
    seen = {}
    def topics():
        for reader in endpoints:
            for it in reader.take(100):
                if it.topic_name:
                    seen[it.topic_name] = it.type_name
        return seen
    for it in read(participant, "ros_discovery_info", ParticipantEntitiesInfo, kept=True):
        for node in it.node_entities_info_seq:
            say(node=node.node_name, namespace=node.node_namespace,
                readers=len(node.reader_gid_seq), writers=len(node.writer_gid_seq),
                topics=topics())


def end_with_input():
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=end_with_input, daemon=True).start()
    globals()[sys.argv[2]](DomainParticipant(int(sys.argv[1])), *sys.argv[3:])
