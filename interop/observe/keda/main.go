// Command keda asks KEDA's own Prometheus scaler what it would tell Kubernetes. The first
// two lines of its input are a ScaledObject and a HorizontalPodAutoscaler as JSON, which
// are read strictly; each further line is answered with a line: what the scaler of the
// ScaledObject's first trigger says at that moment.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	v2 "k8s.io/api/autoscaling/v2"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
)

// answer is one line.
type answer struct {
	Target float64 // for each replica
	Value  float64 // of the metric
	Active bool
	Error  string
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	var object kedav1alpha1.ScaledObject
	var autoscaler v2.HorizontalPodAutoscaler
	read(in, &object)
	read(in, &autoscaler)
	if err := kedav1alpha1.CheckReplicaCountBoundsAreValid(&object); err != nil {
		log.Fatal(err)
	}
	trigger := object.Spec.Triggers[0]
	if trigger.Type != "prometheus" {
		log.Fatalf("the first trigger is %q", trigger.Type)
	}
	scaler, err := scalers.NewPrometheusScaler(&scalersconfig.ScalerConfig{TriggerMetadata: trigger.Metadata, MetricType: v2.AverageValueMetricType,
		GlobalHTTPTimeout: 3 * time.Second, ScalableObjectName: object.Name, ScalableObjectNamespace: "default", ScalableObjectType: "ScaledObject"})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for in.Scan() {
		line, err := json.Marshal(ask(ctx, scaler))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(line))
	}
	if err := scaler.Close(ctx); err != nil {
		log.Fatal(err)
	}
}

func read(in *bufio.Scanner, into any) {
	if !in.Scan() {
		log.Fatal("no manifest")
	}
	d := json.NewDecoder(bytes.NewReader(in.Bytes()))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		log.Fatal(err)
	}
}

func ask(ctx context.Context, scaler scalers.Scaler) (a answer) {
	spec := scaler.GetMetricSpecForScaling(ctx)[0].External
	a.Target = spec.Target.AverageValue.AsApproximateFloat64()
	values, active, err := scaler.GetMetricsAndActivity(ctx, spec.Metric.Name)
	if err != nil {
		a.Error = err.Error()
		return a
	}
	a.Value, a.Active = values[0].Value.AsApproximateFloat64(), active
	return a
}
