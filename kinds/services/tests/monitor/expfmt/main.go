// Reads delimited protobuf with the reader of Prometheus itself; a line of JSON for each figure.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"math"
	"net/http"
	"os"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

type bucket struct {
	Upper float64 `json:"upper"`
	Count float64 `json:"count"`
}

type row struct {
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels"`
	Value   float64           `json:"value"`
	Sum     float64           `json:"sum"`
	Count   uint64            `json:"count"`
	Buckets []uint64          `json:"buckets"`
	Native  []bucket          `json:"native"`
}

func main() {
	header := http.Header{"Content-Type": {"application/vnd.google.protobuf; " +
		"proto=io.prometheus.client.MetricFamily; encoding=delimited"}}
	decoder := expfmt.NewDecoder(os.Stdin, expfmt.ResponseFormat(header))
	encoder := json.NewEncoder(os.Stdout)
	for {
		var family dto.MetricFamily
		if err := decoder.Decode(&family); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		for _, found := range family.Metric {
			if err := encoder.Encode(rowOf(family.GetName(), found)); err != nil {
				log.Fatal(err)
			}
		}
	}
}

func rowOf(name string, found *dto.Metric) row {
	out := row{Name: name, Labels: map[string]string{}}
	for _, label := range found.Label {
		out.Labels[label.GetName()] = label.GetValue()
	}
	switch {
	case found.Counter != nil:
		out.Value = found.Counter.GetValue()
	case found.Gauge != nil:
		out.Value = found.Gauge.GetValue()
	case found.Histogram != nil:
		h := found.Histogram
		out.Sum, out.Count = h.GetSampleSum(), h.GetSampleCount()
		for _, b := range h.Bucket {
			out.Buckets = append(out.Buckets, b.GetCumulativeCount())
		}
		if h.GetZeroCount() > 0 {
			out.Native = append(out.Native, bucket{h.GetZeroThreshold(), float64(h.GetZeroCount())})
		}
		index, count, delta := int32(0), int64(0), 0
		for _, span := range h.PositiveSpan {
			index += span.GetOffset()
			for i := uint32(0); i < span.GetLength(); i++ {
				count += h.PositiveDelta[delta]
				delta++
				upper := math.Exp2(float64(index) / math.Exp2(float64(h.GetSchema())))
				if count > 0 {
					out.Native = append(out.Native, bucket{upper, float64(count)})
				}
				index++
			}
		}
	}
	return out
}
