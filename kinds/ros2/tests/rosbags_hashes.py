"""What rosbags, which is not ours, computes as the type hashes of services: it knows messages only,
so a service is given to it as the message that REP 2016 makes of it. Says one JSON object."""

import json

from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_typestore

store = get_typestore(Stores.ROS2_JAZZY)
INFO = "service_msgs/msg/ServiceEventInfo"
# Of ROS it is `char[16]`, which is uint8 there; rosbags counts `char` as a type of its own.
constants, fields = store.fielddefs[INFO]
gid = (Nodetype.ARRAY, ((Nodetype.BASE, ("uint8", 0)), 16))
fields = [(name, gid if name == "client_gid" else type_) for name, type_ in fields]
store.fielddefs[INFO] = (constants, fields)


def base(name):
    return Nodetype.BASE, (name, 0)


def named(name):
    return Nodetype.NAME, name


def list_of(type_, most=0):
    return Nodetype.SEQUENCE, (type_, most)


def service(name, request, response):
    parts = {f"{name}_Request": request, f"{name}_Response": response}
    parts[f"{name}_Event"] = {
        "info": named(INFO),
        "request": list_of(named(f"{name}_Request"), 1),
        "response": list_of(named(f"{name}_Response"), 1),
    }
    parts[name] = {
        "request_message": named(f"{name}_Request"),
        "response_message": named(f"{name}_Response"),
        "event_message": named(f"{name}_Event"),
    }
    for part, fields in parts.items():
        store.fielddefs[part] = ([], list(fields.items()))
    return name


def rcl(name):
    return named(f"rcl_interfaces/msg/{name}")


def rcl_service(name, request, response):
    return service(f"rcl_interfaces/srv/{name}", request, response)


numbers = {"a": base("int64"), "b": base("int64")}
names = {"names": list_of(base("string"))}
parameters = {"parameters": list_of(rcl("Parameter"))}
prefixes = {"prefixes": list_of(base("string")), "depth": base("uint64")}
done = {"success": base("bool"), "message": base("string")}
types = [
    service("example_interfaces/srv/AddTwoInts", numbers, {"sum": base("int64")}),
    service("std_srvs/srv/Trigger", {}, done),
    rcl_service("DescribeParameters", names, {"descriptors": list_of(rcl("ParameterDescriptor"))}),
    rcl_service("GetParameterTypes", names, {"types": list_of(base("uint8"))}),
    rcl_service("GetParameters", names, {"values": list_of(rcl("ParameterValue"))}),
    rcl_service("ListParameters", prefixes, {"result": rcl("ListParametersResult")}),
    rcl_service("SetParameters", parameters, {"results": list_of(rcl("SetParametersResult"))}),
    rcl_service("SetParametersAtomically", parameters, {"result": rcl("SetParametersResult")}),
    "rcl_interfaces/msg/ParameterEvent",
]
print(json.dumps({name: store.hash_rihs01(name) for name in types}))
