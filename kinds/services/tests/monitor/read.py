"""Reads a page of text with the parsers of the Prometheus project; a line of JSON for each figure."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text

parse = {"openmetrics": openmetrics, "text": text}[sys.argv[1]]
for family in parse(sys.stdin.buffer.read().decode()):
    histograms = {}
    for name, labels, value in (row[:3] for row in family.samples):
        if family.type != "histogram":
            print(json.dumps({"name": name, "labels": labels, "value": float(value)}))
            continue
        key = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
        row = histograms.setdefault(key, {"name": family.name, "labels": dict(key), "buckets": []})
        if name.endswith("_bucket"):
            row["buckets"].append(int(value))
        else:
            whole = name.endswith("_count")
            row["count" if whole else "sum"] = int(value) if whole else value
    for row in histograms.values():
        print(json.dumps(row))
