// Package plot draws the pictures of the documentation from what tests measure.
//
//	svg := plot.Picture{Title: "Workers", Y: "workers", Length: 60, Lines: []plot.Line{{Name: "wanted", Color: plot.Blue, Step: true, At: wanted}}}.SVG()
package plot
