// Package plot draws the pictures of the documentation from what tests measure.
//
//	wanted := plot.Line{Name: "wanted", Color: plot.Blue, Step: true, At: workersAt}
//	svg := plot.Picture{Title: "Workers", Y: "workers", Length: 60, Lines: []plot.Line{wanted}}.SVG()
package plot
