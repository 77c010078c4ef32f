"""A collector of OpenTelemetry whose messages are those of others: says its port, then a line of JSON
for each request. It answers with the statuses of its arguments, one after the other, then with 200;
`reject` is 200 for all but one span."""

import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

answers = sys.argv[1:]


def value(it):
    which = it.WhichOneof("value")
    return getattr(it, which) if which in ("string_value", "int_value") else f"a {which}"


def attributes(them):
    return {it.key: value(it.value) for it in them}


def span(it, resource, scope):
    assert not len(UnknownFieldSet(it)), "fields that no span has"
    assert len(it.trace_id) == 16 and len(it.span_id) == 8 and len(it.parent_span_id) in (0, 8)
    assert 0 < it.start_time_unix_nano <= it.end_time_unix_nano
    return {
        "resource": resource,
        "scope": scope.name,
        "trace": it.trace_id.hex(),
        "span": it.span_id.hex(),
        "parent": it.parent_span_id.hex(),
        "state": it.trace_state,
        "name": it.name,
        "kind": it.SpanKind.Name(it.kind),
        "attributes": attributes(it.attributes),
        "status": it.status.StatusCode.Name(it.status.code),
        "message": it.status.message,
        "is_remote": bool(it.flags & 0x200),
        "flags": it.flags & 0xFF,
        "begun": it.start_time_unix_nano,
        "ended": it.end_time_unix_nano,
    }


class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers["content-encoding"] == "gzip":
            body = gzip.decompress(body)
        request = service.ExportTraceServiceRequest.FromString(body)
        spans = [
            span(it, attributes(of.resource.attributes), scope.scope)
            for of in request.resource_spans
            for scope in of.scope_spans
            for it in scope.spans
        ]
        answer = answers.pop(0) if answers else "200"
        reply = service.ExportTraceServiceResponse()
        if answer == "reject":
            reply.partial_success.rejected_spans = 1
        said = reply.SerializeToString()
        headers = {name.lower(): value for name, value in self.headers.items()}
        print(json.dumps({"path": self.path, "headers": headers, "answer": answer, "spans": spans}), flush=True)
        self.send_response(200 if answer == "reject" else int(answer))
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
