// Command curves draws what measurements wrote down, each curve as an SVG of its name:
//
//	go run ./curves ../dist/scaling.json ../docs/images
//
// The pictures have a ground of their own, so that they can be read on a light page
// and on a dark one.
package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"understudy/bench/curve"
)

const (
	width, height = 16 * vg.Centimeter, 9.5 * vg.Centimeter
	margin        = 0.3 * vg.Centimeter
	// fewPoints is how many points of a series are marked one by one.
	fewPoints = 40
)

var (
	ground = color.RGBA{0xfb, 0xfb, 0xfa, 0xff}
	ink    = color.RGBA{0x24, 0x29, 0x2f, 0xff}
	faint  = color.RGBA{0xdc, 0xde, 0xe1, 0xff}
	// hues can be told apart by those who see no red or no green (after Okabe and Ito).
	hues = []color.Color{color.RGBA{0x00, 0x5f, 0xa3, 0xff}, color.RGBA{0xc7, 0x52, 0x00, 0xff}, color.RGBA{0x00, 0x7a, 0x5a, 0xff}}
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: curves FILE.json DIRECTORY")
		os.Exit(2)
	}
	if err := drawAll(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "curves:", err)
		os.Exit(1)
	}
}

// drawAll draws the curves of a file into a directory.
func drawAll(file, dir string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var measured struct {
		Curves []*curve.Curve `json:"curves"`
	}
	if err := json.Unmarshal(text, &measured); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, c := range measured.Curves {
		p, err := picture(c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		canvas := vgsvg.NewWith(vgsvg.UseWH(width, height))
		whole := draw.New(canvas)
		whole.SetColor(ground)
		whole.Fill(whole.Rectangle.Path())
		p.Draw(draw.Crop(whole, margin, -margin, margin, -margin))
		f, err := os.Create(filepath.Join(dir, c.Name+".svg"))
		if err != nil {
			return err
		}
		if _, err := canvas.WriteTo(f); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// picture plots a curve.
func picture(c *curve.Curve) (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = ground
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.YUnit
	for _, s := range []*draw.TextStyle{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		s.Color = ink
		s.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 10}
	}
	p.Title.TextStyle.Font.Size = 12
	p.Title.Padding = 8
	p.X.Padding, p.Y.Padding = 4, 4
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.LineStyle.Color, a.Tick.LineStyle.Color = ink, ink
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	p.Add(grid)
	most := 0.0
	for i, s := range c.Series {
		points := make(plotter.XYs, len(s.Points))
		for k, q := range s.Points {
			points[k] = plotter.XY{X: q.X, Y: q.Y}
			most = max(most, q.Y)
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		line.Color, dots.Color = hues[i%len(hues)], hues[i%len(hues)]
		line.Width = 1.8
		dots.Shape, dots.Radius = draw.CircleGlyph{}, 3
		p.Add(line)
		if len(points) <= fewPoints {
			p.Add(dots)
			p.Legend.Add(s.Name, line, dots)
		} else {
			p.Legend.Add(s.Name, line)
		}
	}
	p.Legend.Left, p.Legend.Top = true, true
	p.Legend.XOffs, p.Legend.YOffs = 8, -4
	if c.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
	}
	if c.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades{}
		p.Y.Min = math.Pow10(int(math.Floor(math.Log10(p.Y.Min))))
		p.Y.Max = math.Pow10(int(math.Ceil(math.Log10(p.Y.Max * 1.5))))
	} else { // from nothing, so that what is flat looks flat; room for the legend above
		p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, most*1.45, even{}
	}
	return p, nil
}

// decades marks the powers of ten, written out.
type decades struct{}

// Ticks returns the marks between two bounds, both more than 0.
func (decades) Ticks(low, high float64) (ticks []plot.Tick) {
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, e)
			if v < low*.999 || v > high*1.001 {
				continue
			}
			label := ""
			if m == 1 {
				label = number(v)
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: label})
		}
	}
	return ticks
}

// even marks multiples of a round number, four to nine of them.
type even struct{}

// Ticks returns the marks between two bounds.
func (even) Ticks(low, high float64) (ticks []plot.Tick) {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, m := range []float64{5, 2} {
		if (high-low)/(m*step) >= 4 {
			step *= m
			break
		}
	}
	for v := math.Ceil(low/step) * step; v <= high; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: number(v)})
	}
	return ticks
}

// number writes a number as people do.
func number(v float64) string {
	text := strconv.FormatFloat(v, 'g', 6, 64)
	if v >= 1000 {
		n := strconv.Itoa(int(math.Round(v)))
		text = n[:len(n)-3] + "," + n[len(n)-3:]
	}
	return text
}
