package plot

import (
	"fmt"
	"math"
	"strings"
)

// Line is one curve of a picture.
type Line struct {
	Name, Color string
	Dash        bool
	// Step draws a value that holds until it changes.
	Step bool
	At   func(t float64) float64
}

// Picture draws curves over time as an SVG, by the data alone: the same run gives
// the same bytes.
type Picture struct {
	Title  string
	Y      string
	Length float64 // seconds
	Lines  []Line
}

// The colours of curves.
const (
	Blue   = "#1f6fb4"
	Orange = "#d9771f"
	Grey   = "#8a8a8a"
	Red    = "#b03a3a"
)

const (
	picW, picH                     = 760, 300
	padL, padR, padT, padB         = 52, 16, 56, 40
	plotW, plotH           float64 = picW - padL - padR, picH - padT - padB
)

// points of a curve: enough for the eye.
const picPoints = 600

// SVG returns the file.
func (p Picture) SVG() string {
	top := 0.0
	for _, l := range p.Lines {
		for i := range picPoints + 1 {
			top = max(top, l.At(float64(i)/picPoints*p.Length))
		}
	}
	yStep := niceStep(top, 5)
	top = math.Ceil(top/yStep) * yStep
	xStep := niceStep(p.Length, 8)
	x := func(t float64) float64 { return padL + t/p.Length*plotW }
	y := func(v float64) float64 { return padT + plotH - v/top*plotH }
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", picW, picH)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", p.Title, picW, picH)
	fmt.Fprintf(&b, "<text x=\"%d\" y=\"20\" font-size=\"14\" fill=\"#222222\">%s</text>\n", padL, p.Title)
	for v := 0.0; v <= top+1e-9; v += yStep {
		fmt.Fprintf(&b, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e4e4e4\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" fill=\"#555555\">%g</text>\n",
			padL, picW-padR, y(v), y(v), padL-6, y(v)+4, v)
	}
	for t := 0.0; t <= p.Length+1e-9; t += xStep {
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#555555\">%g s</text>\n", x(t), picH-padB+18, t)
	}
	fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" fill=\"#555555\">%s</text>\n", padL, picH-4, p.Y)
	at := float64(padL)
	for _, l := range p.Lines {
		dash := ""
		if l.Dash {
			dash = " stroke-dasharray=\"5 4\""
		}
		fmt.Fprintf(&b, "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"38\" y2=\"38\" stroke=\"%s\" stroke-width=\"2\"%s/><text x=\"%.0f\" y=\"42\" fill=\"#222222\">%s</text>\n",
			at, at+22, l.Color, dash, at+28, l.Name)
		at += 48 + 6.6*float64(len([]rune(l.Name)))
		fmt.Fprintf(&b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"%s points=\"%s\"/>\n", l.Color, dash, l.points(p.Length, x, y))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// points lists a curve's corners: equal neighbours are one line.
func (l Line) points(length float64, x, y func(float64) float64) string {
	var b strings.Builder
	last := math.NaN()
	for i := range picPoints + 1 {
		t := float64(i) / picPoints * length
		v := l.At(t)
		if v == last && i < picPoints {
			continue
		}
		if l.Step && !math.IsNaN(last) && v != last {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(t), y(last))
		}
		fmt.Fprintf(&b, "%.1f,%.1f ", x(t), y(v))
		last = v
	}
	return strings.TrimSpace(b.String())
}

func niceStep(span float64, about int) float64 {
	step := math.Pow(10, math.Floor(math.Log10(span/float64(about))))
	for _, m := range []float64{1, 2, 5, 10} {
		if span/(step*m) <= float64(about) {
			return step * m
		}
	}
	return step * 10
}
