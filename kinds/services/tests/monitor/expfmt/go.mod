module expfmt

go 1.18

require (
	github.com/prometheus/client_model v0.4.0
	github.com/prometheus/common v0.44.0
)

require (
	github.com/golang/protobuf v1.5.3 // indirect
	github.com/matttproud/golang_protobuf_extensions v1.0.4 // indirect
	google.golang.org/protobuf v1.30.0 // indirect
)
