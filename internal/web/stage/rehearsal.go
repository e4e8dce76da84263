package main

import (
	"encoding/json"

	"understudy/internal/drill"
)

// rehearsalModels are what tests add to the virtual models: upstreams that do the
// same every time, and names and words that nobody decent would use.
const rehearsalModels = `
  # The first never lasts, the second always does.
  rehearsal:
    - {name: Lead, base_url: "http://faults.example", api_key: rehearsal-key-of-the-lead-1111, model: error-after-lead}
    - {name: Stand-in, base_url: "http://healthy.example", api_key: rehearsal-key-of-the-stand-in-2222, model: gemma3}
  # Three attempts at one, with waits between them.
  patience:
    - {name: Busy, base_url: "http://faults.example", auth_style: none, model: "529"}
    - {name: Calm, base_url: "http://healthy.example", auth_style: none, model: gemma3}
  # Nothing happens here.
  calm:
    - {name: Steady, base_url: "http://healthy.example", auth_style: none, model: gemma3}
  # Nobody is well.
  tragedy:
    - {name: Only, base_url: "http://faults.example", auth_style: none, model: "503"}
  # Names that are markup, and words that are meant to be read as it.
  "<img src=x onerror=alert(1)>":
    - {name: "<b>bold</b> & \"quoted\"", base_url: "http://hostile.example", auth_style: none, model: "<script>alert(2)</script>"}
`

// hostileWords are an upstream's that wants to be more than text.
const hostileWords = `<img src=x onerror="document.title='owned'"><script>alert(3)</script> ` + "\u202egnp.exe \x1b[31mred" + ` &lt;b&gt;`

// rehearsalParts are the scripts of those upstreams.
func rehearsalParts() map[string]drill.Script {
	return map[string]drill.Script{
		"faults.example":  drill.ByModel(drill.Answer{}),
		"healthy.example": drill.Healthy(drill.Answer{}),
		"hostile.example": func(w *drill.Wire, _ drill.Request, _ int) {
			body, _ := json.Marshal(map[string]any{"error": map[string]string{"type": "<i>type</i>", "message": hostileWords}})
			w.JSON(500, body)
		},
	}
}
